"""Streams that have ended keep their newest messages only."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_app.conf import Limits
from mcp_app.models import Event, LoggedMessage, Once, Question, Session, Stream
from mcp_app.models import expiry as portions
from mcp_app.models import sessions as session_rows
from mcp_app.models import streams as stream_rows
from mcp_app.models.sessions import Subscription
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.streams import retention
from mcp_app.streams.log_writer import Batch, write
from mcp_app.streams.retention import expired_streams, trim_streams
from tests.streams.logging_rows import OWNER, events, further, opened, own_session

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MAX_EVENTS", 3)
    monkeypatch.setattr(retention, "MAX_BYTES", 100)
    monkeypatch.setattr(retention, "AT_ONCE", 2)


def ended(*payloads: bytes) -> int:
    key = opened(own_session(), *payloads)
    write(Batch([further(key, state="completed")], OWNER))
    return key


def kept(key: int) -> list[int]:
    """Return the numbers that are there, and see that the row says so."""
    stream = Stream.objects.get(pk=key)
    found = events(key)
    assert stream.size == sum(len(text) for _, text in found)
    assert [seq for seq, _ in found] == [
        *range(stream.floor_seq + 1, stream.head_seq + 1)
    ]
    return [seq for seq, _ in found]


def test_the_oldest_go() -> None:
    keys = [ended(*[b"1"] * 5) for _ in range(5)]
    assert trim_streams() == 10
    assert [kept(key) for key in keys] == [[3, 4, 5]] * 5
    assert trim_streams() == 0


def test_few_that_are_large_go() -> None:
    key = ended(b"x" * 60, b"x" * 60, b"x" * 30)
    assert trim_streams() == 1
    assert kept(key) == [2, 3]


def test_the_last_stays_however_large() -> None:
    key = ended(b"1", b"x" * 1_000)
    assert trim_streams() == 1
    assert kept(key) == [2]
    alone = ended(b"x" * 1_000)
    assert trim_streams() == 0
    assert (kept(key), kept(alone)) == ([2], [1])


def test_what_goes_on_keeps_everything() -> None:
    key = opened(own_session(), *[b"1"] * 10)
    assert trim_streams() == 0
    assert len(kept(key)) == 10


def test_what_is_still_to_be_read_stays() -> None:
    """Of HTTP+SSE it goes once it was sent: nobody can come back for it."""
    key = ended(*[b"1"] * 5)
    Session.objects.update(holder="worker-2")
    assert trim_streams() == 0
    assert kept(key) == [1, 2, 3, 4, 5]


def test_nothing_too_much_goes() -> None:
    key = ended(b"1", b"2", b"3")
    assert trim_streams() == 0
    assert len(kept(key)) == 3


HOUR_MS: Final = 3_600_000
LIMITS: Final = Limits(session_idle=3_600, session_age=7_200)


def digest() -> str:
    return uuid4().hex * 2


def remove_expired(limits: Limits) -> dict[str, int]:
    """Remove everything; return how many rows of each kind went."""
    removed = {}
    for each in expired_streams(limits):
        before, gone = each.count(), 0
        while (portion := each.remove()) is not None:
            assert portion <= portions.PORTION
            gone += portion
        assert gone == before
        if gone:
            removed[each.what] = gone
    return removed


def session(*, seen: int = 0, created: int = 0) -> Session:
    """Make a session that was seen and made so many milliseconds ago."""
    row: Session = Session.objects.create(
        digest=digest(),
        principal_key="user",
        server="default",
        revision="2025-11-25",
        created_ms=NowMilliseconds() - created,
        seen_ms=NowMilliseconds() - seen,
    )
    return row


def step(created: int) -> Any:
    return Once.objects.create(
        round_trip=digest(),
        key=digest(),
        result="null",
        created_ms=NowMilliseconds() - created,
    )


def test_what_is_too_old_goes_and_the_rest_stays() -> None:
    kept = [session(), session(seen=HOUR_MS // 2, created=HOUR_MS), step(HOUR_MS)]
    idle, old = session(seen=2 * HOUR_MS), session(created=3 * HOUR_MS)
    Subscription.objects.create(session=idle, uri="test://a")
    gone = [idle, old, step(retention.STEPS_KEPT_MS + HOUR_MS)]
    assert remove_expired(LIMITS) == {"sessions": 2, "steps": 1}
    for row in kept:
        row.refresh_from_db()
    left = Session.objects.count() + Once.objects.count()
    assert left == len(kept)
    assert not Session.objects.filter(pk__in=[row.pk for row in gone[:2]]).exists()
    assert not Subscription.objects.exists()
    assert remove_expired(LIMITS) == {}


def test_streams_that_ended_long_ago_go() -> None:
    row = session()
    keys = {age: opened(row, b"1", b"2") for age in (0, HOUR_MS // 2, HOUR_MS + 60_000)}
    still_open = opened(row, b"1")
    for age, key in keys.items():
        ended = Stream.objects.filter(pk=key)
        ended.update(state="completed", ended_ms=NowMilliseconds() - age)
    assert remove_expired(LIMITS) == {"streams": 1}
    left = set(Stream.objects.values_list("pk", flat=True))
    assert left == {still_open, keys[0], keys[HOUR_MS // 2]}
    assert set(Event.objects.values_list("stream_id", flat=True)) == left


def test_a_session_that_expires_takes_its_streams_along() -> None:
    opened(session(seen=2 * HOUR_MS), b"1", b"2")
    assert remove_expired(LIMITS) == {"sessions": 1}
    assert not Stream.objects.exists()
    assert not Event.objects.exists()


def test_log_messages_that_nobody_fetched_go() -> None:
    row = session()
    for age in (0, HOUR_MS + 60_000):
        LoggedMessage.objects.log([row.pk], str(age))
        made = LoggedMessage.objects.filter(payload=str(age))
        made.update(created_ms=NowMilliseconds() - age)
    assert remove_expired(LIMITS) == {"log messages": 1}
    assert LoggedMessage.objects.get().payload == "0"


def test_many_go_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "PORTION", 2)
    monkeypatch.setattr(session_rows, "AT_ONCE", 2)
    for _ in range(5):
        session(seen=2 * HOUR_MS)
        step(retention.STEPS_KEPT_MS + HOUR_MS)
    assert remove_expired(LIMITS) == {"sessions": 5, "steps": 5}


def question(row: Session, age: int, answer: str = "") -> Question:
    """Make a question that was asked so many milliseconds ago."""
    made: Question = Question.objects.create(
        session=row,
        rpc_id=uuid4().hex,
        answer=answer,
        created_ms=NowMilliseconds() - age,
    )
    return made


def test_a_question_goes_when_its_deadline_is_over() -> None:
    row, patient = session(), Limits(question_deadline=7_200)
    asked = question(row, HOUR_MS + 1_000)
    assert remove_expired(patient) == {}
    Question.objects.update(created_ms=NowMilliseconds() - 2 * HOUR_MS - 61_000)
    assert remove_expired(patient) == {"questions": 1}
    assert not Question.objects.filter(pk=asked.pk).exists()


def test_a_question_that_waits_stays_whatever_this_process_would_wait() -> None:
    row, other = session(), session()
    calling = stream(row, 1, ended=False)
    waits = question(row, 2 * HOUR_MS)
    question(row, 2 * HOUR_MS, answer="{}")
    question(other, 2 * HOUR_MS)
    assert remove_expired(Limits()) == {"questions": 2}
    assert Question.objects.get() == waits
    Stream.objects.filter(pk=calling.pk).update(ended_ms=NowMilliseconds())
    assert remove_expired(Limits()) == {"questions": 1}


def stream(row: Session, count: int, *, ended: bool = True) -> Any:
    """Make a stream that ended long ago, with messages of ten bytes."""
    columns = {"ended_ms": 1, "state": "completed"} if ended else {"state": "open"}
    made = Stream.objects.create(
        session=row,
        public_id=uuid4().hex,
        requests="1",
        owner="o",
        last_batch="b",
        head_seq=count,
        size=10 * count,
        created_ms=1,
        **columns,
    )
    Event.objects.bulk_create(
        Event(stream=made, seq=seq, payload="x" * 10, size=10)
        for seq in range(1, count + 1)
    )
    return made


def statements_of(limits: Limits) -> tuple[list[str], list[int]]:
    """Remove what has expired; return the statements, and how much each took along."""
    most, left = [], Event.objects.count()
    with CaptureQueriesContext(connection) as said:
        for each in expired_streams(limits):
            while each.remove() is not None:
                with connection.execute_wrapper(_unseen):
                    now = Event.objects.count()
                most.append(left - now)
                left = now
    return [each["sql"] for each in said], most


def _unseen(execute: Any, *arguments: Any) -> Any:
    try:
        return execute(*arguments)
    finally:
        connection.queries_log.pop()


def loading(statements: list[str]) -> list[str]:
    """Return those that read messages."""
    return [
        each for each in statements if "mcp_app_event" in each and "payload" in each
    ]


def test_streams_go_with_few_statements_that_load_nothing() -> None:
    row = session()
    for _ in range(200):
        stream(row, 100)
    statements, most = statements_of(LIMITS)
    assert not Stream.objects.exists()
    assert not Event.objects.exists()
    assert max(most) <= stream_rows.MAX_DELETED
    assert loading(statements) == []
    assert len(statements) <= 100


def test_a_stream_that_is_large_goes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_rows, "MAX_DELETED", 10)
    # Nothing is trimmed here.
    monkeypatch.setattr(retention, "MAX_EVENTS", 1_000)
    monkeypatch.setattr(retention, "MAX_BYTES", 1_000_000)
    row = session()
    large = stream(row, 35)
    assert {each.what: each.remove() for each in expired_streams(LIMITS)}[
        "streams"
    ] == 0
    large.refresh_from_db()
    assert (large.floor_seq, large.head_seq, large.size) == (10, 35, 250)
    stream(row, 8)
    _, most = statements_of(LIMITS)
    assert [each for each in most if each] == [10, 10, 5, 8]
    assert not Stream.objects.exists()


def test_large_messages_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_rows, "MAX_DELETED_BYTES", 25)
    stream(session(), 7)
    _, most = statements_of(LIMITS)
    assert [each for each in most if each] == [2, 2, 2, 1]


def test_a_session_that_expires_takes_its_messages_along_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_rows, "MAX_DELETED", 10)
    old = session(seen=2 * HOUR_MS)
    for _ in range(3):
        stream(old, 8, ended=False)
    kept = stream(session(), 8, ended=False)
    statements, most = statements_of(LIMITS)
    assert max(most) == 8
    assert loading(statements) == []
    assert Stream.objects.get() == kept
    assert Event.objects.count() == 8


@pytest.mark.parametrize("one", [True, False])
def test_to_delete_a_session_loads_nothing(
    one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_rows, "MAX_DELETED", 10)
    row = session()
    for _ in range(3):
        stream(row, 8, ended=False)
    with CaptureQueriesContext(connection) as said:
        if one:
            row.delete()
        else:
            Session.objects.all().delete()
    assert loading([each["sql"] for each in said]) == []
    assert len(said) <= 60
    assert not Stream.objects.exists()
    assert not Event.objects.exists()
    assert not Session.objects.exists()


def test_what_says_that_messages_are_there_that_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_rows, "MAX_DELETED", 10)
    stream(session(), 20)
    Event.objects.all().delete()
    assert remove_expired(LIMITS) == {"streams": 1}
