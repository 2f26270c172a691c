"""Where user code runs: threads, transactions, connections, and what is around."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.signals import got_request_exception
from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone, translation

from mcp_app import CallCancelled, Context, Elicit, SyncContext, ToolError
from mcp_app.catalog.runnable import Gate, Runnable
from mcp_app.interface.principal import Principal, Rights
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import LATEST
from mcp_app.server import invocation
from mcp_app.server.request import Request
from mcp_app.server.run import Run
from tests.asgi_client import Visit, outcome
from tests.drill.models import Ledger
from tests.scripting import STATEFUL, STATELESS, Play
from tests.server import context_managers
from tests.serving import Connect, until

pytestmark = [pytest.mark.usefixtures("scripted"), pytest.mark.databases]

Script: TypeAlias = Callable[[Any], Any]
PATIENCE_S: Final = 60


def signed_in(user: str) -> dict[str, Any]:
    return {"path": "/mcp/private", "headers": {"x-user": user}}


SIGNED_IN: Final = signed_in("7")
FORM: Final = {"type": "object", "properties": {"cake": {"type": "string"}}}


@pytest.fixture
def line() -> str:
    return uuid4().hex


def enter(line: str) -> None:
    Ledger.objects.create(key=line, worker="a test")


async def lines(line: str) -> int:
    return await writer.run(Ledger.objects.filter(key=line).count)


def inside(*managers: str) -> dict[str, list[str]]:
    """Return the setting of a site that puts these managers around calls."""
    place = context_managers.__name__
    return {"CALL_CONTEXT_MANAGERS": [f"{place}.{each}" for each in managers]}


def runs(ctx: SyncContext) -> str:
    return "ran"


async def text_of(visit: Visit) -> str:
    text: str = (await visit.messages())[-1]["result"]["content"][0]["text"]
    return text


@dataclass
class Held:
    """A script that holds its thread until it may go on."""

    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, ctx: SyncContext) -> str:
        self.entered.release()
        assert self.go.wait(PATIENCE_S)
        return "held"

    async def have_entered(self, count: int = 1) -> None:
        for _ in range(count):
            await asyncio.to_thread(self.entered.acquire, timeout=PATIENCE_S)


def entering(line: str, error: BaseException | None = None) -> Script:
    def script(ctx: SyncContext) -> str:
        enter(line)
        if error is not None:
            raise error
        return "entered"

    return script


def aentering(line: str, error: BaseException | None = None) -> Script:
    async def script(ctx: Context) -> str:
        await Ledger.objects.acreate(key=line, worker="a test")
        if error is not None:
            raise error
        return "entered"

    return script


# -- transactions -----------------------------------------------------------------


@pytest.fixture
def atomic_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)


@pytest.mark.parametrize("error", [ValueError("no"), ToolError("no")])
@pytest.mark.parametrize(
    ("tool", "script", "kept"),
    [
        # Async functions have no transaction unless they say so.
        *(("async", aentering, (1, 1)), ("database", aentering, (1, 1))),
        *(("sync", entering, (1, 0)), ("not_atomic", entering, (1, 1))),
        *(("atomic_sync", entering, (0, 0)), ("atomic", aentering, (0, 0))),
    ],
)
@pytest.mark.parametrize("is_atomic", [False, True])
async def test_rows_of_a_call_that_raises(
    play: Play,
    line: str,
    request: pytest.FixtureRequest,
    tool: str,
    script: Callable[..., Script],
    kept: tuple[int, int],
    is_atomic: bool,
    error: Exception,
) -> None:
    """Where each request is a transaction of its own, sync functions are in one."""
    if is_atomic:
        request.getfixturevalue("atomic_requests")
    outcome = await play(tool, script(line, error))
    assert outcome.result["isError"] is True
    assert await lines(line) == kept[is_atomic]


@pytest.mark.usefixtures("atomic_requests")
@pytest.mark.parametrize(
    ("tool", "script"),
    [("sync", entering), ("atomic", aentering), ("atomic_sync", entering)],
)
async def test_rows_of_a_call_that_returns(
    play: Play, line: str, tool: str, script: Callable[..., Script]
) -> None:
    assert (await play(tool, script(line))).text == "entered"
    assert await lines(line) == 1


async def test_a_transaction_on_another_loop_is_nobody_elses(
    play: Play, connect: Connect, line: str
) -> None:
    """An atomic call that fails neither keeps its rows nor takes others along."""
    entered, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def fails(ctx: Context) -> None:
        await Ledger.objects.acreate(key=f"{line}-lost", worker="a test")
        loop.call_soon_threadsafe(entered.set)
        await asyncio.to_thread(go.wait, PATIENCE_S)
        raise ValueError("It is all taken back.")

    client = await connect(STATELESS)
    failing = play.begin("atomic", fails, client)
    await entered.wait()
    # On SQLite the others wait for the lock; elsewhere they are done at once.
    others = [
        play.begin(tool, script(line), client)
        for tool, script in (
            ("async", aentering),
            ("database", aentering),
            ("sync", entering),
        )
    ]
    go.set()
    assert (await failing.messages())[-1]["result"]["isError"] is True
    for each in others:
        assert "isError" not in (await each.messages())[-1]["result"]
    assert (await lines(line), await lines(f"{line}-lost")) == (3, 0)


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_rows_of_a_call_that_was_cancelled_are_taken_back(
    play: Play, connect: Connect, line: str, version: str
) -> None:
    entered, go, over = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def script(ctx: SyncContext) -> str:
        enter(line)
        transaction.on_commit(lambda: None)
        loop.call_soon_threadsafe(entered.set)
        go.wait(PATIENCE_S)
        return "entered"

    def around(ctx: SyncContext) -> str:
        try:
            return script(ctx)
        finally:
            loop.call_soon_threadsafe(over.set)

    client = await connect(version)
    message = client.message("tools/call", play.params("atomic_sync", around))
    visit = client.post(message)
    await entered.wait()
    if client.revision.stateless:
        await visit.leave()
    else:
        params = {"requestId": message["id"]}
        await client.notify("notifications/cancelled", params)
        assert await visit.messages() == []
    go.set()
    await over.wait()
    assert await lines(line) == 0


async def test_rows_of_a_call_past_its_time_are_taken_back(
    play: Play, line: str
) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def script(ctx: SyncContext) -> str:
        enter(line)
        try:
            while not ctx.cancelled:
                threading.Event().wait(0.01)
            return "entered"
        finally:
            loop.call_soon_threadsafe(over.set)

    outcome = await play("short_atomic", script)
    assert "did not finish within 0.3 seconds" in outcome.text
    await over.wait()
    assert await lines(line) == 0


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize("tool", ["atomic", "atomic_sync"])
async def test_a_question_in_a_transaction_is_refused_with_its_line(
    play: Play,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
    version: str,
    tool: str,
) -> None:
    async def script(ctx: Context) -> None:
        await ctx.ask(cake=Elicit("Which cake?", FORM))

    def script_sync(ctx: SyncContext) -> None:
        ctx.ask(cake=Elicit("Which cake?", FORM))

    chosen = script if tool == "atomic" else script_sync
    client = await connect(version)
    outcome = await play(tool, chosen, client=client)
    assert outcome.result["isError"] is True
    [record] = [each for each in caplog.records if "A call failed" in each.message]
    assert f"({record.failure})." in record.message  # type: ignore[attr-defined]
    assert record.exc_info is not None
    said = str(record.exc_info[1])
    asked = chosen.__code__.co_firstlineno + 1
    assert f"inside a transaction on 'default' at {__file__}:{asked}." in said
    assert "atomic=False" in said


async def test_a_question_outside_of_the_users_own_transaction(
    play: Play, connect: Connect
) -> None:
    def script(ctx: SyncContext) -> str:
        with transaction.atomic():
            pass
        ctx.ask(cake=Elicit("Which cake?", FORM))
        return "asked"

    def accept(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"cake": "plum"}}

    client = await connect(STATEFUL)
    outcome = await play("sync", script, client=client, answer=accept)
    assert outcome.text == "asked"


# -- connections and threads ---------------------------------------------------------


BREAK: Final = {
    "postgresql": "SELECT pg_terminate_backend(pg_backend_pid())",
    "mysql": "KILL CONNECTION_ID()",
}


def broken() -> None:
    """Let the database end this thread's connection; SQLite has nobody who could."""
    with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute(BREAK.get(connection.vendor, "SELECT 1"))


