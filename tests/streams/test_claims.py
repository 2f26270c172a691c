"""What a process that died left open gets its last message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from mcp_app.models import Session, Stream, Worker
from mcp_app.streams import claims
from mcp_app.streams.log_writer import Batch, write
from tests.streams.logging_rows import OWNER, events, further, opened

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

ME = "worker-9"
GONE = {OWNER: None}
"""Its owner has no row."""


@pytest.fixture(autouse=True)
def _owner(row: Session) -> Iterator[None]:
    yield
    Worker.objects.filter(pk=OWNER).delete()


def seen(seen_ms: int) -> None:
    """Let the owner have said then that it lives."""
    Worker.objects.create(pk=OWNER, pid=1, started_ms=1, seen_ms=seen_ms)


@pytest.mark.parametrize("seen_ms", [None, 7])
def test_an_orphan_is_told_and_closed(row: Session, seen_ms: int | None) -> None:
    if seen_ms is not None:
        seen(seen_ms)
    key = opened(row, b"1", b"2")
    assert claims.claim_orphans(ME, {OWNER: seen_ms}) == 1
    (first, second, (number, text)) = events(key)
    assert (first, second, number) == ((1, "1"), (2, "2"), 3)
    error = json.loads(text)
    assert (error["id"], error["error"]["code"]) == (1, -32603)
    assert error["error"]["data"] == {"retryable": True}
    stream = Stream.objects.get(pk=key)
    assert (stream.state, stream.owner, stream.head_seq) == ("aborted", ME, 3)
    assert stream.size == 2 + len(text)
    assert stream.ended_ms is not None
    assert claims.claim_orphans(ME, {OWNER: seen_ms}) == 0


def test_each_of_a_batch_is_told(row: Session) -> None:
    """What ran of it is not known: it is not to be repeated."""
    for requests in ('[1,"b"]', "[1]"):
        key = opened(row)
        Stream.objects.filter(pk=key).update(requests=requests)
        claims.claim_orphans(ME, GONE)
        ((_, text),) = events(key)
        answers = json.loads(text)
        assert [each["id"] for each in answers] == json.loads(requests)
        assert not any(each["error"]["data"]["retryable"] for each in answers)


def test_a_batch_and_a_call_have_errors_of_their_own(row: Session) -> None:
    call, batch = opened(row), opened(row)
    Stream.objects.filter(pk=batch).update(requests="[1]")
    assert claims.claim_orphans(ME, GONE) == 2
    answers = [json.loads(events(key)[0][1]) for key in (call, batch)]
    errors = [answers[0]["error"], answers[1][0]["error"]]
    assert [each["data"]["retryable"] for each in errors] == [True, False]


@pytest.mark.parametrize("watched", [None, 7])
def test_who_has_beaten_since_keeps_its_streams(
    row: Session, watched: int | None
) -> None:
    seen(8)
    key = opened(row, b"1")
    assert claims.claim_orphans(ME, {OWNER: watched}) == 0
    assert len(events(key)) == 1


def test_who_was_not_watched_keeps_its_streams(row: Session) -> None:
    seen(7)
    opened(row, b"1")
    assert claims.claim_orphans(ME, {"another": 7}) == claims.claim_orphans(ME, {}) == 0


def test_who_has_a_row_or_an_open_stream_is_watched(row: Session) -> None:
    Worker.objects.create(pk="idle", pid=1, started_ms=1, seen_ms=6)
    key = opened(row)
    assert sorted(claims.stream_owners()) == [("idle", 6, False), (OWNER, None, True)]
    seen(7)
    assert sorted(claims.stream_owners()) == [("idle", 6, False), (OWNER, 7, True)]
    write(Batch([further(key, state="completed")], OWNER))
    assert sorted(claims.stream_owners()) == [("idle", 6, False), (OWNER, 7, False)]
    Worker.objects.all().delete()
    assert claims.stream_owners() == []


@pytest.mark.parametrize("state", ["completed", "aborted", "closed"])
def test_what_has_ended_is_left_alone(row: Session, state: str) -> None:
    key = opened(row, b"1")
    write(Batch([further(key, state=state)], OWNER))
    assert claims.claim_orphans(ME, GONE) == 0


def test_many_claim_at_once(row: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "AT_ONCE", 3)
    keys = [opened(row) for _ in range(10)]

    def work(number: int) -> int:
        taken = 0
        try:
            while claims.orphaned_streams(GONE).exists():
                taken += claims.claim_orphans(f"worker-{number}", GONE)
        finally:
            connections.close_all()
        return taken

    with ThreadPoolExecutor(4) as pool:
        counts: list[Any] = list(pool.map(work, range(10, 14)))
    assert sum(counts) == 10
    assert [len(events(key)) for key in keys] == [1] * 10
