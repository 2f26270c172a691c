"""Rows that have outlived their use."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import pytest

from mcp_app.conf import Limits
from mcp_app.models import Event, LoggedMessage, Once, Session, Stream
from mcp_app.models import expired as portions
from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.sessions import Subscription
from mcp_app.streams import expiry
from mcp_app.streams.expiry import expired_streams
from tests.streams.logging_rows import opened

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

HOUR_MS: Final = 3_600_000
LIMITS: Final = Limits(session_idle=3_600, session_age=7_200)


def digest() -> str:
    return uuid4().hex * 2


def remove_expired(limits: Limits) -> dict[str, int]:
    """Remove everything; return how many rows of each kind went."""
    removed = {}
    for each in expired_streams(limits):
        before, gone = each.count(), 0
        while portion := each.remove():
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
    gone = [idle, old, step(expiry.STEPS_KEPT_MS + HOUR_MS)]
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
    for _ in range(5):
        session(seen=2 * HOUR_MS)
    assert remove_expired(LIMITS) == {"sessions": 5}
