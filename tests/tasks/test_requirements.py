"""What the specifications demand of tasks, and what nobody may do with them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from mcp_app.auth.token_cache import token_cache
from mcp_app.catalog.stops import SWITCHED_OFF
from mcp_app.conf import BY_TOKEN
from mcp_app.invalidation import workers
from mcp_app.models import AccessToken, Server, Stop, Task, Worker, transactions
from mcp_app.models.stops import By, Running, Scope
from mcp_app.pools.database import lookups, writer
from mcp_app.process import heartbeat, tasks
from mcp_app.process.runtime import Process
from mcp_app.process.stored_calls import LOST_ACCESS
from mcp_app.process.task_call import TaskCall
from mcp_app.protocol.tasks import EXTENSION, RELATED_TASK
from mcp_app.server.outcome import STOPPED_CALL
from tests import scripting
from tests.asgi_client import EVERYTHING, Client, JsonObject, outcome
from tests.process.test_callers import Known
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import RATES, Connect
from tests.statements import counted, failing
from tests.tasks.conftest import TAKES_TASKS, TakeTasks, TaskClient, be_quick, wait_long
from tests.tasks.test_wire import UNKNOWN, accepted, ask_name
from tests.wire.middleware import WireCheck

# Before the process, which looks at its registry once.
pytestmark = pytest.mark.usefixtures("scripted_tasks")

ANA: Final[JsonObject] = {"path": "/mcp/private", "headers": {"x-user": "ana"}}
OTHER: Final[JsonObject] = {"_meta": {RELATED_TASK: {"taskId": "another"}}}
KIM: Final = By("kim")
HOUR_MS: Final = 3_600_000


# -- the specifications --------------------------------------------------------------


@pytest.mark.parametrize("options", [ANA, {}])
async def test_a_session_is_told_of_tasks(
    application: WireCheck, options: JsonObject
) -> None:
    client = Client(application, STATEFUL, **options)
    opened = await client.sent(client.initialize())
    # Nobody else's tasks are listed where nobody says who asks.
    lists: JsonObject = {"list": {}} if options else {}
    expected = {**lists, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert opened.result["capabilities"]["tasks"] == expected
    client.session = opened.headers["mcp-session-id"]
    answer = (await client.request("tasks/list")).answer
    assert answer.get("error", {}).get("code") == (None if options else -32601)


async def test_the_extension_has_no_capability_of_the_older_revision(
    ana: TaskClient,
) -> None:
    told = (await ana.client.request("server/discover")).result["capabilities"]
    assert (told["extensions"][EXTENSION], told.get("tasks")) == ({}, None)
    for method in ("tasks/result", "tasks/list"):
        answer = await ana.client.request(method, {"taskId": "x"})
        assert (answer.status, answer.error["code"]) == (404, -32601)


@pytest.mark.parametrize(
    ("version", "capabilities"),
    [(STATEFUL, TAKES_TASKS), (STATELESS, {**EVERYTHING, "tasks": {"cancel": {}}})],
)
async def test_no_revision_takes_what_the_other_declares(
    connect: Connect, ana: TaskClient, version: str, capabilities: JsonObject
) -> None:
    async def work(ctx: Any) -> str:
        ctx.as_task()
        return f"in {ctx.task_id}"

    client = await connect(version, **ANA, capabilities=capabilities)
    params = ana.play.params("task_later", work)
    assert (await client.request("tools/call", params)).text == "in None"


async def test_the_form_of_each_answer(each: TaskClient) -> None:
    created = (await each.call("task", wait_long)).result
    task = created if each.stateless else created["task"]
    polled = await each.ask("get", task["taskId"], **({} if each.stateless else OTHER))
    assert polled.headers["content-type"] == "application/json"
    tasks = [task, polled.result]
    if each.stateless:
        kinds = [one["resultType"] for one in tasks]
        assert kinds == ["task", "complete"]
        for method in ("update", "cancel"):
            answer = await each.ask(method, task["taskId"], inputResponses={})
            assert {**answer.result, "_meta": 0} == {
                "resultType": "complete",
                "_meta": 0,
            }
    else:
        tasks += (await each.client.request("tasks/list")).result["tasks"]
        tasks.append((await each.ask("cancel", task["taskId"], **OTHER)).result)
    for one in tasks:
        assert one["taskId"] == task["taskId"]
        assert RELATED_TASK not in one.get("_meta", {})
        times = [one["createdAt"], one["lastUpdatedAt"]]
        assert all(datetime.fromisoformat(time).tzinfo for time in times)


async def test_how_long_tasks_live_and_what_they_are_called(
    take_tasks: TakeTasks,
) -> None:
    client, ids, day_ms = await take_tasks(STATEFUL), set(), 86_400_000
    for ttl, lives in (None, day_ms), (120_000, 120_000), (1e12, day_ms), (1, 60_000):
        # One that is done at once is a task all the same.
        wanted = {"ttl": ttl, "taskId": "mine"}
        task = (await client.call("task", be_quick, task=wanted)).result["task"]
        assert task["ttl"] == (await client.get(task["taskId"]))["ttl"] == lives
        assert re.fullmatch(r"[\w-]{32}", task["taskId"])
        ids.add(task["taskId"])
    assert len(ids) == 4


async def test_who_waits_for_a_result_may_leave(take_tasks: TakeTasks) -> None:
    client, released = await take_tasks(STATEFUL), asyncio.Event()

    async def work(ctx: Any) -> str:
        await released.wait()
        return "done"

    task = await client.begin("task", work)
    params, wrong = {"taskId": task, **OTHER}, {"accept": "text/html"}
    visit = client.client.begin("tasks/result", params)
    await asyncio.sleep(0.1)
    assert not visit.task.done()
    await visit.leave()
    assert (await client.get(task))["status"] == "working"
    visit = client.client.begin("tasks/result", params)
    released.set()
    assert (await outcome(visit)).text == "done"
    answer = await client.client.request("tasks/result", params, headers=wrong)
    assert answer.status == 406


async def test_who_may_go_on_with_a_task(
    each: TaskClient, take_tasks: TakeTasks, connect: Connect
) -> None:
    task = await each.begin("task", wait_long)
    # Another token of the same person may not, ...
    headers = {"x-user": "ana", "x-client": "another"}
    other = await connect(STATEFUL, path="/mcp/private", headers=headers)
    assert (await other.request("tasks/list")).result["tasks"] == []
    # ... another session may, in each revision, ...
    other = await take_tasks(STATEFUL if each.stateless else STATELESS)
    assert (await other.get(task))["status"] == "working"
    await other.ask("cancel", task)
    assert (await each.get(task))["status"] == "cancelled"
    # ... but not if nobody knows whose it is.
    one, two = [TaskClient(await connect(STATEFUL), each.play) for _ in range(2)]
    task = await one.begin("task", be_quick)
    assert (await two.ask("get", task)).error["message"] == UNKNOWN
    assert (await one.until(task))["status"] == "completed"


async def test_wrong_requests(each: TaskClient) -> None:
    task = await each.begin("task", wait_long)
    for method in ("get", "cancel", "update" if each.stateless else "result"):
        answer = await each.client.request(f"tasks/{method}", {"inputResponses": {}})
        assert answer.error["code"] == -32602
    if each.stateless:
        assert (await each.ask("update", task)).error["code"] == -32602
        message = each.client.message("tasks/get", {"taskId": task})
        for wrong in {"mcp-name": "another"}, {"mcp-method": "tasks/cancel"}:
            assert (await each.client.sent(message, wrong)).error["code"] == -32020
        # Some clients leave it out.
        assert (await each.client.sent(message, {"mcp-name": None})).result
    async with failing("mcp_app_task"):
        answer = await each.ask("get", task)
    assert (answer.status, answer.error["code"]) == (503, -32603)
    await each.ask("cancel", task)
    await Task.objects.aupdate(expires_ms=1)
    assert (await each.ask("get", task)).error["message"] == UNKNOWN


# -- rights, floods, clocks ------------------------------------------------------------

LOSSES: Final[dict[str, Callable[[Known], object]]] = {
    "token": lambda known: AccessToken.objects.get(user=known.user).revoke(),
    "permission": lambda known: known.user.groups.clear(),
    "stop": lambda known: workers.stop(
        Scope.CHANGES, None, by=KIM, running=Running.CANCEL
    ),
}
ONE_PLACE: Final = {
    "AUTHENTICATION": BY_TOKEN,
    "LIMITS": {"tasks_per_process": 1, **RATES},
}


@pytest.mark.parametrize("mcp", [ONE_PLACE])
@pytest.mark.parametrize("loss", LOSSES)
async def test_what_a_caller_has_begun_ends_with_its_rights(
    process: Process,
    application: WireCheck,
    connect: Connect,
    take_tasks: TakeTasks,
    loss: str,
) -> None:
    token_cache.forget_all()
    known = await writer.run(Known, process, application)
    await process.gate.wait_for_check()
    headers = {"authorization": f"Bearer {known.tokens[0]}"}
    options = {"path": "/mcp/kept", "headers": headers, "capabilities": TAKES_TASKS}
    client = TaskClient(await connect(STATELESS, **options), scripting.Play(connect))
    entered = []

    async def work(ctx: Any) -> str:
        entered.append(ctx.task_id)
        return await (wait_long if len(entered) > 1 else ask_name)(ctx)

    parked = await client.begin("task", work)
    await client.until(parked, "input_required")
    tasks = [await client.begin("task", work) for _ in range(2)] + [parked]
    await writer.run(LOSSES[loss], known)
    row = await Task.objects.aget(public_id=parked)
    await writer.run(Task.objects.answer, row.pk, {"who": accepted("Bo")})
    async with asyncio.timeout(60):
        while await Task.objects.filter(ended_ms=None).aexists():
            await process.check_for_changes()
            await asyncio.sleep(0.01)
    rows = [await Task.objects.aget(public_id=task) for task in tasks]
    await writer.run(known.erase)
    await writer.run(lambda: workers.start([s.pk for s in Stop.objects.all()], by=KIM))
    await process.gate.wait_for_check()
    # One ran, one waited, and one was parked.
    assert entered == [parked, tasks[0]]
    assert json.loads(rows[0].error)["message"] == STOPPED_CALL
    for row in rows[1:]:
        if loss == "stop":
            assert SWITCHED_OFF.format(what="tool") in row.result
        else:
            assert (row.status, row.message) == ("cancelled", LOST_ACCESS)


BY_NAME: Final = {"AUTHENTICATION": {"name": "tests.auth.callables.by_name"}}


@pytest.mark.parametrize("mcp", [BY_NAME])
@pytest.mark.parametrize("step", [User.delete, User.save])
async def test_a_task_ends_with_its_user(
    process: Process,
    connect: Connect,
    take_tasks: TakeTasks,
    step: Callable[[User], object],
) -> None:
    """Where the site says who calls, and the server demands nothing."""
    server = await writer.run(lambda: published(Server(slug="named", access="name")))
    user = await writer.run(User.objects.create_user, "tom")
    await process.gate.wait_for_check()
    options = {"path": "/mcp/named", "headers": {"x-name": "tom"}}
    client = await connect(STATELESS, **options, capabilities=TAKES_TASKS)
    tom = TaskClient(client, scripting.Play(connect))
    task = await tom.begin("task", wait_long)
    user.is_active = False
    await writer.run(step, user)
    row = await Task.objects.aget(public_id=task)
    async with asyncio.timeout(60):
        while row.ended_ms is None:
            await process.check_for_changes()
            await asyncio.sleep(0.01)
            await row.arefresh_from_db()
    await writer.run(User.objects.filter(username="tom").delete)
    await writer.run(server.delete)
    assert json.loads(row.error)["message"] == STOPPED_CALL


async def test_a_result_that_the_database_refuses(
    each: TaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TaskCall.store_ending

    def refuse_result(run: TaskCall) -> None:
        # One that is larger than a packet of MySQL.
        if "result" in run.ending:
            raise OperationalError("Server has gone away")
        store(run)

    monkeypatch.setattr(TaskCall, "store_ending", refuse_result)
    monkeypatch.setattr(tasks, "STORE_TIMEOUT_S", 0)
    monkeypatch.setattr(tasks, "RETRY_S", 0.01)
    monkeypatch.setattr(heartbeat, "STEADY", 0)
    task = await each.until(await each.begin("task", be_quick))
    assert task["status"] == "failed"
    assert task["statusMessage"] == "The result of this task cannot be stored."


queue: Final[list[str]] = []


def enqueue(task_id: str) -> None:
    queue.append(task_id)
    if len(queue) == 1:
        raise ConnectionError("The broker is away.")


@pytest.mark.parametrize("mcp", [{"TASKS": f"{__name__}.enqueue"}])
async def test_a_queue_is_told_until_it_takes_a_task(
    process: Process, ana: TaskClient
) -> None:
    queue.clear()
    task = await ana.begin("task", be_quick)
    async with asyncio.timeout(10):
        while len(queue) < 2:
            await Task.objects.aupdate(send_ms=0)
            process.tasks.claim_soon()
            await asyncio.sleep(0.01)
    # A doubled message does nothing.
    ran = [await process.tasks.run_waiting(int(queue[0])) for _ in range(2)]
    assert ran == [True, False]
    assert (await ana.get(task))["status"] == "completed"


async def test_a_process_that_claims_does_not_rest(process: Process) -> None:
    claim = asyncio.ensure_future(process.tasks.run_waiting(0))
    await asyncio.sleep(0)
    assert len(process.tasks) == 1
    assert await claim is False
    assert len(process.tasks) == 0


FEW: Final = {"LIMITS": {"request_rate": 100, "request_burst": 100}}


@pytest.mark.parametrize("mcp", [FEW])
async def test_a_flood_of_polls_hurts_nobody_else(
    ana: TaskClient, take_tasks: TakeTasks, process: Process
) -> None:
    task, bob = await ana.begin("task", wait_long), await take_tasks(user="bob")
    ids = [*[task] * 100, *(f"unknown-{number}" for number in range(100))]
    async with counted([lookups]) as statements:
        found = await asyncio.gather(*map(process.tasks.find, ids))
        assert len(statements) == 1
        assert [each is not None for each in found] == [True] * 100 + [False] * 100
        polls = [bob.client.begin("tasks/get", {"taskId": each}) for each in ids]
        health = Client(bob.client.application, path="/mcp/health").visit("GET")
        assert (await health.begun()).status == 200
        assert (await ana.get(task))["status"] == "working"
        answers = [await outcome(each) for each in polls]
    assert {each.status for each in answers} == {200, 429}
    assert {each.error["code"] for each in answers} == {-32602, -32603}
    assert len(statements) < 10
    await ana.ask("cancel", task)


async def test_arguments_of_a_task_have_a_limit(each: TaskClient) -> None:
    async def work(ctx: Any) -> str:
        await asyncio.sleep(0.3)
        return "done"

    name = "x" * 250_000
    scripting._scripts[name] = work
    task = await each.begin("task", work, arguments={"script": name})
    assert (await each.until(task))["status"] == "completed"
    large = (await each.call("task", work, arguments={"script": 2 * name})).result
    assert large["isError"]
    text = r"This call has 500\d\d\d bytes with its arguments, and 262144 are allowed"
    assert re.match(text, large["content"][0]["text"])
    huge = {"arguments": {"script": 20 * name}}
    refused = await each.call("task", work, **huge)
    call = await each.call("async", work, task=None, **huge)
    assert (refused.status, refused.error) == (413, call.error)


async def test_a_clock_that_jumps_loses_no_task(
    ana: TaskClient, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, released = [], asyncio.Event()

    async def work(ctx: Any) -> str:
        entered.append(ctx.task_id)
        await released.wait()
        return await ask_name(ctx)

    monkeypatch.setattr(heartbeat, "STEADY", 0.0)
    now = transactions.NowMilliseconds()
    await Worker.objects.acreate(pk="other", pid=1, started_ms=1, seen_ms=now)
    tasks = [await ana.begin("task", work) for _ in "abc"]
    elsewhere = Task.objects.filter(public_id=tasks[2])
    assert await elsewhere.filter(owner="").aupdate(owner="other") == 1
    clocks: Any = now.clocks
    for jump in (HOUR_MS, -2 * HOUR_MS):
        for vendor, clock in clocks.items():
            monkeypatch.setitem(clocks, vendor, f"({clock} + {jump})")
        for _ in range(3):
            await process.heartbeat._try_to_beat()
        statuses = [(await ana.get(task))["status"] for task in tasks]
        assert (statuses, entered) == (["working"] * 3, tasks[:2])
    assert await elsewhere.filter(owner="other").aupdate(owner="") == 1
    released.set()
    for task in tasks:
        await ana.until(task, "input_required")
        await ana.answer(task, who=accepted("Bo"))
        assert (await ana.until(task))["status"] == "completed"
    # Each began once, and once more with the answer.
    assert sorted(entered) == sorted(tasks * 2)
