"""The process: what its requests share, and how it learns of changes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

import pytest
from asgiref.sync import SyncToAsync
from django.core.mail import EmailMessage
from django.db import connections, transaction
from pytest_django import Settings

import mcp_app
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.stops import SWITCHED_OFF
from mcp_app.invalidation import change_reader, workers
from mcp_app.invalidation.compaction import compact
from mcp_app.invalidation.workers import FRESHNESS
from mcp_app.models import Change, Session, Stream, Tool, Worker
from mcp_app.models.appends import NewStream
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.models.workers import Report
from mcp_app.pools.database import POOLS, authenticators, log_writer, reader, writer
from mcp_app.process import (
    announcements,
    freshness,
    heartbeat,
    lifecycle,
    runtime,
    ticker,
)
from mcp_app.process import current as current_process
from mcp_app.process.heartbeat import DATABASE
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.cursors import key_fingerprint
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.session_store import TOUCH_S
from tests.admin.calls.rows import crash, write
from tests.asgi_client import Client, Visit
from tests.behaviours import Stage
from tests.process.outages import away, refusing
from tests.published import published, start, stopped
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect, all_logged
from tests.statements import counted, failing
from tests.streams.logging_rows import erase, own_session
from tests.streams.test_listeners import Stream as Listening

URI: Final = "test://static-text"
OTHER_URI: Final = "test://static-binary"
TOOLS: Final = "notifications/tools/list_changed"
UPDATED: Final = "notifications/resources/updated"
PATIENCE_S: Final = 60


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment is as good as a second."""
    monkeypatch.setattr(freshness, "FRESHNESS", 0.02)
    monkeypatch.setattr(freshness, "RETRY", 0.01)


class Site:
    """A process, and who connects to it."""

    def __init__(self, process: Process, connect: Connect) -> None:
        self.process = process
        self.connect = connect

    async def check(self) -> None:
        await self.process.gate.wait_for_check()


@pytest.fixture
def site(process: Process, connect: Connect) -> Site:
    return Site(process, connect)


