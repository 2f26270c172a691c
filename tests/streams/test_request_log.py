"""What requests say is committed before it is sent, many together."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import pytest
from django.db import DataError, IntegrityError, OperationalError

from mcp_app.models import Session, Stream
from mcp_app.models.appends import NewStream
from mcp_app.models.streams import StreamQuerySet
from mcp_app.pools.database import log_writer, reader
from mcp_app.streams import request_log
from mcp_app.streams.claims import end_own_streams, open_streams
from mcp_app.streams.event_ids import request_ids
from mcp_app.streams.log_writer import ALONE, Beside, StreamFenced
from mcp_app.streams.request_log import OwnedStream, RequestLog
from tests.process.outages import read_only
from tests.serving import all_logged
from tests.streams.logging_rows import OWNER, erase, events, own_session, until
from tests.streams.writes import Writes

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

PATIENCE_S: Final = 60
ABORTED: Final = Stream.State.ABORTED.value


class Heard:
    def __init__(self) -> None:
        self.begun = 0
        self.messages: list[tuple[bytes, str]] = []
        self.over = asyncio.Event()

    def began(self) -> None:
        assert not self.messages
        self.begun += 1

    def message(self, payload: bytes, event_id: str) -> None:
        self.messages.append((payload, event_id))

    def ended(self) -> None:
        self.over.set()


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    return Writes(monkeypatch)


@pytest.fixture
async def row() -> AsyncIterator[Session]:
    yield await log_writer.run(own_session)
    await log_writer.run(erase)


@pytest.fixture
def log() -> RequestLog:
    return RequestLog(OWNER)


def begun(log: RequestLog, row: Session, **named: Any) -> tuple[OwnedStream, Heard]:
    new = NewStream(secrets.token_urlsafe(18), row.pk, "1", **named)
    stream = log.open_stream(new)
    heard = Heard()
    stream.readers.append(heard)
    return stream, heard


async def stored(stream: OwnedStream) -> list[tuple[int, str]]:
    assert stream.key is not None
    return await reader.run(events, stream.key)


async def test_what_is_sent_is_there(log: RequestLog, row: Session) -> None:
    stream, heard = begun(log, row)
    await stream.wait_until_committed()
    assert (stream.seq, heard.messages, heard.begun) == (0, [], 1)
    stream.append(b"1")
    stream.append(b"2")
    assert heard.messages == []
    await stream.wait_until_committed()
    name = stream.public_id
    assert heard.messages == [(b"1", f"{name}.1"), (b"2", f"{name}.2")]
    assert await stored(stream) == [(1, "1"), (2, "2")]
    assert not heard.over.is_set()
    assert heard.begun == 1


async def test_a_stream_ends_with_its_last_message(
    log: RequestLog, row: Session
) -> None:
    stream, heard = begun(log, row)
    stream.append(b"1")
    stream.end(b"2")
    stream.append(b"too late")
    stream.end(b"twice")
    await asyncio.wait_for(heard.over.wait(), 60)
    assert [payload for payload, _ in heard.messages] == [b"1", b"2"]
    assert (len(log), stream.readers) == (0, [])
    assert len(await stored(stream)) == 2


async def test_a_stream_ends_in_silence(log: RequestLog, row: Session) -> None:
    stream, heard = begun(log, row)
    stream.end(None, ABORTED)
    await asyncio.wait_for(heard.over.wait(), 60)
    found = await reader.run(Stream.objects.get, public_id=stream.public_id)
    assert (found.state, found.head_seq) == (ABORTED, 0)


async def test_what_is_said_meanwhile_goes_together(
    log: RequestLog, row: Session, writes: Writes
) -> None:
    streams = [begun(log, row)[0] for _ in range(20)]
    for number in range(5):
        for stream in streams:
            stream.append(b"%d" % number)
    await asyncio.gather(*(stream.wait_until_committed() for stream in streams))
    assert writes.sizes == [(20, 100)]
    for stream in streams:
        assert await stored(stream) == [(n + 1, str(n)) for n in range(5)]


async def test_a_batch_has_its_limits(
    log: RequestLog, row: Session, writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "MOST_EVENTS", 10)
    monkeypatch.setattr(request_log, "MOST_BYTES", 100)
    many, large = begun(log, row), begun(log, row)
    for number in range(25):
        many[0].append(b"%d" % number)
    for _ in range(3):
        large[0].append(b"x" * 60)
    large[0].end(b"last")
    await asyncio.gather(
        many[0].wait_until_committed(), large[0].wait_until_committed()
    )
    assert all(messages <= 10 for _, messages in writes.sizes)
    assert len(writes.sizes) > 3
    assert [text for text, _ in many[1].messages] == [b"%d" % n for n in range(25)]
    assert [len(text) for text, _ in large[1].messages] == [60, 60, 60, 4]
    assert large[1].over.is_set()


async def test_a_database_that_writes_nothing_is_waited_for(
    log: RequestLog, row: Session, writes: Writes
) -> None:
    stream, heard = begun(log, row)
    await stream.wait_until_committed()
    with read_only():
        attempts = len(writes.sizes)
        stream.append(b"1")
        await until(lambda: len(writes.sizes) >= attempts + 2 * ALONE)
        assert heard.messages == []
    stream.end(b"2")
    await asyncio.wait_for(heard.over.wait(), PATIENCE_S)
    assert await stored(stream) == [(1, "1"), (2, "2")]


async def test_who_cannot_send_stops_no_other(
    log: RequestLog, row: Session, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Heard):
        def message(self, payload: bytes, event_id: str) -> None:
            raise ZeroDivisionError

    bad, good = begun(log, row)[0], begun(log, row)[0]
    broken = Broken()
    bad.readers.append(broken)
    for stream in (bad, good):
        stream.append(b"1")
    await good.wait_until_committed()
    assert broken.over.is_set()
    assert len(log) == 1
    assert "could not be sent" in caplog.text


async def test_rows_that_nobody_here_will_end(
    log: RequestLog, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, lost, withdrawn = (begun(log, row)[0] for _ in range(3))
    for stream in (kept, lost, withdrawn):
        await stream.wait_until_committed()
    lost.close_after_failure(ZeroDivisionError())

    def broken(_: StreamQuerySet) -> object:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(StreamQuerySet, "delete", broken)
        withdrawn.withdraw_request()
        await all_logged(log)
    found = await log_writer.run(open_streams, OWNER)
    assert len(found) == 3
    # What did not begin is not ended, but deleted.
    assert log.unknown_streams(found) == [lost.public_id]
    await all_logged(log)
    await log_writer.run(end_own_streams, OWNER, [lost.public_id])
    assert await log_writer.run(open_streams, OWNER) == [kept.public_id]
    ((_, text),) = await stored(lost)
    assert "could not be stored" in text


async def test_one_that_is_refused_stops_no_other(
    log: RequestLog, row: Session
) -> None:
    good, heard = begun(log, row, request_key="k")
    await good.wait_until_committed()
    bad, unheard = begun(log, row, request_key="k")
    waiting = asyncio.ensure_future(bad.wait_until_committed())
    bad.append(b"1")
    good.append(b"1")
    await good.wait_until_committed()
    with pytest.raises(IntegrityError):
        await waiting
    with pytest.raises(IntegrityError):
        await bad.wait_until_committed()
    bad.append(b"2")
    bad.end(b"3")
    assert unheard.over.is_set()
    assert (unheard.messages, len(heard.messages), len(log)) == ([], 1, 1)


async def test_a_fault_of_ours_ends_the_streams(
    log: RequestLog, row: Session, writes: Writes, caplog: pytest.LogCaptureFixture
) -> None:
    stream, heard = begun(log, row)
    writes.faults.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await stream.wait_until_committed()
    assert heard.over.is_set()
    assert "The replay log could not be written" in caplog.text
    other, _ = begun(log, row)
    await other.wait_until_committed()


async def test_who_waits_no_longer_is_not_told(log: RequestLog, row: Session) -> None:
    stream, _ = begun(log, row)
    for end in (None, StreamFenced()):
        waiting = asyncio.ensure_future(stream.wait_until_committed())
        await asyncio.sleep(0)
        waiting.cancel()
        if end is not None:
            stream.close_after_failure(end)
        else:
            stream.append(b"1")
            await stream.wait_until_committed()
            stream.append(b"2")
    with pytest.raises(StreamFenced):
        await stream.wait_until_committed()


async def test_a_reader_may_leave_when_it_is_told(
    log: RequestLog, row: Session
) -> None:
    stream, heard = begun(log, row)

    class Leaving(Heard):
        def message(self, payload: bytes, event_id: str) -> None:
            super().message(payload, event_id)
            stream.readers.remove(self)

    leaving = Leaving()
    stream.readers.insert(0, leaving)
    stream.append(b"1")
    stream.append(b"2")
    await stream.wait_until_committed()
    assert (len(leaving.messages), len(heard.messages)) == (1, 2)


async def test_what_did_not_begin_goes_after_an_outage(
    log: RequestLog,
    row: Session,
    writes: Writes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream, _ = begun(log, row)
    await stream.wait_until_committed()
    outages, delete = [1, 2], StreamQuerySet.delete

    def deleted(rows: StreamQuerySet) -> object:
        if outages:
            outages.pop()
            raise OperationalError("The database is away.")
        return delete(rows)

    monkeypatch.setattr(StreamQuerySet, "delete", deleted)
    stream.withdraw_request()
    other, _ = begun(log, row)
    other.append(b"1")
    await other.wait_until_committed()
    await all_logged(log)
    assert outages == []
    names = Stream.objects.values_list("public_id", flat=True)
    assert await reader.run(list, names) == [other.public_id]

    def broken(_: StreamQuerySet) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(StreamQuerySet, "delete", broken)
    other.withdraw_request()
    await all_logged(log)
    assert "could not be deleted" in caplog.text
    monkeypatch.undo()


async def test_a_call_is_told_that_its_stream_is_lost(
    log: RequestLog, row: Session, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[str, bytes | None]] = []
    streams = [begun(log, row)[0] for _ in range(3)]
    for name, stream in zip("abc", streams, strict=True):
        stream.lost = partial(_note, told, name)
        await stream.wait_until_committed()
    taken, refused, ended = streams
    rows = Stream.objects.filter(public_id=taken.public_id)
    await log_writer.run(rows.update, owner="worker-2")
    taken.append(b"1")
    refused.append(b"1", Beside(_refuse))
    ended.end(b"1")
    waiting = [each.wait_until_committed() for each in streams]
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in errors] == [StreamFenced, DataError, type(None)]
    await all_logged(log)
    (first, nothing), (second, words) = told
    assert (first, nothing, second) == ("a", None, "b")
    assert words is not None
    assert b"could not be stored" in words
    assert await stored(refused) == [(1, words.decode())]
    assert len(log) == 0
    assert refused.public_id in caplog.text
    assert taken.public_id not in caplog.text


def _note(told: list[tuple[str, bytes | None]], name: str, words: bytes | None) -> None:
    told.append((name, words))


def _refuse(_: str) -> None:
    raise DataError("too much")


async def test_a_stream_is_full(
    log: RequestLog, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "KEPT_EVENTS", 3)
    monkeypatch.setattr(request_log, "KEPT_BYTES", 10)
    many, large = begun(log, row)[0], begun(log, row)[0]
    for number in range(3):
        assert not many.may_send_no_more
        many.append(b"%d" % number)
        if number == 1:
            await many.wait_until_committed()
    assert many.may_send_no_more
    large.append(b"12345")
    await large.wait_until_committed()
    full = [large.may_send_no_more]
    large.append(b"12345")
    full.append(large.may_send_no_more)
    await large.wait_until_committed()
    assert [*full, large.may_send_no_more] == [False, True, True]
    assert not large.ends


async def test_where_too_much_waits_those_with_most_may_send_no_more(
    log: RequestLog, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "MOST_WAITING", 100)
    large, small, withdrawn = (begun(log, row)[0] for _ in range(3))
    small.append(b"1")
    large.append(b"x" * 90)
    full = [large.may_send_no_more]
    withdrawn.append(b"x" * 9)
    full += [large.may_send_no_more, small.may_send_no_more, withdrawn.may_send_no_more]
    withdrawn.withdraw_request()
    assert log.waiting == 91
    full.append(large.may_send_no_more)
    small.append(b"x" * 9)
    full.append(large.may_send_no_more)
    assert full == [False, True, False, False, False, True]
    small.append(b"x" * 80)
    # Two with the same share are both above it, or neither would ever stop.
    assert large.queued_bytes == small.queued_bytes
    assert large.may_send_no_more
    assert small.may_send_no_more
    large.end_with_overflow()
    await all_logged(log)
    assert log.waiting == 0
    assert (small.may_send_no_more, small.ends, large.ends) == (False, False, True)
    _, (_, last) = await stored(large)
    assert "send more than the database takes" in last


async def test_who_has_little_does_not_wait_for_those_with_much(
    log: RequestLog, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "FEW_BYTES", 2)
    monkeypatch.setattr(request_log, "MOST_WITH_FEW", 2)
    much = [begun(log, row)[0] for _ in range(2)]
    little = [begun(log, row)[0] for _ in range(3)]
    for each in much:
        each.append(b"123")
    for each in little:
        each.append(b"1")
    assert log._streams_in_turn() == [*much, *little]
    monkeypatch.setattr(request_log, "MOST_BYTES", 8)
    assert log._streams_in_turn() == [*little[:2], *much, little[2]]
    await all_logged(log)
    assert [[each for _, each in await stored(one)] for one in (*much, *little)] == [
        *[["123"]] * 2,
        *[["1"]] * 3,
    ]


async def test_what_is_answered_is_read_once(
    log: RequestLog, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(requests: str) -> list[str | int]:
        read.append(requests)
        return request_ids(requests)

    monkeypatch.setattr(request_log, "request_ids", counted)
    streams = [
        log.open_stream(NewStream(f"stream-{number}", row.pk, requests))
        for number, requests in enumerate(['"a"', '[1,"b"]'])
    ]
    for _ in range(3):
        assert log.answered_requests() == {(row.pk, each) for each in ("a", 1, "b")}
    assert sorted(read) == ['"a"', '[1,"b"]']
    for stream in streams:
        stream.end(None)
    await all_logged(log)
    assert log.answered_requests() == set()


def beside(erased: list[tuple[int, int]]) -> Beside:
    """Return rows beside a message that note when they are erased."""

    def erase(_: str, key: int, seq: int) -> None:
        erased.append((key, seq))

    return Beside(lambda _: None, erase)


async def test_rows_beside_messages_are_erased_once_the_stream_is_over(
    log: RequestLog, row: Session
) -> None:
    erased: list[tuple[int, int]] = []
    stream, _ = begun(log, row)
    stream.append(b"1")
    stream.append(b"2", beside(erased))
    await stream.wait_until_committed()
    stream.append(b"3", beside(erased))
    await all_logged(log)
    assert erased == []
    stream.end(b"4")
    await all_logged(log)
    assert erased == [(stream.key, 2), (stream.key, 3)]


async def test_what_was_never_stored_is_not_erased(
    log: RequestLog, row: Session
) -> None:
    """The last words of a stream have the number of a message that was refused."""
    erased: list[tuple[int, int]] = []
    refused, _ = begun(log, row)
    refused.append(b"1", beside(erased))
    await refused.wait_until_committed()
    refused.append(b"2", Beside(_refuse, beside(erased).erase))
    withdrawn, _ = begun(log, row)
    withdrawn.append(b"1", beside(erased))
    withdrawn.withdraw_request()
    await all_logged(log)
    assert erased == [(refused.key, 1)]
    assert [seq for seq, _ in await stored(refused)] == [1, 2]


async def test_erasing_waits_for_the_end_of_an_outage_and_skips_what_fails(
    log: RequestLog,
    row: Session,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(request_log, "RETRY_S", (0, 0))
    erased: list[tuple[int, int]] = []
    attempts: list[str] = []

    def away(using: str, key: int, seq: int) -> None:
        attempts.append("away")
        if len(attempts) < 3:
            raise OperationalError("The database is away.")
        erased.append((key, seq))

    def broken(using: str, key: int, seq: int) -> None:
        raise LookupError("This is a fault.")

    stream, _ = begun(log, row)
    for erase_row in (broken, away):
        stream.append(b"1", Beside(lambda _: None, erase_row))
    stream.end(b"2")
    await all_logged(log)
    assert erased == [(stream.key, 2)]
    assert caplog.text.count("could not be erased") == 1
