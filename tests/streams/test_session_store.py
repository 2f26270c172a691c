"""Sessions of the stateful era: rows, kept in the process while they are used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import pytest
from django.db import OperationalError
from django.db.models import F

from mcp_app.conf import Limits
from mcp_app.interface.context import Client
from mcp_app.interface.principal import Principal
from mcp_app.models import Event, Session
from mcp_app.models import streams as stream_rows
from mcp_app.models.sessions import Subscription
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.streams import open_session, session_store
from mcp_app.streams.open_session import Opening, OpenSession
from mcp_app.streams.session_store import SessionStore
from tests.statements import counted
from tests.streams.logging_rows import opened

pytestmark = [pytest.mark.usefixtures("served_rows"), pytest.mark.databases]

REVISION: Final = REVISIONS["2025-11-25"]
ANNA: Final = Principal(kind="user", user_id="1", user_name="anna")
BERT: Final = Principal(kind="user", user_id="2", user_name="bert")
CLIENT: Final = Client(
    name="client", version="1", title="A client", capabilities={"roots": {}}
)
FLOOD: Final = Opening(Principal.ANONYMOUS, "default", REVISION, CLIENT)
URI: Final = "test://static-text"
HOUR_S: Final = 3_600


class Store(SessionStore):
    def __init__(self, **limits: Any) -> None:
        self.closed: list[OpenSession] = []
        self.settled = 0
        self.announced = 0
        super().__init__(
            Limits(**limits), self.closed.append, self._settle, self._announce
        )

    async def _settle(self) -> None:
        self.settled += 1

    async def _announce(self) -> int:
        return self.announced

    async def no_longer_closing(self) -> None:
        """Return when none is deleted because there are too many."""
        closer = self._closer
        if closer is not None:
            await closer

    async def opened_by(self, principal: Principal = ANNA) -> tuple[str, OpenSession]:
        session_id = await self.create(Opening(principal, "default", REVISION, CLIENT))
        return session_id, await self.find(session_id, principal, "default")


@pytest.fixture(autouse=True)
async def _erase() -> AsyncIterator[None]:
    yield
    await writer.run(Subscription.objects.all().delete)
    await writer.run(Session.objects.all().delete)


@pytest.fixture
def store() -> Store:
    return Store()


async def missing(
    store: SessionStore,
    session_id: str,
    principal: Principal = ANNA,
    server: str = "default",
) -> str:
    """Return how it is said that there is no such session."""
    with pytest.raises(RequestRefused) as refused:
        await store.find(session_id, principal, server)
    assert refused.value.http_status == 404
    return refused.value.message


async def test_a_session_is_found_by_its_owner_only(store: Store) -> None:
    session_id, session = await store.opened_by(ANNA)
    assert len(session_id) >= 43
    said = {
        await missing(store, session_id, BERT),
        await missing(store, session_id, ANNA, "another"),
        await missing(store, session_id, Principal.ANONYMOUS),
        await missing(store, "unheard-of"),
        await missing(store, ""),
    }
    assert said == {"Session not found. Initialize a new one."}
    assert await store.find(session_id, ANNA, "default") is session
    for who in (ANNA, BERT, Principal.ANONYMOUS):
        for server in ("default", "another"):
            # Where nothing is asked, nobody else is let in either.
            known = store.cached(session_id, who, server)
            assert known is (session if (who, server) == (ANNA, "default") else None)


async def test_the_id_is_not_stored(store: Store) -> None:
    session_id, session = await store.opened_by()
    row = await writer.run(Session.objects.get)
    assert session_id not in str(vars(row))
    assert row.digest == session.digest


async def test_a_session_that_is_kept_costs_no_statement(store: Store) -> None:
    session_id, _ = await store.opened_by()
    async with counted() as told:
        for _ in range(10):
            await store.find(session_id, ANNA, "default")
    assert told == []


async def test_another_process_reads_the_row(store: Store) -> None:
    session_id, session = await store.opened_by()
    await store.set_level(session, 4)
    await store.subscribe(session, URI, 10)
    await store.complete_handshake(session)
    read = await Store().find(session_id, ANNA, "default")
    assert read is not session
    assert read.revision is REVISION
    assert read.client == CLIENT
    assert (read.level, read.initialized) == (4, True)
    assert list(read.uris.values()) == [URI]


async def test_two_requests_that_load_a_session_get_the_same(store: Store) -> None:
    session_id, _ = await store.opened_by()
    other = Store()
    one, two = await asyncio.gather(
        *(other.find(session_id, ANNA, "default") for _ in range(2))
    )
    assert one is two


async def test_a_negative_answer_is_not_kept(store: Store) -> None:
    session_id, _ = await store.opened_by()
    other = Store()
    await missing(other, session_id, BERT)
    found = await other.find(session_id, ANNA, "default")
    assert found.principal_key == ANNA.key


async def test_a_deleted_session_is_no_more(store: Store) -> None:
    session_id, session = await store.opened_by()
    await store.delete(session)
    assert store.closed == [session]
    await missing(store, session_id)
    await missing(Store(), session_id)
    await store.delete(session)
    assert store.closed == [session]


async def test_a_session_watches_so_many_resources_and_no_more(store: Store) -> None:
    _, session = await store.opened_by()
    stored = await asyncio.gather(
        *(store.subscribe(session, f"{URI}/{number}", 3) for number in range(8))
    )
    assert stored.count(True) == 3
    assert len(session.uris) == 3
    assert await writer.run(Subscription.objects.count) == 3
    # What is watched already needs no room.
    (watched, *_) = session.uris.values()
    assert await store.subscribe(session, watched, 3)


async def test_a_session_that_another_process_has_closed(store: Store) -> None:
    _, session = await store.opened_by()
    await writer.run(Session.objects.all().delete)
    for command in (store.subscribe(session, URI, 10), store.set_level(session, 3)):
        with pytest.raises(RequestRefused) as caught:
            await command
        assert caught.value.http_status == 404


async def test_a_session_begins_where_all_is_announced(store: Store) -> None:
    store.announced = 7
    session_id, session = await store.opened_by()
    other = Store()
    for here, known in (
        (store, session),
        (other, await other.find(session_id, ANNA, "default")),
    ):
        assert await here.client_position(known) == (0, 7)


async def test_the_newest_of_a_sessions_streams(store: Store) -> None:
    session_id, session = await store.opened_by()
    other = Store()
    theirs = await other.find(session_id, ANNA, "default")
    assert await store.stream_opened(session, "here", 5) == 1
    assert await other.stream_opened(theirs, "there", 6) == 2
    assert (session.newest, theirs.newest) == (1, 2)
    await store.reload_sessions([str(session.pk)])
    assert (session.newest, await store.client_position(session)) == (2, (0, 6))
    await writer.run(Session.objects.all().delete)
    for command in (
        store.stream_opened(session, "late", 6),
        store.client_position(session),
    ):
        with pytest.raises(RequestRefused) as refused:
            await command
        assert refused.value.http_status == 404


async def test_a_row_that_was_read_early_makes_no_stream_the_newest(
    store: Store,
) -> None:
    _, session = await store.opened_by()
    session.newest = 3
    await store.reload_sessions([str(session.pk)])
    assert session.newest == 3


@pytest.mark.parametrize("named", [True, False])
async def test_what_another_process_changed_is_read_again(
    store: Store, named: bool
) -> None:
    session_id, session = await store.opened_by()
    _, closed = await store.opened_by()
    other = Store()
    theirs = await other.find(session_id, ANNA, "default")
    await other.set_level(theirs, 4)
    await other.subscribe(theirs, URI, 10)
    await writer.run(Session.objects.filter(pk=closed.pk).delete)
    refs = [str(session.pk), str(closed.pk), "9" * 9] if named else None
    await store.reload_sessions(refs)
    assert (session.level, list(session.uris.values())) == (4, [URI])
    assert store.closed == [closed]
    await other.unsubscribe(theirs, URI)
    await store.reload_sessions(["*"])
    assert session.uris == {}


@pytest.mark.parametrize("ref", ["its own", None])
async def test_a_read_that_was_overtaken_is_done_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, ref: str | None
) -> None:
    """It may have hung while a change of the session was read and passed by."""
    session_id, session = await store.opened_by()
    row = Session.objects.filter(pk=session.pk)
    loop, reads = asyncio.get_running_loop(), []
    read = open_session.read

    def late(digests: list[str]) -> dict[str, OpenSession]:
        rows = read(digests)
        reads.append(rows)
        if len(reads) == 1:
            row.update(log_level=4)
            loop.call_soon_threadsafe(_reload, other, ref and str(session.pk))
        return rows

    monkeypatch.setattr(open_session, "read", late)
    other = Store()
    found = await other.find(session_id, ANNA, "default")
    assert (len(reads), found.level) == (2, 4)


@pytest.mark.parametrize("ref", ["its own", None])
@pytest.mark.parametrize("gone", [True, False])
async def test_a_session_that_is_closed_while_it_is_stored(
    monkeypatch: pytest.MonkeyPatch, ref: str | None, gone: bool
) -> None:
    loop, insert = asyncio.get_running_loop(), open_session.insert

    def late(
        new: list[open_session.NewSession],
    ) -> dict[open_session.NewSession, open_session.Rows]:
        surplus = insert(new)
        [session] = [each.session for each in new]
        if gone:
            Session.objects.filter(pk=session.pk).delete()
        loop.call_soon_threadsafe(_reload, own, ref and str(session.pk))
        return surplus

    monkeypatch.setattr(open_session, "insert", late)
    own = Store()
    if gone:
        with pytest.raises(RequestRefused):
            await own.create(Opening(ANNA, "default", REVISION, CLIENT))
        assert not own._cached_sessions
        return
    await own.opened_by()
    assert len(own._cached_sessions) == 1


def _reload(store: Store, ref: str | None) -> None:
    """Begin to reload a session, or all; there is none to be waited for."""
    with pytest.raises(StopIteration):
        store.reload_sessions(None if ref is None else [ref]).send(None)


async def test_a_read_is_not_overtaken_by_what_others_change(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sessions are opened and closed all the time, it would be for ever."""
    session_id, session = await store.opened_by()
    loop, reads = asyncio.get_running_loop(), []
    read = open_session.read

    def busy(digests: list[str]) -> dict[str, OpenSession]:
        reads.append(digests)
        assert len(reads) == 1
        loop.call_soon_threadsafe(_reload, other, f"{session.pk + 1}")
        return read(digests)

    monkeypatch.setattr(open_session, "read", busy)
    other = Store()
    assert (await other.find(session_id, ANNA, "default")).pk == session.pk


