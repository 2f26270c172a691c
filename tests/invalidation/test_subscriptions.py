"""What the listen streams of a process watch."""

from __future__ import annotations

import pytest
from django.db import connection

from mcp_app.invalidation import changes, workers
from mcp_app.invalidation.changes import ResourceSubscriptions
from mcp_app.invalidation.workers import WorkerRow
from mcp_app.models import Change, Subscription, Worker

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.fixture
def row() -> WorkerRow:
    made = WorkerRow()
    made.renew()
    return made


def uris(row: WorkerRow) -> list[str]:
    """Return what rows say that a process watches."""
    own = Subscription.objects.of_worker(row.id)
    return sorted(own.values_list("uri", flat=True))


def test_a_resource_is_watched_as_long_as_a_stream_does(row: WorkerRow) -> None:
    resources = row.resources
    for some in (["x:a", "x:b"], ["x:b"]):
        resources.begin(some)
        row.watch(some)
    assert uris(row) == ["x:a", "x:b"]
    resources.erase(resources.end(["x:a", "x:b"]))
    assert uris(row) == ["x:b"]
    assert resources.end(["x:b"]) == ["x:b"]
    resources.erase(["x:b"])
    assert uris(row) == []


def test_processes_watch_by_themselves(row: WorkerRow) -> None:
    other = WorkerRow()
    other.renew()
    for each in (row, other):
        each.watch(["x:a"])
    row.resources.erase(["x:a"])
    assert (uris(row), uris(other)) == ([], ["x:a"])


def test_no_session_is_loaded_again_for_it(row: WorkerRow) -> None:
    row.watch(["x:a"])
    row.resources.erase(["x:a"])
    row.watch(["x:b"])
    row.remove()
    assert not Change.objects.exists()


def test_many_resources(row: WorkerRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "AT_ONCE", 2)
    many = [f"x:{number}" for number in range(5)]
    row.watch(many[:3])
    row.watch(many)
    assert uris(row) == many
    row.resources.erase(many)
    assert uris(row) == []


def test_they_go_with_the_process(row: WorkerRow) -> None:
    row.watch(["x:a"])
    row.remove()
    assert not Subscription.objects.exists()


def test_they_go_with_a_process_that_died(row: WorkerRow) -> None:
    dead = WorkerRow()
    dead.renew()
    for each in (row, dead):
        each.watch(["x:a"])
    Worker.objects.filter(pk=dead.id).update(seen_ms=1)
    workers.prune()
    assert (uris(row), uris(dead)) == (["x:a"], [])


def test_they_come_back_with_a_process_that_was_taken_for_dead(row: WorkerRow) -> None:
    row.resources.begin(["x:a", "x:b"])
    row.watch(["x:a", "x:b"])
    workers._forget(Worker.objects.all())
    assert uris(row) == []
    row.renew()
    assert uris(row) == ["x:a", "x:b"]
    row.renew()
    assert uris(row) == ["x:a", "x:b"]


@pytest.mark.django_db(transaction=True)
def test_a_process_that_was_taken_for_dead_watches_more(row: WorkerRow) -> None:
    row.resources.begin(["x:a"])
    row.watch(["x:a"])
    workers._forget(Worker.objects.all())
    row.resources.begin(["x:b"])
    row.watch(["x:b"])
    assert uris(row) == ["x:a", "x:b"]
    connection.check_constraints()


def test_nothing_is_watched_by_nobody() -> None:
    assert ResourceSubscriptions("nobody").end(["x:a"]) == ["x:a"]
