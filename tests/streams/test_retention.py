"""Streams that have ended keep their newest messages only."""

from __future__ import annotations

import pytest

from mcp_app.models import Session, Stream
from mcp_app.streams import retention
from mcp_app.streams.log_writer import Batch, write
from mcp_app.streams.retention import trim
from tests.streams.logging_rows import OWNER, events, further, opened, own_session

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "EVENTS", 3)
    monkeypatch.setattr(retention, "BYTES", 100)
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
    assert trim() == 10
    assert [kept(key) for key in keys] == [[3, 4, 5]] * 5
    assert trim() == 0


def test_few_that_are_large_go() -> None:
    key = ended(b"x" * 60, b"x" * 60, b"x" * 30)
    assert trim() == 1
    assert kept(key) == [2, 3]


def test_the_last_stays_however_large() -> None:
    key = ended(b"1", b"x" * 1_000)
    assert trim() == 1
    assert kept(key) == [2]
    alone = ended(b"x" * 1_000)
    assert trim() == 0
    assert (kept(key), kept(alone)) == ([2], [1])


def test_what_goes_on_keeps_everything() -> None:
    key = opened(own_session(), *[b"1"] * 10)
    assert trim() == 0
    assert len(kept(key)) == 10


def test_what_is_still_to_be_read_stays() -> None:
    """Of HTTP+SSE it goes once it was sent: nobody can come back for it."""
    key = ended(*[b"1"] * 5)
    Session.objects.update(holder="worker-2")
    assert trim() == 0
    assert kept(key) == [1, 2, 3, 4, 5]


def test_nothing_too_much_goes() -> None:
    key = ended(b"1", b"2", b"3")
    assert trim() == 0
    assert len(kept(key)) == 3
