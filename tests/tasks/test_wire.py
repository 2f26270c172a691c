"""Tasks as clients of both revisions meet them."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from functools import partial
from typing import Any, Final

import pytest
from django.db.models import F

from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import Accepted, Elicit, Sample
from mcp_app.invalidation import workers
from mcp_app.models import Call, Event, Server, Task
from mcp_app.models.stops import By, Running, Scope
from mcp_app.models.tasks import LET_GO_MS
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import InternalError
from mcp_app.protocol.tasks import RELATED_TASK
from mcp_app.server.outcome import STOPPED_CALL
from mcp_app.streams import tasks as rows
from tests.asgi_client import JsonObject
from tests.audit.reading import kept
from tests.scripting import STATEFUL, STATELESS
from tests.serving import PATIENCE_S, Connect, until
from tests.tasks.conftest import TAKES_TASKS, TakeTasks, TaskClient, be_quick, wait_long

# Before the process, which looks at its registry once.
pytestmark = pytest.mark.usefixtures("scripted_tasks")

NAME: Final = {"type": "object", "properties": {"name": {"type": "string"}}}
UNKNOWN: Final = "There is no such task, or it has expired."


def accepted(name: str) -> JsonObject:
    return {"action": "accept", "content": {"name": name}}


async def ask_name(ctx: Any) -> str:
    answer = await ctx.elicit("Who?", NAME, key="who")
    return f"Hello {answer.data['name']}" if isinstance(answer, Accepted) else "Nobody"


# -- from the call to the result --------------------------------------------------


async def test_a_call_runs_in_the_background(each: TaskClient) -> None:
    async def work(ctx: Any) -> str:
        ctx.progress(1, 3)
        await asyncio.sleep(1.5)
        return f"done by {ctx.principal.user_name} in {ctx.task_id}"

    task = await each.begin("task", work)
    async with asyncio.timeout(60):
        while (await each.get(task)).get("statusMessage") != "1 of 3":
            await asyncio.sleep(0.05)
    found = await each.until(task)
    assert found["status"] == "completed"
    assert found["createdAt"] < found["lastUpdatedAt"]
    text = f"done by ana in {task}"
    if each.stateless:
        assert found["result"]["content"][0]["text"] == text
        assert (found["ttlMs"], found["pollIntervalMs"]) == (86_400_000, 5_000)
        return
    assert "result" not in found
    result = (await each.ask("result", task)).result
    assert result["content"][0]["text"] == text
    assert result["_meta"][RELATED_TASK] == {"taskId": task}


async def test_what_is_done_at_once_is_answered_at_once(
    ana: TaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(ctx: Any) -> str:
        return "quick"

    monkeypatch.setattr("mcp_app.server.tasks.AT_ONCE_S", PATIENCE_S)
    assert (await ana.call("task", work)).text == "quick"


async def test_how_tasks_end(each: TaskClient) -> None:
    async def fail(ctx: Any) -> str:
        await asyncio.sleep(0.3)
        raise ToolError("Not today.")

    async def break_off(ctx: Any) -> str:
        await asyncio.sleep(0.3)
        raise InternalError("Broken.")

    async def take_long(ctx: Any) -> str:
        await asyncio.sleep(60)
        return ""

    errors = [await each.begin("task", fail), await each.begin("task_short", take_long)]
    broken = await each.begin("task", break_off)
    texts = ["Not today.", "task_short did not finish within 0.3 seconds."]
    for task, text in zip(errors, texts, strict=True):
        found = await each.until(task)
        # A result with isError is a failure in one of the two.
        assert found["status"] == ("completed" if each.stateless else "failed")
        assert each.stateless or found["statusMessage"] == text
        result = found.get("result") or (await each.ask("result", task)).result
        assert (result["isError"], result["content"][0]["text"]) == (True, text)
    found = await each.until(broken)
    assert (found["status"], found["statusMessage"]) == ("failed", "Broken.")
    error = found.get("error") or (await each.ask("result", broken)).error
    assert (error["code"], error["message"]) == (-32603, "Broken.")
    for task in (errors[0], broken):
        cancelled = (await each.ask("cancel", task)).answer
        assert ("error" in cancelled) is not each.stateless
        assert cancelled.get("error", {"code": -32602})["code"] == -32602
        assert (await each.get(task))["status"] != "cancelled"


async def test_a_result_may_be_deeper_than_a_request(each: TaskClient) -> None:
    deep: Any = "bottom"
    for _ in range(100):
        deep = [deep]

    async def work(ctx: Any) -> JsonObject:
        await asyncio.sleep(0.3)
        return {"deep": deep}

    task = await each.begin("task", work)
    found = await each.until(task)
    result = found.get("result") or (await each.ask("result", task)).result
    assert str(deep).replace("'", '"') in result["content"][0]["text"]


async def test_a_task_is_cancelled(each: TaskClient) -> None:
    ends = []

    def work(ctx: Any) -> str:
        while not ctx.cancelled:
            time.sleep(0.01)
        ends.append("stopped")
        return "late"

    task = await each.begin("task_sync", work)
    for request_id in range(9):
        # It is no request any more: this is not how a task is cancelled.
        wrong = {"requestId": request_id}
        await each.client.notify("notifications/cancelled", wrong)
    assert (await each.get(task))["status"] == "working"
    reply = (await each.ask("cancel", task)).result
    assert ("status" in reply) is not each.stateless
    assert (await each.get(task))["status"] == "cancelled"
    await until(lambda: ends)
    again = await each.ask("cancel", task)
    if each.stateless:
        assert "resultType" in again.result
    else:
        assert again.error["message"] == "The task has ended already: cancelled."
        assert (await each.ask("result", task)).error["code"] == -32603
    assert (await each.get(task))["status"] == "cancelled"


async def test_a_step_is_done_once_whatever_runs_again(ana: TaskClient) -> None:
    steps = []

    def note() -> int:
        steps.append(1)
        return len(steps)

    def work(ctx: Any) -> str:
        number = ctx.once("note", note)
        answer = ctx.elicit("Who?", NAME, key="who")
        return f"{number} {answer.data['name']}"

    task = await ana.begin("task_sync", work)
    await ana.until(task, "input_required")
    await ana.answer(task, who=accepted("Bo"))
    found = await ana.until(task)
    assert found["result"]["content"][0]["text"] == "1 Bo"
    assert steps == [1]


# -- questions ---------------------------------------------------------------------


async def test_questions_of_the_extension(ana: TaskClient) -> None:
    async def work(ctx: Any) -> str:
        both = await ctx.ask(one=Elicit("One?", NAME), two=Elicit("Two?", NAME))
        last = await ctx.elicit("Last?", NAME, key="last")
        return " ".join(each.data["name"] for each in [*both.values(), last])

    task = await ana.begin("task", work)
    found = await ana.until(task, "input_required")
    assert found["inputRequests"].keys() == {"one", "two"}
    await ana.answer(task, one=accepted("a"), unknown=accepted("x"))
    found = await ana.get(task)
    assert (found["status"], [*found["inputRequests"]]) == ("input_required", ["two"])
    # The first answer counts, and what does not fit is asked anew by another key.
    await ana.answer(task, one=accepted("late"), two={"action": "accept", "content": 7})
    async with asyncio.timeout(60):
        while (
            "two" in (found := await ana.until(task, "input_required"))["inputRequests"]
        ):
            await asyncio.sleep(0.01)
    assert [*found["inputRequests"]] == ["two_2"]
    await ana.answer(task, two_2=accepted("b"))
    found = await ana.until(task, "input_required")
    while "last" not in found["inputRequests"]:
        found = await ana.until(task, "input_required")
    await ana.answer(task, last=accepted("c"))
    found = await ana.until(task)
    assert found["result"]["content"][0]["text"] == "a b c"


async def test_answers_may_have_more_values_than_a_request(ana: TaskClient) -> None:
    async def work(ctx: Any) -> str:
        return str(len(await ctx.ask(one=Elicit("One?", NAME), two=Elicit("2?", NAME))))

    task = await ana.begin("task", work)
    await ana.until(task, "input_required")
    many = {"action": "accept", "content": {"more": [0] * 60_000}}
    await ana.answer(task, one=many)
    large = accepted("x" * 250_000)
    refused = await ana.ask("update", task, inputResponses={"two": large})
    text = r"The answers to this task have 370\d\d\d bytes .* 262144 are allowed\."
    assert re.fullmatch(text, refused.error["message"])
    await ana.answer(task, two=many)
    assert (await ana.until(task))["result"]["content"][0]["text"] == "2"


async def test_who_waits_sees_two_changes_in_a_millisecond(
    take_tasks: TakeTasks, process: Process
) -> None:
    client = await take_tasks(STATEFUL)
    task = await client.begin("task", ask_name)
    await client.until(task, "input_required")
    visit = client.client.begin("tasks/result", {"taskId": task})
    question = await visit.message()
    assert question is not None
    row = await Task.objects.aget(public_id=task)
    row.status, row.ended_ms, row.result = "completed", row.updated_ms, '{"content":[]}'
    await row.asave()
    process.tasks.apply_changes({row.pk})
    message = question
    async with asyncio.timeout(60):
        while "result" not in message:
            message = await visit.message()
            assert message is not None


async def test_questions_of_a_session(take_tasks: TakeTasks) -> None:
    client = await take_tasks(STATEFUL)
    task = await client.begin("task", ask_name)
    assert (await client.until(task, "input_required"))["status"] == "input_required"
    replies = []

    def answer(method: str, params: JsonObject) -> JsonObject:
        replies.append((method, params["message"], params["_meta"][RELATED_TASK]))
        return accepted("Bo")

    found = await client.client.talk("tasks/result", {"taskId": task}, answer)
    assert found.text == "Hello Bo"
    assert replies == [("elicitation/create", "Who?", {"taskId": task})]
    task = await client.begin("task", ask_name)
    large = accepted("x" * 300_000)
    visit = client.client.talk("tasks/result", {"taskId": task}, lambda *_: large)
    assert (await visit).error["message"] == "The task was cancelled."
    assert "262144 are allowed" in (await client.get(task))["statusMessage"]


@pytest.mark.parametrize("mcp", [{"LIMITS": {"questions_per_person": 1}}])
async def test_a_session_is_asked_as_much_as_it_may_be_at_once(
    take_tasks: TakeTasks,
) -> None:
    client = await take_tasks(STATEFUL)

    async def work(ctx: Any) -> str:
        return str(
            len(
                await ctx.ask(
                    one=Elicit("One?", NAME), two=Sample("A secret", max_tokens=9)
                )
            )
        )

    def answer(method: str, params: JsonObject) -> JsonObject:
        content = {"type": "text", "text": "Two"}
        sampled = {"role": "assistant", "model": "m", "content": content}
        return accepted("One") if method == "elicitation/create" else sampled

    task = await client.begin("task", work)
    await client.until(task, "input_required")
    found = await client.client.talk("tasks/result", {"taskId": task}, answer)
    assert found.text == "2"
    # What is sampled is kept no longer than it is asked.
    async with asyncio.timeout(60):
        while await Event.objects.filter(payload__contains="secret").aexists():
            await asyncio.sleep(0.01)


async def test_a_call_becomes_a_task_when_its_function_says_so(
    ana: TaskClient, connect: Connect
) -> None:
    async def work(ctx: Any) -> str:
        answer = await ctx.elicit("Who?", NAME, key="who")
        ctx.as_task()
        await asyncio.sleep(0.5)
        return f"{answer.data['name']} {ctx.task_id is not None}"

    params = ana.play.params("task_later", work)
    found = await ana.client.talk("tools/call", params, lambda *_: accepted("Bo"))
    assert found.result["resultType"] == "task"
    found_task = await ana.until(found.result["taskId"])
    assert found_task["result"]["content"][0]["text"] == "Bo True"
    # Of a client without tasks it stays a call.
    other = await connect(STATELESS, path="/mcp/private", headers={"x-user": "ana"})
    found = await other.talk("tools/call", params, lambda *_: accepted("Bo"))
    assert found.text == "Bo False"


# -- who may, and what is refused --------------------------------------------------


async def test_nobody_else_learns_of_a_task(
    each: TaskClient, take_tasks: TakeTasks
) -> None:
    task = await each.begin("task", wait_long)
    version = STATELESS if each.stateless else STATEFUL
    bob = await take_tasks(version, "bob")
    methods = ["get", "cancel"] + (["update"] if each.stateless else ["result"])
    for method in methods:
        more: JsonObject = {"inputResponses": {}} if method == "update" else {}
        answers = set()
        for identifier in (task, "no-such-task", "x" * 500):
            answer = await bob.ask(method, identifier, **more)
            assert answer.error == {"code": -32602, "message": UNKNOWN}
            answers.add(answer.raw.replace(b'"id":%d' % answer.answer["id"], b""))
        assert len(answers) == 1
    if not each.stateless:
        listed = (await bob.client.request("tasks/list")).result
        assert listed["tasks"] == []
        listed = (await each.client.request("tasks/list")).result
        assert [one["taskId"] for one in listed["tasks"]] == [task]
    await each.ask("cancel", task)


async def test_a_list_has_pages(take_tasks: TakeTasks) -> None:
    client = await take_tasks(STATEFUL)

    async def work(ctx: Any) -> str:
        return ""

    first = await client.begin("task", work)
    await client.until(first)
    row = await Task.objects.aget(public_id=first)
    for number in range(60):
        row.pk, row.public_id = None, f"more-{number}"
        await row.asave(force_insert=True)
    page = (await client.client.request("tasks/list")).result
    rest = await client.client.request("tasks/list", {"cursor": page["nextCursor"]})
    ids = [one["taskId"] for one in [*page["tasks"], *rest.result["tasks"]]]
    assert ids == [*(f"more-{n}" for n in reversed(range(60))), first]
    assert "nextCursor" not in rest.result
    wrong = await client.client.request("tasks/list", {"cursor": "x"})
    assert wrong.error["code"] == -32602


@pytest.mark.parametrize(
    ("tool", "task", "code"),
    [
        ("task_required", None, -32601),
        ("async", {}, -32601),
        ("task", {"ttl": -1}, -32602),
        ("task", {"ttl": "long"}, -32602),
        ("task", 7, -32602),
    ],
)
async def test_calls_of_a_session_that_are_refused(
    take_tasks: TakeTasks, tool: str, task: Any, code: int
) -> None:
    client = await take_tasks(STATEFUL)
    answer = await client.call(tool, be_quick, task=task)
    assert answer.error["code"] == code


async def test_a_client_without_tasks(connect: Connect, ana: TaskClient) -> None:
    options = {"path": "/mcp/private", "headers": {"x-user": "ana"}}
    client = TaskClient(await connect(STATELESS, **options), ana.play)
    for method in ("get", "update", "cancel"):
        answer = await client.ask(method, "x", inputResponses={})
        assert (answer.status, answer.error["code"]) == (400, -32021)
        needs = answer.error["data"]["requiredCapabilities"]["extensions"]
        assert needs == {"io.modelcontextprotocol/tasks": {}}
    answer = await client.call("task_required", wait_long)
    assert (answer.status, answer.error["code"]) == (400, -32021)
    listening = {"notifications": {"taskIds": ["x"]}}
    answer = await client.client.request("subscriptions/listen", listening)
    assert answer.error["code"] == -32021


@pytest.mark.parametrize("version", [STATELESS, STATEFUL, "2025-06-18"])
async def test_a_server_without_tasks(connect: Connect, version: str) -> None:
    client = await connect(version, path="/mcp/tagged", capabilities=TAKES_TASKS)
    answer = await client.request("tasks/get", {"taskId": "x"})
    assert answer.error["code"] == -32601
    assert answer.status == (404 if version == STATELESS else 200)


@pytest.mark.parametrize(
    ("version", "tool"), [(STATELESS, "async"), ("2025-06-18", "task")]
)
async def test_who_knows_no_such_request_may_send_it(
    connect: Connect, ana: TaskClient, version: str, tool: str
) -> None:
    async def work(ctx: Any) -> str:
        return "a call"

    headers = {"x-user": "ana"}
    client = await connect(version, path="/mcp/private", headers=headers)
    assert (
        await TaskClient(client, ana.play).call(tool, work, task={})
    ).text == "a call"


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tasks_per_person": 2}}])
async def test_a_person_has_few_unfinished_tasks(
    each: TaskClient, take_tasks: TakeTasks
) -> None:
    tasks = [await each.begin("task", wait_long) for _ in range(2)]
    refused = (await each.call("task", wait_long)).result
    text = refused["content"][0]["text"]
    assert refused["isError"]
    assert text.startswith("You have 2 unfinished tasks, and 2 are allowed.")
    bob = await take_tasks(STATELESS if each.stateless else STATEFUL, "bob")
    others = await bob.begin("task", wait_long)
    for client, task in [(each, tasks[0]), (each, tasks[1]), (bob, others)]:
        await client.ask("cancel", task)


@pytest.mark.parametrize("mcp", [{"LIMITS": {"ended_tasks_per_person": 2}}])
async def test_a_result_lives_as_long_as_its_client_was_told(
    take_tasks: TakeTasks, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    dora = await take_tasks(user="dora")
    options = {"path": "/mcp/private", "headers": {"x-user": "dora"}}
    waits = TaskClient(await connect(STATELESS, **options), dora.play)

    async def work(ctx: Any) -> str:
        await asyncio.sleep(0.3)
        return "done"

    # A client that has its result was told of no task.
    with monkeypatch.context() as patience:
        patience.setattr("mcp_app.server.tasks.AT_ONCE_S", PATIENCE_S)
        for _ in range(2):
            assert (await waits.call("task", be_quick)).text.startswith("in ")
    quick = Task.objects.filter(person="udora", ended_ms__gt=0)
    assert await quick.aupdate(expires_ms=F("expires_ms") - LET_GO_MS) == 2
    assert not await quick.filter(expires_ms__gt=NowMilliseconds()).aexists()
    tasks = [await dora.begin("task", work) for _ in range(2)]
    for task in tasks:
        await dora.until(task)
    refused = (await dora.call("task", work)).result
    assert refused["isError"]
    assert refused["content"][0]["text"] == rows.TOO_MANY_ENDED.format(count=2, most=2)
    for task in tasks:
        found = await dora.get(task)
        assert found["result"]["content"][0]["text"] == "done"


async def test_a_task_whose_caller_lost_access_runs_no_more(
    ana: TaskClient, process: Process
) -> None:
    task = await ana.begin("task", ask_name)
    await ana.until(task, "input_required")
    gone = Server.objects.filter(slug="private")
    await writer.run(lambda: gone.update(groups="nobody"))
    row = await Task.objects.aget(public_id=task)
    await writer.run(Task.objects.answer, row.pk, {"who": accepted("Bo")})
    await process.check_for_changes()
    async with asyncio.timeout(60):
        while row.status in ("working", "input_required"):
            row = await Task.objects.aget(public_id=task)
    await writer.run(lambda: gone.update(groups=""))
    assert (row.status, row.message) == (
        "cancelled",
        "The caller's access was taken away.",
    )


async def test_a_stop_ends_what_runs_and_what_waits(
    ana: TaskClient, process: Process
) -> None:
    running = await ana.begin("task", wait_long)
    parked = await ana.begin("task", ask_name)
    await ana.until(parked, "input_required")
    stop = await writer.run(
        partial(workers.stop, Scope.CHANGES, None, by=By("kim"), running=Running.CANCEL)
    )
    await process.check_for_changes()
    found = await ana.until(running)
    assert (found["status"], found["error"]["message"]) == ("failed", STOPPED_CALL)
    await ana.answer(parked, who=accepted("Bo"))
    found = await ana.until(parked)
    assert found["result"]["isError"]
    assert "switched off" in found["result"]["content"][0]["text"]
    await writer.run(partial(workers.start, [stop.pk], by=By("kim")))


# -- places, streams, records ------------------------------------------------------


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tasks_per_process": 1}}])
async def test_what_finds_no_place_waits(ana: TaskClient) -> None:
    released, order = asyncio.Event(), []

    def work(name: str) -> Any:
        async def run(ctx: Any) -> str:
            order.append(name)
            await released.wait()
            return name

        return run

    tasks = [await ana.begin("task", work(name)) for name in "abc"]
    assert order == ["a"]
    waiting = [await Task.objects.aget(public_id=task) for task in tasks]
    assert [bool(each.owner) for each in waiting] == [True, False, False]
    released.set()
    for task, name in zip(tasks, "abc", strict=True):
        found = await ana.until(task)
        assert found["result"]["content"][0]["text"] == name
    assert order == ["a", "b", "c"]


@pytest.mark.parametrize(("user", "number"), [("ana", 2), ("", 1)])
async def test_nobody_waits_for_tasks_of_one_person(
    take_tasks: TakeTasks, user: str, number: int
) -> None:
    """Of four places one person has two, and all strangers have one."""
    released, entered = asyncio.Event(), list[str]()

    async def work(ctx: Any) -> str:
        entered.append(ctx.task_id)
        await released.wait()
        return "done"

    many, bob = await take_tasks(user=user), await take_tasks(user="bob")
    tasks = [await many.begin("task", work) for _ in range(5)]
    found = await bob.until(await bob.begin("task", ask_name), "input_required")
    assert "who" in found["inputRequests"]
    assert entered == tasks[:number]
    released.set()
    for task in tasks:
        await many.until(task)
    assert entered == tasks


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tasks_per_process": 1}}])
async def test_no_place_is_taken_while_a_claim_is_under_way(
    ana: TaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, goes_on, released = asyncio.Event(), threading.Event(), asyncio.Event()
    loop, order = asyncio.get_running_loop(), list[str]()
    claim_tasks = rows.claim_tasks

    def claim(*arguments: Any) -> Any:
        loop.call_soon_threadsafe(claims.set)
        goes_on.wait(60)
        return claim_tasks(*arguments)

    def work(name: str) -> Any:
        async def run(ctx: Any) -> str:
            order.append(name)
            if name == "a":
                await released.wait()
                return name
            return await wait_long(ctx)

        return run

    for name in "ab":
        await ana.begin("task", work(name))
    monkeypatch.setattr(rows, "claim_tasks", claim)
    released.set()
    await claims.wait()
    third = asyncio.create_task(ana.begin("task", work("c")))
    async with asyncio.timeout(60):
        while writer._queue.empty():
            await asyncio.sleep(0)
    goes_on.set()
    row = await Task.objects.aget(public_id=await third)
    await ana.ask("get", row.public_id)
    assert (order, row.owner) == (["a", "b"], "")


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tasks_per_process": 1}}])
async def test_a_process_that_stops_claims_no_more(
    ana: TaskClient, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, goes_on, released = asyncio.Event(), threading.Event(), asyncio.Event()
    loop, claim_tasks, count = asyncio.get_running_loop(), rows.claim_tasks, 0

    def claim(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count > 1:
            return claim_tasks(*arguments)
        loop.call_soon_threadsafe(claims.set)
        goes_on.wait(60)
        # Others were faster.
        return []

    async def work(ctx: Any) -> str:
        await released.wait()
        return "done"

    _, second = [await ana.begin("task", work) for _ in range(2)]
    monkeypatch.setattr(rows, "claim_tasks", claim)
    released.set()
    await claims.wait()
    process.tasks.claim_soon()
    monkeypatch.setattr(process, "stopping", True)
    goes_on.set()
    async with asyncio.timeout(60):
        while process.tasks._is_claiming:
            await asyncio.sleep(0.01)
    assert count == 1
    assert (await Task.objects.aget(public_id=second)).owner == ""


async def test_a_stream_is_told_of_tasks(
    ana: TaskClient, take_tasks: TakeTasks
) -> None:
    bob = await take_tasks(STATELESS, "bob")
    foreign = await bob.begin("task", wait_long)

    async def work(ctx: Any) -> str:
        ctx.progress(1, 2)
        ctx.log("error", "Look!")
        return await ask_name(ctx)

    task = await ana.begin("task", work, _meta={"progressToken": "t"})
    wanted = {"notifications": {"taskIds": [task, foreign, "none"]}}
    stream = ana.client.begin("subscriptions/listen", wanted)
    first = await stream.message()
    assert first is not None
    assert first["params"]["notifications"] == {"taskIds": [task]}
    await ana.until(task, "input_required")
    await ana.answer(task, who=accepted("Bo"))
    message: JsonObject | None = first
    while message is not None and message["params"].get("status") != "completed":
        message = await stream.message()
        assert message is not None
        assert message["method"] == "notifications/tasks"
    assert message is not None
    assert message["params"]["result"]["content"][0]["text"] == "Hello Bo"
    # It is all that a poll would say.
    polled = await ana.get(task)
    assert {**polled, "_meta": message["params"]["_meta"]} == {
        **message["params"],
        "resultType": "complete",
    }
    await stream.leave()
    await bob.ask("cancel", foreign)


async def test_the_call_log_has_the_call_and_each_run(
    ana: TaskClient, process: Process
) -> None:
    task = await ana.begin("task", ask_name)
    await ana.until(task, "input_required")
    await ana.answer(task, who=accepted("Bo"))
    await ana.until(task)
    calls: list[Call] = await kept(process)
    outcomes = [(call.outcome, call.session) for call in calls if call.name == "task"]
    handle = f"t:{task[:14]}"
    assert sorted(outcomes) == sorted(
        [("task", ""), ("asked", handle), ("answered", handle)]
    )
    assert {call.user_name for call in calls} == {"ana"}