def looking() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return threading.get_ident()


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
async def test_each_call_in_a_thread_begins_with_usable_connections(play: Play) -> None:
    def breaks(ctx: SyncContext) -> int:
        broken()
        return threading.get_ident()

    def looks(ctx: SyncContext) -> int:
        return looking()

    first, second = await play("sync", breaks), await play("sync", looks)
    assert first.result["structuredContent"] == second.result["structuredContent"]


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
@pytest.mark.parametrize(
    ("version", "header"), [(STATEFUL, ""), (STATELESS, "x-forwarded-for")]
)
async def test_strangers_without_a_known_address_take_turns(
    play: Play, connect: Connect, version: str, header: str
) -> None:
    """They are told apart by session, or by what a proxy says of them."""
    many, other = [
        await connect(version, headers={header: f"9.9.9.9, {each}"} if header else {})
        for each in ("192.0.2.1", "192.0.2.2")
    ]
    busy, released = list[int](), threading.Event()

    def holds(ctx: SyncContext) -> str:
        busy.append(1)
        assert released.wait(PATIENCE_S)
        return "busy"

    slow = [many.begin("tools/call", play.params("sync", holds)) for _ in range(5)]
    await until(lambda: busy)
    answer = await other.request(
        "tools/call", play.params("sync", lambda ctx: len(busy))
    )
    assert answer.text == "1"
    released.set()
    assert [(await outcome(each)).text for each in slow] == ["busy"] * 5


