"""T19: who answers no question keeps nobody else from being asked, or from working."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from mcp_app import Accepted, Context, Elicit, SyncContext
from mcp_app.process.runtime import Process
from tests.asgi_client import Client, JsonObject, Visit, outcome
from tests.audit.reading import kept
from tests.old_client import OldClient
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect
from tests.wire.middleware import WireCheck

PATIENCE_S: Final = 60
ACCEPTED: Final[JsonObject] = {"action": "accept", "content": {"cake": "plum"}}


@dataclass
class Order:
    cake: str


async def asks(ctx: Context) -> str:
    answer = await ctx.elicit("Which cake?", Order)
    return answer.data.cake if isinstance(answer, Accepted) else "none"


def asks_sync(ctx: SyncContext) -> str:
    answer = ctx.elicit("Which cake?", Order)
    return answer.data.cake if isinstance(answer, Accepted) else "none"


def samples(ctx: SyncContext) -> str:
    ctx.sample("Say something.", max_tokens=5)
    return "said"


def runs(_: SyncContext) -> str:
    return "ran"


SCRIPTS: Final[dict[str, Callable[[Any], Any]]] = {
    "async": asks,
    "database": asks,
    "sync": asks_sync,
}
THREADED: Final = ("database", "sync")


class Scene:
    """People who are asked, and do not answer."""

    def __init__(self, play: Play, connect: Connect) -> None:
        self._play = play
        self._connect = connect
        self.open: list[tuple[Client, Visit, JsonObject]] = []

    async def person(self, name: str, program: str = "") -> Client:
        headers = {"x-user": name, "x-client": program}
        return await self._connect(STATEFUL, path="/mcp/private", headers=headers)

    async def stranger(self) -> Client:
        return await self._connect(STATEFUL)

    async def asked(self, client: Client, tool: str) -> None:
        visit = self._play.begin(tool, SCRIPTS[tool], client)
        question = await visit.message()
        assert question is not None
        assert question.get("method") == "elicitation/create", question
        self.open.append((client, visit, question))

    async def refused(self, client: Client, tool: str) -> str:
        found = await self._play(tool, SCRIPTS[tool], client=client)
        assert found.result["isError"] is True
        assert found.text.startswith("Too many questions are open")
        return found.text

    async def runs(self, client: Client) -> None:
        assert (await self._play("sync", runs, client=client)).text == "ran"

    async def answer(self) -> None:
        client, visit, question = self.open.pop(0)
        assert (await client.reply(question["id"], ACCEPTED)).status == 202
        assert (await outcome(visit)).text == "plum"

    async def answer_all(self) -> None:
        while self.open:
            await self.answer()

    async def taken_back(self, count: int) -> None:
        """The oldest questions were taken back; their clients and models are told."""
        gone, self.open = self.open[:count], self.open[count:]
        for _, visit, question in gone:
            found = await outcome(visit)
            assert found.result["isError"] is True
            assert "taken back unanswered" in found.text
            (cancelled,) = found.notifications("notifications/cancelled")
            assert cancelled["requestId"] == question["id"]


@pytest.fixture
def scene(play: Play, connect: Connect) -> Scene:
    return Scene(play, connect)


@pytest.mark.parametrize("mcp", [{"THREADS": 40}])
@pytest.mark.parametrize("tool", ["async", "sync"])
async def test_t19_few_questions(scene: Scene, process: Process, tool: str) -> None:
    programs = [await scene.person("maria", each) for each in ("a", "b")]
    other = await scene.person("jan")
    for number in range(process.limits.questions_per_person):
        await scene.asked(programs[number % 2], tool)
    for program in programs:
        assert "8 wait for an answer" in await scene.refused(program, tool)
    await scene.asked(other, tool)
    await scene.answer()
    await scene.asked(programs[1], tool)
    await scene.refused(programs[0], tool)
    rows = [each.outcome for each in await kept(process)]
    assert rows.count("unavailable") == 3
    await scene.answer_all()
    assert not process.questions.open_identifiers


@pytest.mark.parametrize("tool", THREADED)
async def test_t19_half_the_threads(scene: Scene, process: Process, tool: str) -> None:
    people = [await scene.person(f"person {number}") for number in range(6)]
    for person in people[:4]:
        await scene.asked(person, tool)
    assert process.threads.uncounted_threads == 4
    for person in people[4:]:
        assert "as many people as it can" in await scene.refused(person, tool)
        # Nobody waits for them in a thread: these may be as many as there are.
        await scene.asked(person, "async")
        await scene.runs(person)
    await scene.answer()
    await scene.asked(people[4], tool)
    await scene.answer_all()
    assert not process.questions.open_identifiers


@pytest.mark.parametrize("tool", THREADED)
async def test_t19_one_who_never_answers_keeps_nobody_from_being_asked(
    scene: Scene, process: Process, tool: str
) -> None:
    slow = await scene.person("slow")
    for _ in range(4):
        await scene.asked(slow, tool)
    for _ in range(30):
        await scene.refused(slow, tool)
    others = [await scene.person(name) for name in ("maria", "jan")]
    for other in others:
        await scene.runs(other)
        await scene.asked(other, tool)
    await scene.taken_back(2)
    assert process.threads.uncounted_threads == 4
    await scene.answer_all()


@pytest.mark.parametrize("mcp", [{"THREADS": 1}, {"THREADS": 8}])
async def test_t19_strangers_give_way_to_others(scene: Scene, process: Process) -> None:
    most = max(1, process.threads.size // 2)
    for _ in range(most):
        await scene.asked(await scene.stranger(), "sync")
    await scene.refused(await scene.stranger(), "sync")
    for number in range(most):
        person = await scene.person(f"person {number}")
        await scene.runs(person)
        await scene.asked(person, "sync")
    await scene.taken_back(most)
    await scene.refused(await scene.stranger(), "sync")
    await scene.answer_all()


@pytest.mark.parametrize("mcp", [{"LIMITS": "off"}])
async def test_without_rates_all_may_wait_that_the_pool_lets_wait(scene: Scene) -> None:
    person = await scene.person("maria")
    for _ in range(12):
        await scene.asked(person, "sync")
    await scene.runs(person)
    await scene.answer_all()


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
async def test_one_thread_held_once(play: Play, scene: Scene, process: Process) -> None:
    async def asks_twice(ctx: Context) -> str:
        cakes = [ctx.elicit("Which cake?", Order, key=key) for key in "ab"]
        return f"{len(await asyncio.gather(*cakes))} cakes"

    person = await scene.person("maria")
    params = play.params("database", asks_twice)
    found = await person.talk("tools/call", params, lambda _, __: ACCEPTED)
    assert found.text == "2 cakes"


@pytest.mark.parametrize("mcp", [{"LIMITS": {"questions_per_person": 2}}])
async def test_a_call_that_asks_a_person_too_much(play: Play, scene: Scene) -> None:
    async def asks_much(ctx: Context) -> str:
        await ctx.ask(**{key: Elicit("Which cake?", Order) for key in "abc"})
        return "asked"

    found = await play("async", asks_much, client=await scene.person("maria"))
    assert found.result["isError"] is True
    assert "0 wait for an answer, 3 more cannot be asked" in found.text


@pytest.mark.parametrize("mcp", [{"LIMITS": {"questions_per_person": 1}}])
async def test_prompts_are_refused(play: Play, scene: Scene, process: Process) -> None:
    person = await scene.person("maria")
    await scene.asked(person, "async")
    found = await person.request("prompts/get", play.params("prompt", asks))
    assert found.error["code"] == -32603
    assert found.error["message"].startswith("Too many questions are open")
    await scene.answer()
    assert [row.outcome for row in await kept(process)] == ["answered", "unavailable"]


# -- clients that leave ------------------------------------------------------------


async def idle(process: Process) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while process.running or process.threads.uncounted_threads:
            await asyncio.sleep(0.001)
    assert not process.questions.open_identifiers
    assert not process.adapters.places._open
    assert not process.adapters.places._in_threads


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
@pytest.mark.parametrize("tool", SCRIPTS)
async def test_t19_a_stateless_question_holds_nothing(
    play: Play, connect: Connect, scene: Scene, process: Process, tool: str
) -> None:
    """The answer to the request is the question; its client may leave for good."""
    client = await connect(STATELESS)
    for _ in range(40):
        found = await client.request("tools/call", play.params(tool, SCRIPTS[tool]))
        assert found.result["resultType"] == "input_required"
        assert not process.threads.uncounted_threads
    await idle(process)
    person = await scene.person("maria")
    await scene.asked(person, "sync")
    await scene.answer()


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
@pytest.mark.parametrize("tool", SCRIPTS)
async def test_t19_a_stateless_client_that_leaves_ends_its_call(
    play: Play, connect: Connect, process: Process, tool: str
) -> None:
    """Whatever it does next with its context, a question above all, ends the code."""
    entered, ends = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def enter() -> None:
        loop.call_soon_threadsafe(entered.set)

    async def waits(ctx: Context) -> None:
        enter()
        try:
            await asyncio.sleep(PATIENCE_S)
        except asyncio.CancelledError as error:
            ends.append(type(error).__name__)
            raise

    def waits_sync(ctx: SyncContext) -> None:
        enter()
        while not ctx.cancelled:
            time.sleep(0.001)
        try:
            ctx.elicit("Which cake?", Order)
        except BaseException as error:
            ends.append(type(error).__name__)
            raise

    client = await connect(STATELESS)
    visit = play.begin(tool, waits_sync if tool == "sync" else waits, client)
    async with asyncio.timeout(PATIENCE_S):
        await entered.wait()
    await visit.leave()
    await idle(process)
    assert ends == ["CallCancelled" if tool == "sync" else "CancelledError"]
    rows: Sequence[Any] = await kept(process)
    assert [row.outcome for row in rows] == ["client_gone"]


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
async def test_t19_a_thread_wakes_when_the_stream_of_its_session_ends(
    play: Play, application: WireCheck, process: Process
) -> None:
    """Over HTTP+SSE a client that leaves ends its calls, and so its questions."""
    client = await OldClient(application, "2024-11-05").open()
    await client.begin("tools/call", play.params("sync", samples))
    question = await client.next()
    assert question is not None
    assert question.get("method") == "sampling/createMessage", question
    assert process.threads.uncounted_threads == 1
    await client.leave()
    await idle(process)