async def test_a_command_is_answered_when_it_holds(store: Store) -> None:
    _, session = await store.opened_by()
    assert store.settled == 0
    await store.set_level(session, 4)
    await store.subscribe(session, URI, 10)
    await store.unsubscribe(session, URI)
    await store.delete(session)
    assert store.settled == 4


async def test_subscriptions(store: Store) -> None:
    _, session = await store.opened_by()
    await store.subscribe(session, URI, 10)
    await store.subscribe(session, URI, 10)
    assert await writer.run(Subscription.objects.count) == 1
    await store.unsubscribe(session, URI)
    await store.unsubscribe(session, URI)
    assert session.uris == {}
    assert await writer.run(Subscription.objects.count) == 0


async def test_the_handshake_is_noted_once(store: Store) -> None:
    _, session = await store.opened_by()
    await store.complete_handshake(session)
    await writer.run(Session.objects.update, initialized=False)
    await store.complete_handshake(session)
    assert not (await writer.run(Session.objects.get)).initialized


async def test_questions_wait_for_the_handshake_at_another_process(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "HANDSHAKE_LOOK_S", 0.01)
    _, session = await store.opened_by()
    waiting = asyncio.ensure_future(store.wait_for_handshake(session))
    await asyncio.sleep(0.03)
    assert not waiting.done()
    await writer.run(Session.objects.update, initialized=True)
    await waiting
    assert session.initialized


