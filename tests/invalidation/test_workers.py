"""Processes that serve, and who waits for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction

from mcp_app.invalidation import workers
from mcp_app.invalidation.workers import (
    FRESHNESS,
    PeerStates,
    Report,
    WorkerRow,
    here,
    hold_after_commit,
)
from mcp_app.models import Change, Worker
from mcp_app.models.stops import By, Scope
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.models.workers import LIVE_MS
from tests.models.recording import by_hand

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.fixture
def row() -> Iterator[WorkerRow]:
    """The row of the process that serves here; `stale` notes that it must look."""
    made = WorkerRow()
    made.renew()
    yield made
    here.forget_process()


def other(age_ms: int = 0) -> None:
    seen = NowMilliseconds() - age_ms
    Worker.objects.create(
        id=f"other{age_ms}", host="h", pid=1, started_ms=1, seen_ms=seen
    )


def test_a_row_is_renewed(row: WorkerRow) -> None:
    Worker.objects.update(seen_ms=1)
    assert not Worker.objects.live().exists()
    row.report = Report(lost=2)
    row.renew()
    assert [
        (each.pk, each.report_of_process().lost) for each in Worker.objects.live()
    ] == [(row.id, 2)]
    row.remove()
    assert not Worker.objects.exists()
    row.renew()
    assert Worker.objects.live().exists()


@pytest.mark.parametrize(
    ("age_ms", "live"), [(None, False), (0, True), (LIVE_MS + 1_000, False)]
)
def test_others(row: WorkerRow, age_ms: int | None, live: bool) -> None:
    if age_ms is not None:
        other(age_ms)
    assert row.others_live() is live


def test_others_that_were_watched(row: WorkerRow) -> None:
    other(LIVE_MS + 1_000)
    (seen,) = Worker.objects.exclude(pk=row.id).values_list("seen_ms", flat=True)
    key = f"other{LIVE_MS + 1_000}"
    row.judged = PeerStates(alive=frozenset({key}))
    assert row.others_live()
    Worker.objects.filter(pk=key).update(seen_ms=NowMilliseconds() + 3_600_000)
    (future,) = Worker.objects.exclude(pk=row.id).values_list("seen_ms", flat=True)
    row.judged = PeerStates(dead={key: seen})
    assert row.others_live()
    row.judged = PeerStates(dead={key: future})
    assert not row.others_live()


def test_a_row_outlives_a_jump_of_the_databases_clock(row: WorkerRow) -> None:
    """Who lives would have none until its next heartbeat."""
    other(3_600_000 + 5_000)
    assert workers.prune() == 0


def test_a_caller_without_a_row_waits_for_any(
    slept: list[float], row: WorkerRow
) -> None:
    here.committed()
    assert slept == [FRESHNESS]


def test_a_process_does_not_wait_for_itself(slept: list[float], row: WorkerRow) -> None:
    told: list[bool] = []
    here.register_process(row, lambda: told.append(True), lambda: None)
    here.committed()
    assert (slept, told) == ([], [True])
    other()
    here.committed()
    assert (slept, told) == ([FRESHNESS], [True, True])


@pytest.mark.django_db(transaction=True)
def test_the_process_knows_of_each_commit(row: WorkerRow) -> None:
    told: list[bool] = []
    here.register_process(row, lambda: None, lambda: told.append(True))
    with transaction.atomic():
        for ref in "abc":
            Change.objects.record("tool", ref)
        assert told == []
    assert told == [True]
    Change.objects.record("tool", "d")
    assert told == [True, True]
    with transaction.atomic():
        Change.objects.record("tool", "e")
        transaction.set_rollback(True)
    assert told == [True, True]


def test_a_process_that_ends_leaves_the_next_one_alone(
    slept: list[float], row: WorkerRow
) -> None:
    here.register_process(row, lambda: None, lambda: None)
    here.forget_process(WorkerRow())
    here.committed()
    assert slept == []
    here.forget_process(row)
    here.committed()
    assert slept == [FRESHNESS]


@pytest.mark.django_db(transaction=True)
def test_a_commit_waits_once(slept: list[float]) -> None:
    other()
    with transaction.atomic():
        for _ in range(3):
            hold_after_commit("default")
        assert slept == []
    assert slept == [FRESHNESS]
    with transaction.atomic():
        hold_after_commit("default")
        transaction.set_rollback(True)
    assert slept == [FRESHNESS]


@pytest.mark.django_db(transaction=True)
def test_where_a_site_commits_by_hand_nobody_waits(slept: list[float]) -> None:
    other()
    with by_hand():
        hold_after_commit("default")
        with transaction.atomic():
            hold_after_commit("default")
        transaction.commit()
    assert slept == []


@pytest.mark.django_db(transaction=True)
def test_what_is_committed_by_hand_is_told_at_once(row: WorkerRow) -> None:
    told: list[bool] = []
    here.register_process(row, lambda: None, lambda: told.append(True))
    with by_hand():
        for _ in range(2):
            Change.objects.record("tool", "a")
        assert told == [True] * 2
        with transaction.atomic():
            Change.objects.record("tool", "a")
        assert told == [True] * 3
        transaction.commit()
        assert Change.objects.count() == 3


def test_dead_processes_are_forgotten(row: WorkerRow) -> None:
    other(workers.KEPT_MS + 1_000)
    workers.prune()
    assert [each.pk for each in Worker.objects.all()] == [row.id]


@pytest.mark.django_db(transaction=True)
def test_who_stops_and_starts_waits_once_for_a_commit(slept: list[float]) -> None:
    other()
    kim = By("kim")
    with transaction.atomic():
        made, _ = (workers.stop(Scope.CHANGES, by=kim) for _ in range(2))
        assert slept == []
    assert slept == [FRESHNESS]
    assert workers.start([made.pk], by=kim) == [made]
    assert len(slept) == 2
    assert workers.start([made.pk], by=kim) == []
    assert len(slept) == 2