async def a_moment() -> None:
    await asyncio.sleep(0.03)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close the connections of what async code of these tests calls."""
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture
async def tool(served_rows: None) -> AsyncIterator[str]:
    """The name of a tool that the test writes; its row goes with the test."""
    name = f"tool_{uuid4().hex[:8]}"
    yield name
    await writer.run(Tool.objects.filter(name=name).delete)


def row(name: str, text: str) -> Tool:
    config = f'{{"content": [{{"type": "text", "text": "{text}"}}]}}'
    return Tool(name=name, kind="text", config=config)


async def said(client: Client, tool: str) -> str | None:
    outcome = await client.call(tool)
    return outcome.text if "result" in outcome.answer else None


# -- statements --------------------------------------------------------------------


async def test_calls_cost_no_statements(site: Site) -> None:
    client = await site.connect(STATEFUL)
    await site.check()
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with counted() as told:
        for _ in range(30):
            await client.call("drill_add", a=1, b=1)
            await client.call("drill_add_sync", a=1, b=1)
            await client.request("tools/list")
            await client.request("prompts/list")
            await client.request("resources/read", {"uri": URI})
    # One statement a check, and checks at half of the time that they are good for.
    asked = [each for each in told if "FROM" in each]
    assert len(asked) <= 1 + (loop.time() - began) / (FRESHNESS / 2)


@pytest.mark.databases
async def test_a_check_that_finds_nothing_is_one_statement(site: Site) -> None:
    await site.connect(STATELESS)
    await site.check()
    async with counted() as told:
        await site.check()
    # Databases want to be told things when they are connected to.
    (statement,) = (each for each in told if "FROM" in each)
    assert "UNION ALL" in statement


# -- what is saved is live -----------------------------------------------------------


@pytest.mark.databases
@pytest.mark.usefixtures("quickly")
async def test_a_published_row_is_live_in_a_moment(connect: Connect, tool: str) -> None:
    client = await connect(STATELESS)
    rows = Tool.objects.filter(name=tool)
    changes: list[tuple[Callable[[], object], str | None]] = [
        (row(tool, "one").save, None),
        (lambda: published(rows.get()), "one"),
        (lambda: _edit(tool, "two"), "one"),
        (lambda: published(rows.get()), "two"),
        (lambda: rows.update(config=row(tool, "three").config), "two"),
        (lambda: Tool.objects.publish(rows), "three"),
        (lambda: stopped(rows.get()), SWITCHED_OFF.format(what="tool")),
        (lambda: start(rows.get()), "three"),
        (lambda: Tool.objects.unpublish(rows), None),
        (rows.delete, None),
        (lambda: published(row(tool, "four")), "four"),
    ]
    assert await said(client, tool) is None
    for change, text in changes:
        await writer.run(change)
        await a_moment()
        assert await said(client, tool) == text


def _edit(name: str, text: str) -> None:
    edited = Tool.objects.get(name=name)
    edited.config = row(name, text).config
    edited.save()


def _write(name: str, text: str) -> None:
    Tool.objects.filter(name=name).delete()
    published(row(name, text))


@pytest.mark.usefixtures("quickly")
async def test_a_change_is_live_with_its_commit(connect: Connect, tool: str) -> None:
    client = await connect(STATELESS)

    def rolled_back() -> None:
        with transaction.atomic():
            published(row(tool, "never"))
            transaction.set_rollback(True)

    await writer.run(rolled_back)
    await a_moment()
    assert await said(client, tool) is None


@pytest.mark.databases
@pytest.mark.usefixtures("quickly")
async def test_a_row_that_cannot_be_served_is_left_out_and_logged(
    connect: Connect, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(STATELESS)
    await writer.run(_write, tool, "well")
    await a_moment()
    assert await said(client, tool) == "well"
    for column, value in (
        ("kind", "unheard_of"),
        ("config", '{"content": [{"type": "hologram"}]}'),
        ("icons", "[7]"),
    ):
        caplog.clear()
        await writer.run(_write, tool, "well")
        rows = Tool.objects.filter(name=tool)
        with caplog.at_level(logging.WARNING):
            await writer.run(_spoil, rows, column, value)
            await a_moment()
            assert await said(client, tool) is None, column
        assert "not served" in caplog.text
        assert (await client.call("drill_add", a=20, b=22)).text == "42"


def _spoil(rows: Any, column: str, value: str) -> None:
    """Publish what no form would let through."""
    spoiled = rows.get()
    content = spoiled.working_content()
    content[column] = value if column == "kind" else jsonrpc.read(value.encode())
    Tool.objects.publish_contents({spoiled: content})


# -- outages ------------------------------------------------------------------------


@pytest.mark.databases
@pytest.mark.usefixtures("quickly")
async def test_a_load_that_fails_loses_no_change(connect: Connect, tool: str) -> None:
    client = await connect(STATELESS)
    await writer.run(_write, tool, "here")
    await a_moment()
    async with failing("mcp_app_tool") as failed:
        refused = await client.call(tool)
    assert failed
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 5
    await a_moment()
    assert await said(client, tool) == "here"


@pytest.mark.databases
async def test_calls_that_get_no_connection(site: Site, tool: str) -> None:
    """The checks have theirs, such as where a role has a limit."""
    config = '{"function": "drill.ledger"}'
    reading = Tool(name=tool, kind="function", config=config, read_only=True)
    await writer.run(published, reading)
    await site.check()
    client = await site.connect(STATELESS)
    with refusing():
        for name, status in (("drill_ledger", 200), (tool, 503)):
            refused = await client.call(name, key=tool, seconds=0)
            assert refused.error["message"] == "The database cannot be reached."
            assert refused.status == status
        assert await site.process.failing_part() == DATABASE
    assert (await client.call(tool, key=tool, seconds=0)).text == "1"


@pytest.mark.databases
async def test_no_session_is_unknown_because_the_database_is_away(site: Site) -> None:
    """Clients throw sessions away on 404."""
    client = await site.connect(STATEFUL)
    await site.check()
    site.process.sessions._cached_sessions.clear()
    site.process.sessions._by_id.clear()
    with away():
        refused = await client.call("drill_add", a=1, b=1)
        opening = await client.sent(client.initialize(), {"mcp-session-id": None})
    for each in (refused, opening):
        assert each.status == 503
        assert "retry-after" in each.headers
    assert (await client.call("drill_add", a=20, b=22)).text == "42"


# -- what is told -------------------------------------------------------------------


async def listening(client: Client, **notifications: Any) -> Visit:
    visit = client.begin("subscriptions/listen", {"notifications": notifications})
    acknowledged = await (await visit.begun()).message()
    assert acknowledged is not None
    return visit


async def leave(*streams: Visit) -> None:
    for each in streams:
        await each.leave()


async def left(stream: Visit) -> None:
    """Leave a stream that is told nothing more."""
    await stream.quiet()
    await stream.leave()


async def told(stream: Visit) -> str:
    message = await stream.message()
    assert message is not None
    method: str = message["method"]
    return method


@pytest.mark.databases
async def test_a_stream_that_nobody_would_end_ends_at_a_beat(process: Process) -> None:
    """Whatever went wrong: its client must not wait for as long as we live."""
    session = await log_writer.run(own_session)
    streams = [
        process.log.open_stream(NewStream(uuid4().hex, session.pk, "1"))
        for _ in range(2)
    ]
    for each in streams:
        await each.wait_until_committed()
    kept, lost = streams
    lost.close_after_failure(ZeroDivisionError())
    await process._upkeep.maintain_rows()
    rows = Stream.objects.order_by("pk").values_list("public_id", "state", "head_seq")
    assert await reader.run(list, rows.filter(session_id=session.pk)) == [
        (kept.public_id, "open", 0),
        (lost.public_id, "aborted", 1),
    ]
    kept.end(None)
    await all_logged(process.log)
    await log_writer.run(erase)


async def test_what_fails_is_mailed_beside_the_heartbeat(
    process: Process,
    settings: Settings,
    mailoutbox: list[EmailMessage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.MCP = {**settings.MCP, "ALERTS": {"mail": ["ops@example.com"]}}
    monkeypatch.setattr("mcp_app.process.upkeep.ALERTS_EVERY_S", 0)
    await writer.run(write, *(crash() for _ in range(5)))
    await process._upkeep.maintain_rows()
    await asyncio.to_thread(process._upkeep._sender.join)
    assert any("book_table" in mail.subject for mail in mailoutbox)


async def test_notifying_in_a_transaction_reaches_streams_of_both_eras(
    site: Site,
) -> None:
    new, old = await site.connect(STATELESS), await site.connect(STATEFUL)
    listen = await listening(new, promptsListChanged=True, resourceSubscriptions=[URI])
    assert (await old.request("resources/subscribe", {"uri": URI})).status == 200
    standing = await old.standing()

    def change(*, keep: bool) -> None:
        with transaction.atomic():
            mcp_app.notify("prompts")
            mcp_app.changed(URI)
            mcp_app.changed(OTHER_URI)
            transaction.set_rollback(not keep)

    await writer.run(lambda: change(keep=False))
    await site.check()
    await listen.quiet()
    await standing.quiet()

    await writer.run(lambda: change(keep=True))
    await site.check()
    for stream in (listen, standing):
        found = {await told(stream), await told(stream)}
        assert found == {"notifications/prompts/list_changed", UPDATED}
        await left(stream)


async def test_async_callers(site: Site) -> None:
    client = await site.connect(STATELESS)
    listen = await listening(client, toolsListChanged=True, resourceSubscriptions=[URI])
    await mcp_app.anotify("tools", "default")
    await mcp_app.achanged(URI)
    await mcp_app.anotify("tools", "another")
    await site.check()
    assert {await told(listen), await told(listen)} == {TOOLS, UPDATED}
    await left(listen)


async def test_each_change_of_many_is_told_once(site: Site) -> None:
    client = await site.connect(STATELESS)
    listen = await listening(client, toolsListChanged=True, resourceSubscriptions=[URI])

    def many() -> None:
        with transaction.atomic():
            for _ in range(5):
                mcp_app.notify("tools")
                mcp_app.changed(URI)

    # Together: a look of its own in between would tell of some, and later of others.
    await writer.run(many)
    await site.check()
    assert {await told(listen), await told(listen)} == {TOOLS, UPDATED}
    await left(listen)


async def test_more_changes_than_can_be_read_change_everything(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_reader, "MOST_ROWS", 10)
    client, old = await site.connect(STATELESS), await site.connect(STATEFUL)
    listen = await listening(client, toolsListChanged=True, resourceSubscriptions=[URI])
    await old.request("resources/subscribe", {"uri": URI})
    standing = await old.standing()

    def many() -> None:
        # Together: a look in between would find few enough.
        with transaction.atomic():
            for number in range(11):
                mcp_app.changed(f"test://nobody/watches/{number}")

    await writer.run(many)
    await site.check()
    assert {await told(listen), await told(listen)} == {TOOLS, UPDATED}
    found = [await told(standing) for _ in range(4)]
    assert found.count(UPDATED) == 1
    # Until somebody has folded them, there are too many at each look.
    await writer.run(compact)
    await leave(listen, standing)


@pytest.mark.databases
async def test_a_change_that_was_committed_late_is_told(site: Site) -> None:
    client = await site.connect(STATELESS)
    listen = await listening(client, resourceSubscriptions=[URI])

    def drawn() -> int:
        change = Change(kind="uri", ref="")
        change.save()
        number = change.pk
        change.delete()
        return number

    def commit(number: int) -> None:
        ref = sha256(URI.encode()).hexdigest()
        Change(id=number, kind="uri", ref=ref).save(force_insert=True)

    number = await writer.run(drawn)
    await writer.run(mcp_app.changed, OTHER_URI)
    await site.check()
    await listen.quiet()
    await writer.run(commit, number)
    await site.check()
    assert await told(listen) == UPDATED
    await listen.leave()


async def test_only_the_newest_standing_stream_of_a_session_is_told_everything(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await site.connect(STATEFUL)
    older, newer = await client.standing(), await client.standing()
    # To open a stream is a change, too: not before both are open.
    monkeypatch.setattr(change_reader, "MOST_ROWS", 0)
    await writer.run(mcp_app.changed, "test://nobody/watches/it")
    await site.check()
    assert [await told(newer) for _ in range(3)]
    await older.quiet()
    await leave(older, newer)


async def test_a_change_that_a_call_tells_is_told_at_once(site: Site) -> None:
    client = await site.connect(STATELESS)
    listen = await listening(client, resourceSubscriptions=[URI])
    await client.call("drill_touch", uri=URI)
    assert await told(listen) == UPDATED
    await listen.leave()


@pytest.mark.databases
async def test_a_change_that_cannot_be_written_waits_for_the_database(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "RETRY_S", 0.05)
    client = await site.connect(STATELESS)
    listen = await listening(client, resourceSubscriptions=[URI])
    # However long it takes: calls are served without another check.
    monkeypatch.setattr(freshness, "FRESHNESS", PATIENCE_S)
    await site.check()
    written = "A change could not be written yet"
    with caplog.at_level(logging.WARNING, "mcp_app.process"), away():
        for count in (1, 2):
            # Once it waits, the same one need not wait again.
            assert (await client.call("drill_touch", uri=URI)).status == 200
            while caplog.text.count(written) < count:
                await asyncio.sleep(0.001)
    assert await told(listen) == UPDATED
    assert site.process.announcements._unwritten_changes == set()
    await listen.leave()


@pytest.mark.parametrize("mcp", [{"LIMITS": {"heartbeat": 1}}])
@pytest.mark.usefixtures("after_a_second")
async def test_streams_and_calls_have_heartbeats_and_find_changes(site: Site) -> None:
    client = await site.connect(STATELESS)
    listen = await listening(client, toolsListChanged=True)
    call = client.begin(
        "tools/call", {"name": "drill_sleep", "arguments": {"seconds": 60}}
    )
    await listen.comment()
    await call.comment()
    await writer.run(mcp_app.notify, "tools")
    # Nobody asks for a check: the process looks by itself, each second.
    assert await told(listen) == TOOLS
    await leave(listen, call)
    assert site.process.heartbeat is not None


@pytest.mark.parametrize("mcp", [{"LIMITS": {"heartbeat": 1}}])
@pytest.mark.usefixtures("after_a_second")
async def test_a_heartbeat_that_fails_is_not_the_last_look(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()
    site.process.loop.set_exception_handler(lambda *_: failed.set())
    monkeypatch.setattr(site.process.running, "beat", dict[str, int]().popitem)
    client = await site.connect(STATELESS)
    listen = await listening(client, toolsListChanged=True)
    await asyncio.wait_for(failed.wait(), PATIENCE_S)
    # Nobody rings.
    await writer.run(Change.objects.bulk_create, [Change(kind="list", ref="tools:*")])
    assert await told(listen) == TOOLS
    await listen.leave()


async def test_what_is_open_ends_when_its_session_is_too_old(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticker, "AGED", 0.01)
    old, young = await site.connect(STATEFUL), await site.connect(STATEFUL)
    streams = [await each.standing() for each in (old, young)]
    for each in streams:
        await each.opened()
    arguments = {"name": "drill_sleep", "arguments": {"seconds": 60}}
    call = old.begin("tools/call", arguments)
    await call.comment()
    session = min(
        site.process.sessions._cached_sessions.values(), key=lambda each: each.pk
    )
    rows = Session.objects.filter(pk=session.pk)
    session.created -= site.process.limits.session_age + 1
    assert await streams[0].messages() == []
    assert await call.messages() == []
    assert await writer.run(rows.exists)
    await writer.run(mcp_app.notify, "tools")
    assert await told(streams[1]) == TOOLS
    await streams[1].leave()


# -- one process per loop -----------------------------------------------------------


def test_each_loop_has_a_process_of_its_own() -> None:
    async def current() -> Process:
        assert current_process.process() is current_process.process()
        return current_process.process()

    first, second = asyncio.run(current()), asyncio.run(current())
    assert first is not second
    current_process._current = None


async def test_a_process_that_closes_leaves_no_thread(process: Process) -> None:
    names = {each.name for each in POOLS}
    for pool in POOLS:
        await pool.run(int)
    begun = [each for each in threading.enumerate() if each.name in names]
    assert {each.name for each in begun} == names
    process.close()
    for each in begun:
        await asyncio.to_thread(each.join, PATIENCE_S)
        assert not each.is_alive(), each.name


async def test_a_process_that_closes_looks_for_nothing(process: Process) -> None:
    listener = Listening("default", "tools")
    process.listeners.add(listener)
    process.watch()
    process._ticker.heard()
    process.listeners.discard(listener)
    timers = [process._ticker._watching, process._ticker._answering]
    process.close()
    assert [each is not None and each.cancelled() for each in timers] == [True, True]


async def test_whatever_goes_wrong_what_hangs_is_looked_for_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Event()

    def fails() -> None:
        monkeypatch.setattr(runtime, "give_up_hanging", looked.set)
        raise KeyError("no")

    process._hanging.cancel()
    monkeypatch.setattr(runtime, "LOOK_S", 0.01)
    monkeypatch.setattr(runtime, "give_up_hanging", fails)
    with pytest.raises(KeyError):
        process._look_for_hanging()
    await asyncio.wait_for(looked.wait(), PATIENCE_S)


class LastWork:
    """Work that begins with the last that a process does at its end."""

    def __init__(self, process: Process, patch: pytest.MonkeyPatch) -> None:
        self.released = threading.Event()
        self.future: asyncio.Future[bool] | None = None
        self._began = threading.Event()
        self._end = process.heartbeat.end
        patch.setattr(process.heartbeat, "end", self._ends)

    async def _ends(self) -> None:
        await self._end()
        self.future = asyncio.ensure_future(authenticators.run(self._hang))
        assert await asyncio.to_thread(self._began.wait, PATIENCE_S)

    def _hang(self) -> bool:
        self._began.set()
        return self.released.wait(PATIENCE_S)


async def test_a_process_that_stops_leaves_nothing_that_hangs(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = LastWork(process, monkeypatch)
    await process.drain()
    process.close()
    assert last.future is not None
    with pytest.raises(Unavailable):
        await asyncio.wait_for(last.future, PATIENCE_S)
    last.released.set()


async def test_a_process_that_stops_lets_work_end_that_takes_a_moment(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = LastWork(process, monkeypatch)
    monkeypatch.setattr(lifecycle, "LAST_WORDS", PATIENCE_S)
    draining = asyncio.ensure_future(process.drain())
    await asyncio.to_thread(last._began.wait, PATIENCE_S)
    last.released.set()
    await draining
    assert last.future is not None
    assert await last.future


async def test_a_stopping_process_takes_nothing_new(site: Site) -> None:
    client = await site.connect(STATELESS)
    site.process.stopping = True
    refused = await client.call("drill_add", a=1, b=1)
    assert refused.status == 503
    assert 2 <= int(refused.headers["retry-after"]) <= 5
    # The next request may reach a process that goes on.
    assert refused.headers["connection"] == "close"
    with pytest.raises(Unavailable):
        site.process.add_listener(None)  # type: ignore[arg-type]


# -- other processes that died ------------------------------------------------------


async def owned_by_another(connect: Connect, jump_s: int) -> None:
    client = await connect(STATEFUL)
    assert await said(client, "logs") is not None
    await writer.run(_give_away, jump_s)


def _give_away(jump_s: int) -> None:
    seen_ms = NowMilliseconds() - 1_000 * jump_s
    Worker.objects.create(pk="another", pid=1, started_ms=1, seen_ms=seen_ms)
    Stream.objects.update(state="open", owner="another", ended_ms=None)


async def state() -> str:
    return await writer.run(lambda: Stream.objects.get().state)


@pytest.fixture
async def steady(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Process]:
    """A process whose beats were in time."""
    monkeypatch.setattr(heartbeat, "STEADY", 0.0)
    yield process
    await writer.run(Worker.objects.filter(pk="another").delete)


async def test_nobody_is_dead_because_the_databases_clock_has_jumped(
    connect: Connect, steady: Process
) -> None:
    await owned_by_another(connect, 3_600)
    for _ in range(3):
        await steady.heartbeat._beaten()
    assert await state() == "open"


async def test_nobody_lives_because_the_databases_clock_went_back(
    connect: Connect, steady: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    await owned_by_another(connect, -3_600)
    await steady.heartbeat._beaten()
    assert await state() == "open"
    monkeypatch.setattr(workers, "SILENT_S", 0.0)
    await steady.heartbeat._beaten()
    assert await state() == "aborted"


async def test_a_session_whose_call_runs_is_not_idle(site: Site, stage: Stage) -> None:
    client = await site.connect(STATEFUL)
    visit = client.begin("tools/call", {"name": "waits"})
    await stage.begun()
    await writer.run(Session.objects.all().update, seen_ms=7)
    (session,) = site.process.sessions._cached_sessions.values()
    session.last_used -= 2 * TOUCH_S
    await site.process.heartbeat._beaten()
    stage.released.set()
    await visit.messages()
    assert (await writer.run(Session.objects.get)).seen_ms > 7


# -- what cannot be served ---------------------------------------------------------


async def test_a_process_reports_rows_that_its_code_cannot_serve(site: Site) -> None:
    await site.check()
    assert site.process.build_report().broken == ()
    rows = Tool.objects.filter(kind="function", published__isnull=False)
    pks = await writer.run(lambda: list(rows.values_list("pk", flat=True)))
    other = Process(Registry())
    try:
        await other.gate.wait_for_check()
        report = Report.of_text(other.build_report().as_text())
    finally:
        await other.drain(0)
        other.close()
    broken = {ref: reason for kind, ref, _, reason in report.broken if kind == "tool"}
    for pk in pks:
        assert "No function is registered as" in broken[str(pk)]


@pytest.mark.parametrize("mcp", [{"STATE_KEYS": ["the first key", "another one"]}])
async def test_a_process_reports_which_key_it_has(process: Process) -> None:
    report = Report.of_text(process.build_report().as_text())
    assert report.keys == key_fingerprint("the first key")