async def test_questions_do_not_wait_for_ever(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "HANDSHAKE_LOOK_S", 0.01)
    monkeypatch.setattr(session_store, "HANDSHAKE_S", 0.05)
    _, session = await store.opened_by()
    await store.wait_for_handshake(session)
    assert not session.initialized


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_others_write_while_a_session_with_much_is_closed(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages go with jobs of their own: the heartbeat's come in between."""
    monkeypatch.setattr(stream_rows, "MAX_DELETED", 3)
    store = Store(sessions_per_principal=1)
    _, session = await store.opened_by()
    row = await writer.run(Session.objects.get)
    for _ in range(4):
        await writer.run(opened, row, b"1", b"2")
    seen: list[int] = []

    async def beats() -> None:
        while True:
            seen.append(await writer.run(Event.objects.count))

    beating = asyncio.create_task(beats())
    if how == "deleted":
        await store.delete(session)
    else:
        await store.opened_by()
    beating.cancel()
    with suppress(asyncio.CancelledError):
        await beating
    assert {6, 4, 2} <= set(seen)
    assert await writer.run(Event.objects.count) == 0
    assert store.closed == [session]


async def test_a_session_that_many_requests_delete_is_deleted_once(
    store: Store,
) -> None:
    _, session = await store.opened_by()
    async with counted([writer]) as alone:
        await store.delete(session)
    _, session = await store.opened_by()
    async with counted([writer]) as statements:
        await asyncio.gather(*(store.delete(session) for _ in range(100)))
    assert len(statements) == len(alone), statements
    assert (store.closed.count(session), store.settled) == (1, 2)
    assert store._deletions == {}


async def test_a_deletion_goes_on_without_the_client_and_after_an_outage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id, session = await store.opened_by()

    async def fail(_: object) -> None:
        raise OperationalError("away")

    with monkeypatch.context() as patched:
        patched.setattr(open_session, "delete_sessions", fail)
        for each in (store.delete(session), store.delete(session)):
            with pytest.raises(OperationalError):
                await each
    # The client may try again, and leave.
    assert await store.find(session_id, ANNA, "default") is session
    leaving = asyncio.create_task(store.delete(session))
    await asyncio.sleep(0)
    (deletion,) = store._deletions.values()
    leaving.cancel()
    await deletion
    assert await missing(store, session_id)


async def test_the_level_of_a_session_that_is_deleted_meanwhile(store: Store) -> None:
    _, session = await store.opened_by()
    await writer.run(Session.objects.filter(pk=session.pk).delete)
    with pytest.raises(RequestRefused) as refused:
        await store.set_level(session, 4)
    assert refused.value.http_status == 404


async def test_what_a_client_has_seen_is_read_once_for_many(store: Store) -> None:
    _, session = await store.opened_by()
    _, other = await store.opened_by(BERT)
    async with counted() as statements:
        many = await asyncio.gather(
            *(store.client_position(each) for each in [session, other] * 100)
        )
    assert len(many) == 200
    assert len(statements) <= 2, statements


async def test_sessions_that_end_together_are_deleted_together(store: Store) -> None:
    ended = [(await store.opened_by())[1] for _ in range(20)]
    _, stays = await store.opened_by()
    async with counted([writer]) as statements:
        await asyncio.gather(*(open_session.delete_session(each.pk) for each in ended))
    # The first may go alone, and all others with the next.
    assert len(statements) <= 50
    assert await reader.run(list, Session.objects.values_list("pk", flat=True)) == [
        stays.pk
    ]


async def older(session: OpenSession, **times: float) -> None:
    """Make a session older by these seconds, in the process and in its row."""
    for name, by in times.items():
        member = {"seen": "last_used"}.get(name, name)
        setattr(session, member, getattr(session, member) - by)
    changed = {f"{name}_ms": F(f"{name}_ms") - 1_000 * by for name, by in times.items()}
    await writer.run(Session.objects.filter(pk=session.pk).update, **changed)


class Clocks:
    """The clocks of a process: `passed` seconds went by, and one jumped meanwhile."""

    def __init__(self, passed: float, jump: float) -> None:
        self._passed = passed
        self._jump = jump

    def monotonic(self) -> float:
        return time.monotonic() + self._passed

    def time_ns(self) -> int:
        return time.time_ns() + int((self._passed + self._jump) * 1e9)


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("jump", [-HOUR_S, HOUR_S])
async def test_a_clock_that_jumps_ends_no_session(
    monkeypatch: pytest.MonkeyPatch, jump: float, loaded: bool
) -> None:
    store = Store(session_idle=HOUR_S, session_age=HOUR_S)
    session_id, session = await store.opened_by()
    if loaded:
        store = Store(session_idle=HOUR_S, session_age=HOUR_S)
        session = await store.find(session_id, ANNA, "default")
    before = (await writer.run(Session.objects.get)).seen_ms
    monkeypatch.setattr(session_store, "time", Clocks(2 * session_store.TOUCH_S, jump))
    await asyncio.sleep(0.002)
    assert await store.find(session_id, ANNA, "default") is session
    assert (await writer.run(Session.objects.get)).seen_ms > before
    assert store.cached(session_id, ANNA, "default") is session


async def test_use_is_noted_from_time_to_time(store: Store) -> None:
    session_id, session = await store.opened_by()
    await older(session, seen=2 * session_store.TOUCH_S)
    before = (await writer.run(Session.objects.get)).seen_ms
    await store.find(session_id, ANNA, "default")
    after = (await writer.run(Session.objects.get)).seen_ms
    assert after > before
    await store.find(session_id, ANNA, "default")
    assert (await writer.run(Session.objects.get)).seen_ms == after


async def test_an_open_stream_and_a_running_call_are_use(store: Store) -> None:
    opened = [await store.opened_by() for _ in range(4)]
    streaming, calling, idle, fresh = (session for _, session in opened)
    streaming.streams.append(object())
    fresh.streams.append(object())
    calling.running["seven"] = object()
    for session in (streaming, calling, idle):
        await older(session, seen=2 * session_store.TOUCH_S)
    before = await seen_ms()
    await store.touch_used()
    after = await seen_ms()
    touched = [each.pk for _, each in opened if after[each.pk] > before[each.pk]]
    assert touched == [streaming.pk, calling.pk]
    await asyncio.sleep(0.002)
    await store.touch_used()
    assert await seen_ms() == after


async def seen_ms() -> dict[int, int]:
    rows = Session.objects.values_list("pk", "seen_ms")
    return dict(await writer.run(list, rows))


@pytest.mark.parametrize("since", ["seen", "created"])
async def test_an_expired_session(since: str) -> None:
    store = Store(session_idle=3_600, session_age=7_200)
    session_id, session = await store.opened_by()
    await older(session, **{since: 3 * 3_600})
    await missing(store, session_id)
    await missing(Store(session_idle=3_600, session_age=7_200), session_id)


async def test_a_session_that_is_used_elsewhere_does_not_expire_here() -> None:
    store = Store(session_idle=3_600)
    session_id, session = await store.opened_by()
    # As this process knows it; the row was used by another one since.
    session.last_used -= 3 * 3_600
    assert await store.find(session_id, ANNA, "default") is session


async def test_a_session_that_was_closed_elsewhere_ends_here_when_it_is_touched(
    store: Store,
) -> None:
    session_id, session = await store.opened_by()
    await writer.run(Session.objects.all().delete)
    session.last_used -= 2 * session_store.TOUCH_S
    await missing(store, session_id)
    assert store.closed == [session]


async def test_sessions_that_are_used_together_are_noted_together() -> None:
    """Whoever opens and uses sessions without pause must not delay the heartbeat."""
    store = Store(session_idle=3_600, anonymous_idle=1_800)
    anna = [await store.opened_by(ANNA) for _ in range(20)]
    strangers = [await store.opened_by(Principal.ANONYMOUS) for _ in range(20)]
    for _, session in (*anna, *strangers):
        await older(session, seen=2 * session_store.TOUCH_S)
    (idle_id, idle), (gone_id, gone) = anna[3], anna[4]
    await older(idle, seen=3_600)
    await writer.run(Session.objects.filter(pk=gone.pk).delete)
    # Half an hour is too long for strangers alone.
    await older(anna[5][1], seen=1_800)
    (late_id, late) = strangers[6]
    await older(late, seen=1_800)
    before = await seen_ms()
    uses = [
        store.find(session_id, principal, "default")
        for sessions, principal in ((anna, ANNA), (strangers, Principal.ANONYMOUS))
        for session_id, _ in sessions
    ]
    async with counted([writer]) as statements:
        answers = await asyncio.gather(*uses, return_exceptions=True)
    after = await seen_ms()
    refused = [each for each in answers if not isinstance(each, OpenSession)]
    assert len(refused) == 3
    assert all(isinstance(each, RequestRefused) for each in refused)
    for session_id, principal in (
        (idle_id, ANNA),
        (gone_id, ANNA),
        (late_id, Principal.ANONYMOUS),
    ):
        await missing(store, session_id, principal)
    noted = {pk for pk, time_ms in after.items() if time_ms > before[pk]}
    assert noted == after.keys() - {idle.pk, late.pk}
    updates = [each for each in statements if each.startswith("UPDATE")]
    assert 0 < len(updates) <= 4, statements


async def test_handshakes_that_end_together_are_noted_together(store: Store) -> None:
    sessions = [(await store.opened_by())[1] for _ in range(20)]
    async with counted([writer]) as statements:
        await asyncio.gather(*map(store.complete_handshake, sessions))
    updates = [each for each in statements if each.startswith("UPDATE")]
    assert 0 < len(updates) <= 2, statements
    assert await writer.run(Session.objects.filter(initialized=True).count) == 20


async def test_the_next_session_closes_the_one_that_was_idle_for_longest() -> None:
    store = Store(sessions_per_principal=2)
    first_id, first = await store.opened_by(ANNA)
    second_id, second = await store.opened_by(ANNA)
    bert_id, _ = await store.opened_by(BERT)
    await older(first, seen=5)
    third_id, _ = await store.opened_by(ANNA)
    assert store.closed == [first]
    await missing(store, first_id)
    for session_id, principal in ((second_id, ANNA), (third_id, ANNA), (bert_id, BERT)):
        found = await store.find(session_id, principal, "default")
        assert found.principal_key == principal.key
    assert await store.find(second_id, ANNA, "default") is second


@pytest.mark.parametrize(
    ("limits", "principal"),
    [
        ({"sessions_per_principal": 1}, Principal.ANONYMOUS),
        ({"sessions_per_principal": 1, "rates": False}, ANNA),
    ],
)
async def test_where_sessions_are_not_counted(
    limits: dict[str, Any], principal: Principal
) -> None:
    store = Store(**limits)
    for _ in range(3):
        await store.opened_by(principal)
    assert store.closed == []
    assert await reader.run(Session.objects.count) == 3


async def test_t21_sessions_that_strangers_open_give_way_to_those_in_use() -> None:
    store = Store(anonymous_sessions=6)
    used_id, used = await store.opened_by(Principal.ANONYMOUS)
    await store.complete_handshake(used)
    await older(used, seen=50)
    anna_id, _ = await store.opened_by(ANNA)
    for _ in range(8):
        await store.create(FLOOD)
    assert await reader.run(Session.objects.anonymous().count) == 6
    # One that never says that it is initialized is in use, too.
    newest_id, newest = await store.opened_by(Principal.ANONYMOUS)
    for _ in range(8):
        await store.create(FLOOD)
    assert newest not in store.closed
    for session_id, principal in (
        (used_id, Principal.ANONYMOUS),
        (newest_id, Principal.ANONYMOUS),
        (anna_id, ANNA),
    ):
        await store.find(session_id, principal, "default")


async def test_t21_no_request_waits_until_many_sessions_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_store, "FEW", 0)
    store = Store(anonymous_sessions=4)
    for _ in range(4):
        await store.create(FLOOD)
    may_delete = asyncio.Event()
    deleted: list[int] = []
    delete = open_session.delete_sessions

    async def slow(rows: Any) -> None:
        deleted.extend(await reader.run(list, rows.values_list("pk", flat=True)))
        await may_delete.wait()
        await delete(rows)

    monkeypatch.setattr(open_session, "delete_sessions", slow)
    for _ in range(3):
        await store.create(FLOOD)
    assert await reader.run(Session.objects.count) == 7
    may_delete.set()
    await store.no_longer_closing()
    assert len(deleted) == 1
    await store.create(FLOOD)
    await store.no_longer_closing()
    assert await reader.run(Session.objects.count) == 4
    assert len(deleted) == len(set(deleted))


