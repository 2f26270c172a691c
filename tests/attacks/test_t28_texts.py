"""T28: whatever text a tool answers with, clients get one that harms nobody.

T17 belongs here as well: of what goes wrong inside, a client gets a sentence of ours.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connection, transaction

from mcp_app import (
    Context,
    EmbeddedResource,
    ResourceContents,
    ResourceLink,
    SyncContext,
    Text,
    ToolError,
    ToolOutput,
)
from mcp_app.models import Call
from mcp_app.pools.database import reader
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from tests.asgi_client import Outcome
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect

ERAS: Final = (STATEFUL, STATELESS)
TAGS: Final = "\U000e006f\U000e0062\U000e0065\U000e0079"
RAW: Final = f"\x1b[31mred\x1b[0m \x1b]0;t\x07\x9b2Jalert\0\x7f{TAGS}\nand\tmore\r\n"
CLEAN: Final = "red alert\nand\tmore\r\n"


def blocks(*content: Text, **more: Any) -> ToolOutput:
    return ToolOutput(content, structured={"result": 1}, **more)


WAYS: Final[list[tuple[str, Callable[[], Any]]]] = [
    ("a text", lambda: RAW),
    ("an output", lambda: blocks(Text(RAW), Text("more"))),
    ("with meta", lambda: blocks(Text(RAW), meta={"example.org/a": 1})),
    ("an error", lambda: _raise(ToolError(RAW))),
    ("an error with blocks", lambda: _raise(ToolError("x", content=[Text(RAW)]))),
]


def _raise(error: Exception) -> None:
    raise error


async def recorded(process: Process, outcome: str) -> str:
    assert process.audit is not None
    process.audit.write_pending()
    await process.audit.wait_until_written()
    rows = Call.objects.filter(outcome=outcome).values_list("error", flat=True)
    [error] = await reader.run(list, rows)
    return str(error)


@pytest.mark.parametrize("version", REVISIONS)
async def test_t28_texts_steer_no_terminal_and_hide_nothing(
    play: Play, connect: Connect, version: str
) -> None:
    client = await connect(version)
    for way, value in WAYS:

        async def script(ctx: Context, value: Callable[[], Any] = value) -> Any:
            return value()

        found = await play("async", script, client=client)
        assert found.result["content"][0] == {"type": "text", "text": CLEAN}, way
        assert found.result.get("isError", False) == ("error" in way)


async def test_t28_what_is_no_text_stays_as_it_is(play: Play, connect: Connect) -> None:
    contents = ResourceContents(uri="memo://a", text=RAW)
    link = ResourceLink("memo://a", "a", description=RAW)

    def script(ctx: SyncContext) -> ToolOutput:
        blocks = [EmbeddedResource(contents), link]
        return ToolOutput(blocks, structured={"result": RAW})

    found = await play("sync", script, client=await connect(STATEFUL))
    resource, shown = found.result["content"]
    assert resource["resource"]["text"] == shown["description"] == RAW
    assert found.result["structuredContent"] == {"result": RAW}
    # A revision without links gets a text in their place.
    found = await play("sync", script, client=await connect("2025-03-26"))
    resource, shown = found.result["content"]
    assert resource["resource"]["text"] == RAW
    assert shown == {"type": "text", "text": f"a <memo://a>: {CLEAN}"}


@pytest.mark.parametrize("version", ERAS)
async def test_t28_json_as_text_says_the_same_as_structured_content(
    play: Play, connect: Connect, version: str
) -> None:
    client = await connect(version)
    value = {"\x1b[0m": [RAW, {"\x7f": None}], "number": 1.5}
    for result in (value, ToolOutput((), structured={"result": value})):

        async def script(ctx: Context, result: Any = result) -> Any:
            return result

        found = await play("async", script, client=client)
        structured = found.result["structuredContent"]
        assert json.loads(found.text) in (structured, structured["result"])
        assert structured == {"result": value}
        assert found.text.isprintable()


@pytest.mark.parametrize("tool", ["async", "sync"])
@pytest.mark.parametrize("version", ERAS)
async def test_t28_what_json_cannot_say_is_an_error_for_the_model(
    play: Play, connect: Connect, process: Process, version: str, tool: str
) -> None:
    client = await connect(version)
    half, most = "half \ud83d", process.limits.tool_result + 1
    for value, said in (
        (lambda: half, "has half of a surrogate pair"),
        (lambda: blocks(Text(half)), "has half of a surrogate pair"),
        (lambda: _raise(ToolError(half)), "has half of a surrogate pair"),
        (lambda: {"deep": [float("nan")]}, "is nan, which JSON cannot express"),
        (lambda: "x" * most, '"TOOL_RESULT"] allows 1,048,576.'),
    ):

        def script(ctx: SyncContext, value: Callable[[], Any] = value) -> Any:
            return value()

        async def asynchronous(ctx: Context, value: Callable[[], Any] = value) -> Any:
            return value()

        found = await play(
            tool, script if tool == "sync" else asynchronous, client=client
        )
        assert (found.status, found.result["isError"]) == (200, True)
        assert said in found.text


async def test_t28_what_is_told_twice_counts_once(
    play: Play, connect: Connect, process: Process
) -> None:
    async def script(ctx: Context) -> str:
        return "x" * (process.limits.tool_result - 10_000)

    found = await play("async", script, client=await connect(ERAS[0]))
    assert "isError" not in found.result
    assert len(found.text) == process.limits.tool_result - 10_000


async def test_t28_the_call_log_has_that_error(play: Play, process: Process) -> None:
    async def script(ctx: Context) -> None:
        raise ToolError(RAW)

    found = await play("async", script)
    assert await recorded(process, "tool_error") == found.text == CLEAN


@pytest.mark.parametrize(
    ("value", "outcome", "error"),
    [(1, "tool_error", '{"a":1}'), (math.nan, "shape", "The result of")],
)
async def test_an_error_without_a_text_is_kept_by_its_values(
    play: Play, process: Process, value: float, outcome: str, error: str
) -> None:
    async def script(ctx: Context) -> ToolOutput:
        return ToolOutput([], structured={"a": value}, is_error=True)

    await play("async", script)
    assert (await recorded(process, outcome)).startswith(error)


# -- exceptions ---------------------------------------------------------------------

SECRET: Final = "hunter2"


def with_a_statement(ctx: SyncContext) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT '{SECRET}' FROM nowhere_at_all")  # noqa: S608


def with_a_path(ctx: SyncContext) -> str:
    return Path("/srv/site/hunter2/orders.csv").read_text()


def with_a_cause(ctx: SyncContext) -> None:
    try:
        json.loads(f"{{'{SECRET}'")
    except ValueError as error:
        raise LookupError(traceback.format_exc()) from error


def with_an_exit(ctx: SyncContext) -> None:
    raise SystemExit(SECRET)


@pytest.mark.parametrize("version", ERAS)
async def test_t17_clients_get_no_more_of_an_exception_than_a_sentence_of_ours(
    play: Play, connect: Connect, process: Process, version: str
) -> None:
    client = await connect(version)
    crashes = (with_a_statement, with_a_path, with_a_cause, with_an_exit)
    for tool, script in [("sync", each) for each in crashes]:
        found = await play(tool, script, client=client)
        name, _, number = found.text.partition(" failed. Its error number in the log")
        assert (found.result["isError"], name) == (True, tool)
        assert len(number) == len(" is 01234567.")
        assert_nothing_of_the_inside(found)


def assert_nothing_of_the_inside(found: Outcome) -> None:
    said = found.raw.decode().lower()
    for inside in (SECRET, "traceback", "select", "nowhere", "/srv", ".py", "error:"):
        assert inside not in said
