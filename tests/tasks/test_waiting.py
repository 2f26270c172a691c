"""Clients without tasks: their calls wait, and a tool fetches the rest."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from mcp_app.models import Task
from mcp_app.process.runtime import Process
from mcp_app.protocol import schemas
from mcp_app.protocol.errors import InternalError, InvalidParams, ProtocolError
from mcp_app.server.run import End, Run
from mcp_app.server.waiting import STILL_ASKS
from tests.asgi_client import Client, JsonObject, Outcome
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect
from tests.tasks.conftest import TakeTasks, wait_long
from tests.tasks.test_wire import UNKNOWN, accepted, ask_name

# Before the process, which looks at its registry once.
pytestmark = pytest.mark.usefixtures("scripted_tasks")

BRIEF: Final = {"LIMITS": {"task_wait": 0.3}}
ERAS: Final = [STATELESS, STATEFUL, "2025-03-26"]


class Caller:
    """Somebody at the server `private` whose client knows no tasks."""

    def __init__(self, client: Client, play: Play) -> None:
        self.client = client
        self.play = play

    async def call(self, tool: str, script: Any, **meta: Any) -> Outcome:
        params = self.play.params(tool, script)
        return await self.client.request("tools/call", {**params, "_meta": meta})

    async def fetch(self, task: str, **more: Any) -> Outcome:
        return await self.client.call("get_task_result", task=task, **more)


@pytest.fixture
async def caller(take_tasks: TakeTasks, connect: Connect, version: str) -> Caller:
    headers = {"x-user": "ana"}
    client = await connect(version, path="/mcp/private", headers=headers)
    return Caller(client, Play(connect))


@pytest.fixture
def version() -> str:
    return STATELESS


async def task_ids() -> list[str]:
    return [each.public_id async for each in Task.objects.order_by("pk")]


@pytest.mark.parametrize("version", ERAS)
async def test_a_call_waits_for_its_task(caller: Caller) -> None:
    async def work(ctx: Any) -> str:
        ctx.progress(1, 2)
        await asyncio.sleep(1.5)
        return f"done in {ctx.task_id}"

    answer = await caller.call("task", work, progressToken="t")
    [task] = await task_ids()
    assert answer.text == f"done in {task}"
    [told] = answer.notifications("notifications/progress")
    assert (told["progress"], told["total"]) == (1, 2)


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mcp", [BRIEF])
async def test_a_tool_fetches_what_comes_later(
    caller: Caller, connect: Connect
) -> None:
    released = asyncio.Event()

    async def work(ctx: Any) -> str:
        await released.wait()
        return "late"

    answer = await caller.call("task", work)
    [task] = await task_ids()
    sentence = (
        f"It still runs. Call get_task_result with task='{task}' to get the result."
    )
    assert answer.text == sentence
    assert (await caller.fetch(task, wait=0)).text == sentence
    bob = await connect(STATELESS, path="/mcp/private", headers={"x-user": "bob"})
    for identifier in (task, "no-such-task", "no\0such"):
        foreign = await bob.call("get_task_result", task=identifier)
        assert (foreign.result["isError"], foreign.text) == (True, UNKNOWN)
    released.set()
    assert (await caller.fetch(task)).text == "late"
    assert (await caller.fetch(task)).result.get("isError") is None


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mcp", [BRIEF])
async def test_a_tool_promises_that_it_may_still_run(
    caller: Caller, connect: Connect
) -> None:
    released = asyncio.Event()

    async def work(ctx: Any) -> list[str]:
        await released.wait()
        return ["late"]

    answer = (await caller.call("task_typed", work)).result
    [task] = await task_ids()
    assert "isError" not in answer
    later = (await caller.fetch(task, wait=0)).result
    assert later.keys().isdisjoint({"isError", "structuredContent"})
    released.set()
    ended = (await caller.fetch(task)).result
    tools = await listed_tools(caller.client)
    if caller.client.revision.structured_content:
        validator = schemas.compile_schema(tools["task_typed"]["outputSchema"])
        assert answer["structuredContent"] == {
            "still_runs": answer["content"][0]["text"]
        }
        for each, fits in ((answer, True), (ended, True), ({}, False)):
            assert validator.is_valid(each.get("structuredContent", {})) is fits
    else:
        assert "structuredContent" not in answer


@pytest.mark.parametrize("version", [STATELESS, STATEFUL])
@pytest.mark.parametrize(
    "error",
    [InternalError("Broken."), InvalidParams("Broken.")],
    ids=lambda each: type(each).__name__,
)
async def test_a_task_that_died_is_a_result(
    caller: Caller, error: ProtocolError
) -> None:
    """An error stays one if its client can do something about it."""

    async def work(ctx: Any) -> str:
        raise error

    called = await caller.call("task", work)
    [task] = await task_ids()
    for answer in (called, await caller.fetch(task)):
        if isinstance(error, InternalError):
            assert (answer.result["isError"], answer.text) == (True, "Broken.")
        else:
            assert answer.error["code"] == error.code
    cancelled = Task.objects.filter(public_id=task)
    await cancelled.aupdate(status="cancelled", error="", result="")
    answer = await caller.fetch(task)
    assert (answer.result["isError"], answer.text) == (True, "The task was cancelled.")


@pytest.mark.parametrize("version", [STATELESS, STATEFUL, "2025-06-18"])
async def test_its_questions_reach_the_client(caller: Caller) -> None:
    params = caller.play.params("task", ask_name)
    answer = await caller.client.talk("tools/call", params, lambda *_: accepted("Bo"))
    assert answer.text == "Hello Bo"
    [question] = answer.questions
    assert question["params"]["message"] == "Who?"
    assert len(await task_ids()) == 1


@pytest.mark.parametrize("version", [STATELESS, STATEFUL])
@pytest.mark.parametrize("mcp", [BRIEF])
async def test_the_tool_asks_what_the_task_asks_later(
    caller: Caller, connect: Connect, version: str
) -> None:
    released = asyncio.Event()

    async def work(ctx: Any) -> str:
        await released.wait()
        return await ask_name(ctx)

    await caller.call("task", work)
    [task] = await task_ids()
    released.set()
    # A client that cannot answer is not asked, and need not wait.
    options: JsonObject = {"headers": {"x-user": "ana"}, "capabilities": {}}
    other = Caller(await connect(version, path="/mcp/private", **options), caller.play)
    async with asyncio.timeout(25):
        refused = await other.fetch(task, wait=50)
    assert (refused.text, refused.questions) == (STILL_ASKS, [])
    assert (await caller.fetch(task, wait=0)).text.startswith("It still runs")
    params = {"name": "get_task_result", "arguments": {"task": task}}
    answer = await caller.client.talk("tools/call", params, lambda *_: accepted("Bo"))
    assert (answer.text, len(answer.questions)) == ("Hello Bo", 1)


async def test_a_state_leads_to_no_task_of_others(
    caller: Caller, connect: Connect
) -> None:
    params = caller.play.params("task", ask_name)
    asked = (await caller.client.request("tools/call", params)).result
    retry: JsonObject = {
        "inputResponses": {"who": accepted("Eve")},
        "requestState": asked["requestState"],
    }
    eve = await connect(STATELESS, path="/mcp/private", headers={"x-user": "eve"})
    answer = await eve.request("tools/call", {**params, **retry})
    assert answer.error["code"] == -32602
    await Task.objects.all().adelete()
    answer = await caller.client.request("tools/call", {**params, **retry})
    assert answer.error["message"] == UNKNOWN


@pytest.mark.parametrize("version", [STATEFUL])
async def test_a_call_that_is_cancelled_cancels_its_task(caller: Caller) -> None:
    params = caller.play.params("task", wait_long)
    message = caller.client.message("tools/call", params)
    visit = caller.client.post(message)
    async with asyncio.timeout(60):
        while not await task_ids():
            await asyncio.sleep(0.01)
        cancelled = {"requestId": message["id"]}
        await caller.client.notify("notifications/cancelled", cancelled)
        while (await Task.objects.aget()).status != "cancelled":
            await asyncio.sleep(0.01)
    await visit.leave()


def _waits_for_task(run: Run) -> bool:
    return run.core is not None and run.request.task is None


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize("end", [End.STOPPED, End.SHUT_DOWN])
async def test_a_call_that_ends_while_it_waits_has_become_a_task(
    caller: Caller, process: Process, end: End
) -> None:
    params = caller.play.params("task", wait_long)
    visit = caller.client.post(caller.client.message("tools/call", params))
    async with asyncio.timeout(60):
        # It has a core from the moment when it waits.
        while not (calls := [c for c in process.running if _waits_for_task(c)]):
            await asyncio.sleep(0.01)
    [call] = calls
    call.stop(end)
    await visit.messages()
    assert call.ending.outcome == "task"


OFF: Final = {"DISABLED_TOOLS": ["get_task_result"], "STATE_KEYS": ["k" * 50]}
"""With keys of its own a test has no catalog of another one."""


async def listed_tools(client: Client) -> JsonObject:
    page = (await client.request("tools/list")).result
    tools = [*page["tools"]]
    while "nextCursor" in page:
        params = {"cursor": page["nextCursor"]}
        page = (await client.request("tools/list", params)).result
        tools += page["tools"]
    return {each["name"]: each for each in tools}


async def has_tool(client: Client) -> bool:
    return "get_task_result" in await listed_tools(client)


@pytest.mark.parametrize("mcp", [OFF])
async def test_where_the_tool_is_off_calls_are_calls(caller: Caller) -> None:
    async def work(ctx: Any) -> str:
        return str(ctx.task_id)

    assert (await caller.call("task", work)).text == "None"
    assert (await caller.fetch("x")).error["code"] == -32602


async def test_the_tool_is_listed_beside_those_it_is_for(
    connect: Connect,
) -> None:
    assert await has_tool(await connect(STATELESS))
    assert not await has_tool(await connect(STATELESS, path="/mcp/tagged"))
    # Who may only read does not see any of those tools.
    for may, listed in (("change", True), ("read", False)):
        headers = {"x-user": "ana", "x-may": may}
        client = await connect(STATELESS, path="/mcp/private", headers=headers)
        assert await has_tool(client) is listed
