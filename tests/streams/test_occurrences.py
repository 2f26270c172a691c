"""The outbox: every reader meets the same order, and nothing is lost or told twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest
from django.db import DatabaseError, connections, transaction

from mcp_app.conf import Limits
from mcp_app.invalidation.events import record_occurrence
from mcp_app.models import Change, Counter, Occurrence
from mcp_app.models.occurrences import OCCURRENCES
from mcp_app.streams import occurrences as rows

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

WRITERS: Final = 8
TRANSACTIONS: Final = 25
TOPIC: Final = "order.paid"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    Occurrence.objects.all().delete()
    Counter.objects.filter(name=OCCURRENCES).delete()
    Change.objects.all().delete()


def record(event_id: str, topic: str = TOPIC) -> str:
    return record_occurrence(topic, b"{}", event_id=event_id)


class Undone(Exception):
    """Rolls a transaction back."""


def write(writer: int) -> list[str]:
    """Write in transactions that are rolled back, or in part; return what stays."""
    draw, stays = random.Random(writer), []  # noqa: S311 - no secret
    for number in range(TRANSACTIONS):
        name = f"{writer}-{number}"
        inner, whole = draw.random() < 0.3, draw.random() < 0.3
        try:
            with transaction.atomic():
                record(f"{name}-a")
                try:
                    with transaction.atomic():
                        record(f"{name}-b")
                        if inner:
                            raise Undone
                except Undone:
                    pass
                # Others commit what they began later.
                time.sleep(draw.random() / 200)
                if whole:
                    raise Undone
        except Undone:
            continue
        except DatabaseError as error:
            # SQLite gives way where it cannot wait.
            if "locked" not in str(error):
                raise
            continue
        stays += [f"{name}-a"] if inner else [f"{name}-a", f"{name}-b"]
    connections.close_all()
    return stays


def read(over: threading.Event) -> list[str]:
    """Follow the numbers, as a subscriber does, until all writers are done."""
    told: list[str] = []
    position = 0
    while True:
        last = over.is_set()
        state = rows.load_state({TOPIC}, position)
        for each in rows.load_occurrences(TOPIC, position, 1_000).rows:
            told.append(each.event_id)
            position = each.number
        assert position >= state.last[TOPIC]
        if last and not state.has_more:
            connections.close_all()
            return told


def test_all_readers_meet_the_same_order_and_miss_nothing() -> None:
    over = threading.Event()
    with ThreadPoolExecutor(WRITERS + 2) as threads:
        readers = [threads.submit(read, over) for _ in range(2)]
        writers = [threads.submit(write, writer) for writer in range(WRITERS)]
        stays = [name for each in writers for name in each.result()]
        over.set()
        first, second = (each.result() for each in readers)
    assert first == second
    assert len(first) == len(set(first))
    assert set(first) == set(stays)
    numbers = Occurrence.objects.order_by("number").values_list("number", flat=True)
    # Rows are numbered without gaps.
    assert list(numbers) == list(range(1, len(stays) + 1))


def test_old_rows_and_those_beyond_the_limit_go() -> None:
    for number in range(6):
        record(str(number))
    rows.number_occurrences()
    record("without a number")
    # As after a backup was restored.
    Counter.objects.filter(name=OCCURRENCES).update(value=1_000)
    oldest = Occurrence.objects.filter(event_id__in=["0", "1"])
    oldest.update(created_ms=1)
    limits = Limits(events_rows=3)
    counts = [each.count() for each in rows.expired_occurrences(limits)]
    assert counts == [2, 3]
    for each in rows.expired_occurrences(limits):
        while each.remove() is not None:
            continue
    left = Occurrence.objects.order_by("id").values_list("event_id", flat=True)
    assert list(left) == ["3", "4", "5", "without a number"]
    assert rows.load_floor() == 3


def test_what_is_read_of_a_topic() -> None:
    assert rows.load_state({TOPIC}, 0).last == {TOPIC: 0}
    for number in range(4):
        record(str(number), TOPIC if number % 2 else "other")
    state = rows.load_state({"absent"}, 0)
    assert (state.newest, state.last) == (4, {TOPIC: 4, "other": 3, "absent": 0})
    assert rows.load_state({TOPIC}, 4).last == {TOPIC: 4}
    assert [each.event_id for each in rows.load_occurrences(TOPIC, 0, 1).rows] == ["1"]
    assert [each.event_id for each in rows.load_latest(TOPIC, 1)] == ["3"]
    Occurrence.objects.filter(event_id="1").update(created_ms=1)
    assert rows.last_before(TOPIC, 0, 60_000) == 2
    assert rows.last_before(TOPIC, 2, 60_000) == 0