async def test_sessions_that_are_too_many_wait_for_a_database_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_store, "FEW", 0)
    store = Store(anonymous_sessions=2)

    async def fail(_: object) -> None:
        raise OperationalError("away")

    with monkeypatch.context() as patched:
        patched.setattr(open_session, "delete_sessions", fail)
        for _ in range(3):
            await store.create(FLOOD)
        await store.no_longer_closing()
    assert await reader.run(Session.objects.count) == 3
    await store.create(FLOOD)
    await store.no_longer_closing()
    assert await reader.run(Session.objects.count) == 2


async def test_t21_who_never_came_again_was_seen_when_the_session_began() -> None:
    store = Store()
    for _ in range(20):
        await store.create(FLOOD)
    assert not await reader.run(Session.objects.exclude(seen_ms=F("created_ms")).exists)


async def test_t21_a_request_in_the_millisecond_of_the_first_one_counts() -> None:
    store = Store()
    session_id = await store.create(FLOOD)
    # As if no time went by until the next request, or the clock had gone back.
    later = F("created_ms") + 60_000
    await writer.run(Session.objects.update, created_ms=later, seen_ms=later)
    await store.find(session_id, Principal.ANONYMOUS, "default")
    assert not await reader.run(Session.objects.filter(open_session.UNUSED).exists)


