"""User code that breaks the rules: what holds questions back, and what kills tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_app import Context, SyncContext
from mcp_app.interface.questions import Accepted
from tests.asgi_client import JsonObject
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect

FORM: Final[Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
ERAS: Final = (STATEFUL, STATELESS)


class Group(BaseExceptionGroup[BaseException]):
    def __init__(self) -> None:
        super().__init__("a group", [KeyboardInterrupt()])

    def __new__(cls) -> Group:
        return super().__new__(cls, "a group", [KeyboardInterrupt()])


def yes(method: str, params: JsonObject) -> JsonObject:
    return {"action": "accept", "content": {"a": params["message"]}}


def said(answer: Any) -> str:
    assert isinstance(answer, Accepted)
    return str(answer.data["a"])


# -- questions that are held back ----------------------------------------------------


def bare_except(ctx: SyncContext) -> str:
    try:
        return said(ctx.elicit("one", FORM))
    except BaseException:
        return "nobody was asked"


def another_error(ctx: SyncContext) -> str:
    try:
        return said(ctx.elicit("one", FORM))
    except BaseException:
        raise ValueError("nobody was asked") from None


async def in_a_task_group(ctx: Context) -> str:
    async with asyncio.TaskGroup() as group:
        one: asyncio.Task[Any] = group.create_task(ctx.elicit("one", FORM, key="1"))
        two: asyncio.Task[Any] = group.create_task(ctx.elicit("two", FORM, key="2"))
    return f"{said(one.result())} {said(two.result())}"


async def gathered(ctx: Context) -> str:
    asked: Any = ctx.elicit("one", FORM)
    answers = await asyncio.gather(asked, return_exceptions=True)
    return said(answers[0])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("tool", "script", "asked"),
    [
        ("sync", bare_except, ["one"]),
        ("sync", another_error, ["one"]),
        ("async", in_a_task_group, ["one", "two"]),
        ("database", in_a_task_group, ["one", "two"]),
        ("async", gathered, ["one"]),
    ],
)
async def test_a_question_that_is_held_back_is_asked(
    play: Play,
    connect: Connect,
    era: str,
    tool: str,
    script: Callable[[Any], Any],
    asked: list[str],
) -> None:
    found = await play(tool, script, client=await connect(era), answer=yes)
    assert [each["params"]["message"] for each in found.questions] == asked
    assert found.text == " ".join(asked)


# -- exceptions that are no `Exception` ------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tool", ["async", "database", "sync", "atomic_sync"])
@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, GeneratorExit, SystemExit, BaseException, Group]
)
async def test_what_ends_a_program_fails_a_call(
    play: Play, connect: Connect, era: str, tool: str, kind: type[BaseException]
) -> None:
    async def on_loop(ctx: Context) -> None:
        raise kind

    def in_thread(ctx: SyncContext) -> None:
        raise kind

    script = in_thread if tool in {"sync", "atomic_sync"} else on_loop
    found = await play(tool, script, client=await connect(era))
    assert found.result["isError"]
    assert f"{tool} failed. Its error number in the log is" in found.text


# -- a context that outlives its call ------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_a_context_ends_with_call(play: Play, connect: Connect, era: str) -> None:
    kept: list[Any] = []

    def keeps(ctx: SyncContext) -> str:
        kept.append(ctx)
        return "kept"

    def uses(ctx: SyncContext) -> str:
        (old,) = kept
        old.log("info", "Nobody hears this.")
        for late in (
            lambda: old.elicit("Who?", FORM),
            lambda: old.once("step", list),
            old.user,
        ):
            with pytest.raises(RuntimeError, match="This call has ended"):
                late()
        return "refused"

    client = await connect(era)
    assert (await play("sync", keeps, client=client)).text == "kept"
    assert (await play("sync", uses, client=client)).text == "refused"


async def test_an_async_context_asks_nothing_after_its_call(play: Play) -> None:
    kept: list[Any] = []

    async def keeps(ctx: Context) -> str:
        kept.append(ctx)
        return "kept"

    async def uses(ctx: Context) -> str:
        (old,) = kept
        for late in (old.elicit("Who?", FORM), old.once("step", list), old.user()):
            with pytest.raises(RuntimeError, match="This call has ended"):
                await late
        return "refused"

    assert (await play("async", keeps)).text == "kept"
    assert (await play("async", uses)).text == "refused"