@pytest.mark.parametrize("mcp", [{}, inside("of_tenant")])
async def test_async_code_recovers_from_a_connection_that_broke(
    play: Play, line: str
) -> None:
    async def breaks(ctx: Context) -> None:
        await sync_to_async(broken)()
        await sync_to_async(looking)()
        raise LookupError("SQLite does not break.")

    assert (await play("async", breaks)).result["isError"] is True
    assert (await play("async", aentering(line))).text == "entered"
    assert await lines(line) == 1


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
@pytest.mark.parametrize("tool", ["sync", "async"])
async def test_language_and_time_zone_stay_in_their_call(play: Play, tool: str) -> None:
    def state() -> list[str | None]:
        return [translation.get_language(), timezone.get_current_timezone_name()]

    def travels(ctx: Context | SyncContext) -> Any:
        found = state()
        translation.activate("de")
        timezone.activate("Asia/Tokyo")
        return found

    async def atravels(ctx: Context) -> Any:
        return travels(ctx)

    found = [
        (await play(tool, travels if tool == "sync" else atravels)).result[
            "structuredContent"
        ]["result"]
        for _ in range(2)
    ]
    assert found == [["en-us", "UTC"]] * 2
    assert state() == ["en-us", "UTC"]


async def test_an_async_function_runs_on_the_loop_of_the_process(
    play: Play, process: Process
) -> None:
    async def script(ctx: Context) -> bool:
        return asyncio.get_running_loop() is process.loop

    for tool, here in (("async", True), ("database", False), ("atomic", False)):
        found = (await play(tool, script)).result["structuredContent"]
        assert found == {"result": here}


async def test_a_generators_end_that_leaks_is_an_exception(play: Play) -> None:
    """A future cannot carry StopIteration (PEP 479)."""

    def script(ctx: SyncContext) -> None:
        raise StopIteration

    assert (await play("sync", script)).result["isError"] is True