async def test_t21_a_new_session_has_time_to_begin_where_all_others_are_in_use() -> (
    None
):
    store = Store(anonymous_sessions=4)
    sessions = [(await store.opened_by(Principal.ANONYMOUS))[1] for _ in range(4)]
    for at, each in enumerate(sessions):
        await store.complete_handshake(each)
        await older(each, seen=50 - at)
    _, session = await store.opened_by(Principal.ANONYMOUS)
    assert store.closed == [sessions[0]]
    await store.complete_handshake(session)


async def test_sessions_of_strangers_are_idle_for_an_hour_at_most() -> None:
    for principal, idle in ((Principal.ANONYMOUS, True), (ANNA, False)):
        store = Store(anonymous_idle=3_600)
        session_id, session = await store.opened_by(principal)
        await older(session, seen=3_700)
        if idle:
            await missing(store, session_id, principal)
        else:
            await store.find(session_id, principal, "default")


async def test_sessions_that_come_together_are_stored_together(store: Store) -> None:
    async with counted([writer]) as told:
        ids = await asyncio.gather(
            *(
                store.create(Opening(who, "default", REVISION, CLIENT))
                for who in (ANNA, Principal.ANONYMOUS, BERT)
                for _ in range(20)
            )
        )
    assert len(set(ids)) == await reader.run(Session.objects.count) == 60
    inserts = [each for each in told if each.startswith("INSERT")]
    assert 0 < len(inserts) <= 2, told


