"""What many streams gain is one transaction, on every database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import (
    DataError,
    IntegrityError,
    OperationalError,
    connection,
    connections,
)
from django.test.utils import CaptureQueriesContext

from mcp_app.models import Session, Stream
from mcp_app.models.appends import is_one_statement
from mcp_app.models.streams import StreamQuerySet
from mcp_app.pools import connections as outages
from mcp_app.streams import log_writer
from mcp_app.streams.log_writer import Batch, Gain, StreamFenced, write
from tests.streams.logging_rows import (
    OWNER,
    events,
    further,
    new,
    opened,
    opening,
    own_session,
)

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]


def test_a_new_stream_and_its_messages(row: Session) -> None:
    [key] = write(Batch([opening(row, b'{"a":1}', "é".encode())], OWNER))
    assert isinstance(key, int)
    stream = Stream.objects.get(pk=key)
    assert (stream.head_seq, stream.size, stream.state) == (2, 9, "open")
    assert (stream.owner, stream.ended_ms) == (OWNER, None)
    assert events(key) == [(1, '{"a":1}'), (2, "é")]


def test_what_is_further_said_has_the_next_numbers(row: Session) -> None:
    key = opened(row, b"1")
    assert write(Batch([further(key, b"2", b"3")], OWNER)) == [key]
    assert write(Batch([further(key, b"4", state="completed")], OWNER)) == [key]
    assert events(key) == [(1, "1"), (2, "2"), (3, "3"), (4, "4")]
    stream = Stream.objects.get(pk=key)
    assert (stream.head_seq, stream.state) == (4, "completed")
    assert stream.ended_ms is not None


def test_many_streams_cost_as_many_statements_as_two(row: Session) -> None:
    def counted(count: int) -> int:
        keys = [opened(row, b"1") for _ in range(count)]
        gains = [further(key, b"2", b"3") for key in keys]
        gains += [opening(row, b"1") for _ in range(count)]
        with CaptureQueriesContext(connection) as queries:
            results = write(Batch(gains, OWNER))
        assert results[:count] == keys
        assert all(len(events(int(str(key)))) for key in results)
        return len(queries)

    assert counted(40) == counted(2)


def test_messages_of_every_size(row: Session) -> None:
    payloads = [b"", b"x" * 1_000_000, b"\\u0000 '%s %% \\\\", "𝄞".encode()]
    key = opened(row, *payloads)
    assert [text.encode() for _, text in events(key)] == payloads


@pytest.mark.parametrize(
    "change", [{"state": "closed"}, {"state": "completed"}, {"owner": "worker-2"}]
)
def test_who_is_fenced_adds_nothing(row: Session, change: dict[str, str]) -> None:
    fenced, free = opened(row, b"1"), opened(row, b"1")
    gains = [further(fenced, b"2"), further(free, b"2")]
    Stream.objects.filter(pk=fenced).update(**change)
    first, second = write(Batch(gains, OWNER))
    assert isinstance(first, StreamFenced)
    assert second == free
    assert (len(events(fenced)), len(events(free))) == (1, 2)
    assert Stream.objects.get(pk=fenced).head_seq == 1


def test_a_stream_that_is_deleted_gains_nothing(row: Session) -> None:
    key = opened(row, b"1")
    gain = further(key, b"2")
    Stream.objects.get(pk=key).delete()
    assert isinstance(write(Batch([gain], OWNER))[0], StreamFenced)
    assert events(key) == []


def test_a_request_comes_once(row: Session) -> None:
    opened(row, request_key="k")
    key = opened(row)
    gains = [opening(row, request_key="k"), further(key, b"1"), opening(row, b"1")]
    repeated, other, last = write(Batch(gains, OWNER))
    assert isinstance(repeated, IntegrityError)
    assert other == key
    assert isinstance(last, int)
    assert (len(events(key)), len(events(last))) == (1, 1)


def test_a_request_of_a_session_that_is_gone(row: Session) -> None:
    gone = own_session()
    gain = opening(gone)
    gone.delete()
    refused, kept = write(Batch([gain, opening(row)], OWNER))
    assert isinstance(refused, IntegrityError)
    assert isinstance(kept, int)


def test_rows_that_belong_to_a_message_come_with_it(row: Session) -> None:
    def ask(using: str) -> None:
        Session.objects.using(using).filter(pk=row.pk).update(log_level=3)

    def fail(_: str) -> None:
        raise DataError("too much")

    def with_rows(key: int, *beside: Callable[[str], object]) -> Gain:
        return Gain(None, key, 0, 0, [b"1"], "open", beside)

    good, bad = opened(row), opened(row)
    results = write(Batch([with_rows(good, ask), with_rows(bad, fail)], OWNER))
    assert results[0] == good
    assert isinstance(results[1], DataError)
    assert (len(events(good)), len(events(bad))) == (1, 0)
    row.refresh_from_db()
    assert row.log_level == 3


class Broken:
    """Commits that break as often as they are told, before or after they happened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
        self.times = 1
        kind: Any = type(connections["default"])
        if is_one_statement(connections["default"]):
            place, name = StreamQuerySet, "append"
        else:
            place, name = kind, "_commit"
        committed = getattr(place, name)

        def commit(*arguments: Any) -> Any:
            breaks, self.times = self.times > 0, self.times - 1
            done = committed(*arguments) if after or not breaks else None
            if breaks:
                raise OperationalError("The connection was cut.")
            return done

        monkeypatch.setattr(place, name, commit)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_commit_whose_answer_was_lost_is_found(
    row: Session, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    gain = opening(row, b"1") if is_new else further(opened(row), b"1")
    Broken(monkeypatch, after=True)
    [key] = write(Batch([gain], OWNER))
    assert isinstance(key, int)
    assert events(key) == [(1, "1")]


def test_what_was_not_committed_is_written_again(
    row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Batch([further(opened(row), b"1"), opening(row, b"1")], OWNER)
    Broken(monkeypatch, after=False)
    with pytest.raises(OperationalError):
        write(batch)
    keys = write(batch)
    assert [len(events(int(str(key)))) for key in keys] == [1, 1]


def test_an_outage_between_parts_writes_nothing_twice(
    row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(row, request_key="k")
    gains = [opening(row, b"1"), opening(row, request_key="k"), opening(row, b"2")]
    batch = Batch(gains, OWNER)
    broken = Broken(monkeypatch, after=False)
    broken.times = 0
    written = log_writer._written

    def cut(part: Batch) -> Any:
        broken.times = int(list(part.gains) == gains[2:] and not part.tried)
        return written(part)

    monkeypatch.setattr(log_writer, "_written", cut)
    with pytest.raises(OperationalError):
        write(batch)
    monkeypatch.setattr(log_writer, "_written", written)
    broken.times = 0
    first, refused, last = write(batch)
    assert isinstance(refused, IntegrityError)
    assert [events(int(str(key))) for key in (first, last)] == [[(1, "1")], [(1, "2")]]


def test_an_unsaved_stream_has_no_number_twice(row: Session) -> None:
    """What a rollback gives back is given again: there are no gaps."""
    key = opened(row)
    refused = Gain(None, key, 0, 0, [b"1"], "open", (_refuse,))
    assert isinstance(write(Batch([refused], OWNER))[0], DataError)
    assert write(Batch([further(key, b"2")], OWNER)) == [key]
    assert events(key) == [(1, "2")]


def _refuse(_: str) -> None:
    raise DataError("too much")


def test_a_name_is_a_streams_own(row: Session) -> None:
    gain = Gain(new(row), None, 0, 0, [], "open")
    assert isinstance(write(Batch([gain], OWNER))[0], int)
    assert isinstance(write(Batch([gain], OWNER))[0], IntegrityError)


# -- what looks like an outage and is none ------------------------------------------


class CutsAt:
    """A database that cuts the connection where it is given a certain message."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, payload: bytes, error: Exception
    ) -> None:
        self.attempts = 0
        written = log_writer._written

        def write_or_break(batch: Batch) -> Any:
            if any(payload in gain.payloads for gain in batch.gains):
                self.attempts += 1
                raise error
            return written(batch)

        monkeypatch.setattr(log_writer, "_written", write_or_break)


def persistently(batch: Batch) -> tuple[list[Any], int]:
    """Write a batch as the log does; return its results, and how often it broke."""
    for broken in range(50):
        try:
            return write(batch), broken
        except OperationalError:
            continue
    raise AssertionError("It broke for ever.")


def test_one_that_cuts_the_connection_stops_no_other(
    row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OperationalError(2006, "Server has gone away")
    cuts = CutsAt(monkeypatch, b"bad", error)
    gains = [opening(row, each) for each in (b"1", b"bad", b"2")]
    (first, refused, last), broken = persistently(Batch(gains, OWNER))
    assert refused is error
    assert [events(int(str(key))) for key in (first, last)] == [[(1, "1")], [(1, "2")]]
    assert cuts.attempts == outages.TOGETHER + log_writer.ALONE
    assert broken == cuts.attempts - 1 - 1


@pytest.mark.parametrize("said", [1021, 1114, "database or disk is full"])
def test_a_full_disk_is_waited_for(
    row: Session, monkeypatch: pytest.MonkeyPatch, said: object
) -> None:
    CutsAt(monkeypatch, b"1", OperationalError(said))
    batch = Batch([opening(row, b"1"), opening(row, b"2")], OWNER)
    with pytest.raises(AssertionError, match="for ever"):
        persistently(batch)
    assert (batch.refused, batch.parts) == (0, ())
    monkeypatch.undo()
    assert all(isinstance(key, int) for key in write(batch))


def test_an_outage_is_no_refusal(row: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the database does not answer at all, nothing is counted."""
    CutsAt(monkeypatch, b"1", OperationalError("away"))
    batch = Batch([opening(row, b"1")], OWNER)
    with monkeypatch.context() as away:

        def unreachable(_: Batch) -> Any:
            raise OperationalError("away")

        away.setattr(log_writer, "_committed", unreachable)
        with pytest.raises(AssertionError, match="for ever"):
            persistently(batch)
    assert batch.refused == 0
    assert isinstance(persistently(batch)[0][0], OperationalError)