async def test_a_call_that_ended_before_a_thread_was_free_does_not_run(
    play: Play, connect: Connect, process: Process
) -> None:
    ran: list[SyncContext] = []
    client = await connect(STATELESS, **SIGNED_IN)
    holds = Held()
    holding = [play.begin("sync", holds, client) for _ in range(process.threads.size)]
    await holds.have_entered(process.threads.size)
    waiting = play.begin("sync", ran.append, client)
    while not process.threads._turns.number:
        await asyncio.sleep(0.001)
    await waiting.leave()
    holds.go.set()
    for each in holding:
        await each.messages()
    assert ran == []
    assert process.threads.uncounted_threads == 0


@pytest.mark.parametrize(
    ("owner", "other"), [({}, SIGNED_IN), (SIGNED_IN, signed_in("8"))]
)
async def test_t20_who_leaves_does_not_take_all_threads(
    play: Play,
    connect: Connect,
    process: Process,
    owner: dict[str, Any],
    other: dict[str, Any],
) -> None:
    """The threads of a caller's calls go on without the caller, and count."""
    holds = Held()
    leaver = await connect(STATELESS, **owner)
    for _ in range(process.threads.ceiling // 2):
        visit = play.begin("sync", holds, leaver)
        await holds.have_entered()
        await visit.leave()
    assert (await play("sync", runs, client=leaver)).status == 503
    client = await connect(STATELESS, **other)
    assert (await play("sync", runs, client=client)).text == "ran"
    holds.go.set()


@pytest.mark.parametrize("number", [1, 2, 10])
async def test_t20_one_caller_holds_half_of_the_places_of_a_gate(
    process: Process, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The other half is for others, at once; a gate of one goes by turns."""
    await process.gate.wait_for_check()
    monkeypatch.setattr(invocation, "GATE_S", PATIENCE_S)
    first_over, all_over = threading.Event(), threading.Event()
    begun: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def holds(owner: str, over: threading.Event) -> str:
        loop.call_soon_threadsafe(begun.put_nowait, owner)
        assert over.wait(PATIENCE_S)
        return owner

    gated: Runnable[str] = Runnable(
        run=holds, style="sync", bind=dict, convert=str, gate=Gate("shop", number)
    )

    def call(user: str, over: threading.Event) -> asyncio.Future[str]:
        called = _calling(process, Principal(kind="user", user_id=user))
        run = process.adapters.user_code.run
        arguments = {"owner": user, "over": over}
        return asyncio.ensure_future(run(called, gated, arguments, str))

    own = [call("ann", first_over if i == 0 else all_over) for i in range(number)]
    for _ in range(max(1, number // 2)):
        assert await begun.get() == "ann"
    other = call("ben", all_over)
    if number == 1:
        first_over.set()
    assert await begun.get() == "ben"
    assert begun.empty()
    for each in (first_over, all_over):
        each.set()
    assert await asyncio.gather(other, *own) == ["ben", *["ann"] * number]


def _calling(process: Process, principal: Principal) -> Run:
    request = Request(
        adapters=process.adapters,
        catalog=process.catalogs.serving("default"),
        revision=LATEST,
        principal=principal,
        person=principal.person,
        rights=Rights(frozenset()),
        id=1,
        method="tools/call",
        params={"name": "gated"},
        meta={},
    )
    return Run(request)


# -- around ---------------------------------------------------------------------


@pytest.fixture
def told() -> Iterator[list[tuple[Any, ...]]]:
    context_managers.told.clear()
    yield context_managers.told
    context_managers.told.clear()


def tenant_sync(ctx: Context | SyncContext) -> str:
    on_loop = threading.current_thread() is threading.main_thread()
    return f"{context_managers.tenant.get()} {on_loop}"


async def tenant(ctx: Context) -> str:
    return tenant_sync(ctx)


@pytest.mark.parametrize(
    "mcp",
    [{**inside("noting"), "CALL_CONTEXT_HEADERS": ["Accept-Language", "X-Missing"]}],
)
@pytest.mark.parametrize("tool", ["sync", "async", "database", "atomic"])
async def test_a_manager_is_entered_in_the_thread_that_runs_user_code(
    play: Play, connect: Connect, told: list[tuple[Any, ...]], line: str, tool: str
) -> None:
    user = await writer.run(lambda: User.objects.create(username=line))
    headers = {"x-user": str(user.pk), "accept-language": "de", "x-other": "no"}
    client = await connect(STATELESS, path="/mcp/private", headers=headers)
    script = tenant_sync if tool == "sync" else tenant
    outcome = await play(tool, script, client=client)
    assert outcome.text == "nobody's False"
    entered, given, left = told
    assert given == ("given", line, {"Accept-Language": "de"})
    assert entered[:-1] == ("enters", "localhost", "/mcp/private", "user")
    assert entered[-1] == "mcp-user-code"
    assert left == ("leaves", None)


@pytest.mark.parametrize("mcp", [inside("of_tenant")])
@pytest.mark.parametrize(
    ("tool", "script", "on_loop"),
    [
        ("async", tenant, True),
        ("sync", tenant_sync, False),
        ("database", tenant, False),
    ],
)
async def test_a_manager_of_context_variables_stays_on_the_loop(
    play: Play, tool: str, script: Script, on_loop: bool
) -> None:
    assert (await play(tool, script)).text == f"localhost {on_loop}"
    assert context_managers.tenant.get() == "nobody's"


@pytest.mark.parametrize("mcp", [inside("noting", "of_tenant")])
async def test_one_manager_that_needs_a_thread_takes_the_others_along(
    play: Play, told: list[tuple[Any, ...]]
) -> None:
    assert (await play("async", tenant)).text == "localhost False"
    assert [each[0] for each in told] == ["enters", "given", "leaves"]
    assert told[1][1] == "AnonymousUser"


@pytest.mark.parametrize("mcp", [inside("noting")])
@pytest.mark.parametrize("tool", ["sync", "async", "atomic"])
async def test_an_exception_passes_through_the_managers(
    play: Play, told: list[tuple[Any, ...]], tool: str
) -> None:
    def script(ctx: SyncContext) -> None:
        raise LookupError("There is no cake.")

    async def ascript(ctx: Context) -> None:
        raise LookupError("There is no cake.")

    outcome = await play(tool, script if tool == "sync" else ascript)
    assert outcome.result["isError"] is True
    assert told[-1] == ("leaves", "LookupError")


@pytest.mark.parametrize("mcp", [inside("refusing")])
async def test_a_manager_may_refuse(play: Play, line: str) -> None:
    outcome = await play("sync", entering(line))
    assert outcome.result["isError"] is True
    assert await lines(line) == 0


# -- exceptions ---------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["sync", "async", "database"])
async def test_an_exception_is_logged_and_signalled_and_the_client_sees_its_id(
    play: Play, caplog: pytest.LogCaptureFixture, tool: str
) -> None:
    signalled = []

    def receive(**named: Any) -> None:
        signalled.append((sorted(named), sys.exc_info()[1]))

    def broken_receiver(**named: Any) -> None:
        raise RuntimeError("The receiver is broken, too.")

    def script(ctx: SyncContext) -> None:
        raise LookupError("the secret recipe")

    async def ascript(ctx: Context) -> None:
        raise LookupError("the secret recipe")

    for each in (broken_receiver, receive):
        got_request_exception.connect(each)
    try:
        with caplog.at_level(logging.ERROR, "mcp_app.calls"):
            outcome = await play(tool, script if tool == "sync" else ascript)
    finally:
        for each in (broken_receiver, receive):
            got_request_exception.disconnect(each)

    (record,) = (each for each in caplog.records if each.name == "mcp_app.calls")
    failure: str = record.failure  # type: ignore[attr-defined]
    assert outcome.text == f"{tool} failed. Its error number in the log is {failure}."
    assert b"secret recipe" not in outcome.raw
    assert record.exc_info is not None
    error = record.exc_info[1]
    assert isinstance(error, LookupError)
    assert "script" in caplog.text
    assert "the secret recipe" in caplog.text
    assert signalled == [(["request", "sender", "signal"], error)]


def test_the_end_of_a_call_is_no_exception_that_user_code_swallows() -> None:
    assert not issubclass(CallCancelled, Exception)


# -- many at the same time ------------------------------------------------------------


async def test_blocking_code_keeps_nobody_else(
    play: Play, connect: Connect, process: Process
) -> None:
    """All threads are taken; async calls, lists and authentication go on."""
    holds = Held()

    async def answers(ctx: Context) -> str:
        return "answered"

    client = await connect(STATELESS, **SIGNED_IN)
    holding = [play.begin("sync", holds, client) for _ in range(process.threads.size)]
    await holds.have_entered(process.threads.size)
    private = await connect(STATEFUL, **SIGNED_IN)
    assert (await play("async", answers, client=client)).text == "answered"
    assert (await play("async", answers, client=private)).text == "answered"
    assert (await client.request("tools/list")).result["tools"]
    assert (await private.request("logging/setLevel", {"level": "error"})).status == 200
    assert not any(each.status for each in holding)
    holds.go.set()
    for each in holding:
        assert await text_of(each) == "held"


@pytest.mark.parametrize("owner", [{}, SIGNED_IN])
async def test_t20_slow_calls_of_one_caller_keep_nobody_else(
    play: Play, connect: Connect, process: Process, owner: dict[str, Any]
) -> None:
    """Somebody else's call runs while sixty of the first one hold all places."""
    holds = Held()
    slow = await connect(STATELESS, **owner)
    holding = [play.begin("sync", holds, slow) for _ in range(60)]
    await holds.have_entered(process.threads.size)
    quick = await connect(STATELESS, **signed_in("8"))
    for _ in range(3):
        assert (await play("sync", runs, client=quick)).text == "ran"
    assert not holds.entered.acquire(blocking=False)
    holds.go.set()
    for each in holding:
        assert await text_of(each) == "held"


async def test_as_many_blocking_calls_run_together_as_there_are_threads(
    play: Play, connect: Connect, process: Process
) -> None:
    together = threading.Barrier(process.threads.size)

    def meets(ctx: SyncContext) -> str:
        together.wait(PATIENCE_S)
        return "met"

    client = await connect(STATELESS, **SIGNED_IN)
    visits = [play.begin("sync", meets, client) for _ in range(process.threads.size)]
    for each in visits:
        assert await text_of(each) == "met"


@pytest.mark.parametrize("mcp", [{"THREADS": 1, "LIMITS": "off"}])
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_all_threads_wait_for_people(
    play: Play, connect: Connect, process: Process, version: str
) -> None:
    """Others work meanwhile, up to the ceiling; then the next is refused for now."""

    def asks(ctx: SyncContext) -> str:
        ctx.ask(cake=Elicit("Which cake?", FORM))
        return "asked"

    # Each of them may hold half of the threads.
    asking, client = [await connect(STATEFUL) for _ in "ab"], await connect(version)
    waiting, questions = [], []
    for number in range(process.threads.ceiling):
        assert (await play("sync", runs, client=client)).text == "ran"
        visit = play.begin("sync", asks, asking[number % 2])
        await visit.begun()
        waiting.append(visit)
        questions.append(await visit.message())
    assert process.threads.uncounted_threads == process.threads.ceiling
    refused = await play("sync", runs, client=client)
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0
    assert "wait or hang" in refused.error["message"]
    for number, (visit, question) in enumerate(zip(waiting, questions, strict=True)):
        assert question is not None
        answer = {"action": "accept", "content": {"cake": "plum"}}
        reply = await asking[number % 2].reply(question["id"], answer)
        assert reply.status == 202
        assert await text_of(visit) == "asked"
    assert (await play("sync", runs, client=client)).text == "ran"