async def test_those_of_one_principal_that_come_together_are_as_many_as_may_be() -> (
    None
):
    store = Store(sessions_per_principal=3)
    opening = Opening(ANNA, "default", REVISION, CLIENT)
    ids = await asyncio.gather(*(store.create(opening) for _ in range(9)))
    assert await reader.run(Session.objects.count) == 3
    good = 0
    for each in ids:
        with suppress(RequestRefused):
            await store.find(each, ANNA, "default")
            good += 1
    assert good == 3


async def test_t20_sessions_that_nobody_has_are_looked_up_together() -> None:
    store = Store()
    async with counted() as told:
        gone = await asyncio.gather(
            *(missing(store, f"made-up-{at}") for at in range(300))
        )
    assert set(gone) == {"Session not found. Initialize a new one."}
    assert 0 < len(told) <= 2, told


async def test_a_process_keeps_the_sessions_that_are_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "MAX_SESSIONS", 2)
    first_id, first = await store.opened_by()
    second_id, second = await store.opened_by()
    await store.find(first_id, ANNA, "default")
    _, third = await store.opened_by()
    assert set(store._cached_sessions.values()) == {first, third}
    # It went from memory, not from the world.
    assert store.closed == []
    assert await store.find(second_id, ANNA, "default") is not second


async def test_a_session_with_streams_or_calls_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "MAX_SESSIONS", 1)
    _, first = await store.opened_by()
    first.running[1] = object()
    _, second = await store.opened_by()
    assert set(store._cached_sessions.values()) == {first, second}
    first.running.clear()
    _, third = await store.opened_by()
    assert first not in store._cached_sessions.values()
    assert third in store._cached_sessions.values()


async def test_a_row_of_a_client_that_said_nothing(store: Store) -> None:
    session_id, session = await store.opened_by()
    rows = Session.objects.filter(pk=session.pk)
    await writer.run(rows.update, capabilities="", client_info="")
    read = await Store().find(session_id, ANNA, "default")
    assert read.client == Client()
