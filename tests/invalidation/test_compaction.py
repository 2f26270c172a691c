"""Change rows become numbers, whoever folds."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from mcp_app.invalidation import changes as recording
from mcp_app.invalidation import compaction
from mcp_app.invalidation.workers import WorkerRow
from mcp_app.models import Change, Counter, Topic, changes
from mcp_app.models.fields import digest
from mcp_app.models.transactions import NowMilliseconds
from tests.models.test_sessions import session

pytestmark = pytest.mark.databases


def record(kind: str, ref: str) -> None:
    Change.objects.create(kind=kind, ref=ref)


def numbers() -> dict[tuple[str, str], int]:
    rows = Topic.objects.values_list("kind", "ref", "version")
    return {(kind, ref): version for kind, ref, version in rows}


def drawn() -> int:
    """Return the last number that was drawn: others may have drawn some before."""
    return sum(Counter.objects.values_list("value", flat=True))


@pytest.mark.django_db
def test_nothing_to_fold_draws_no_number() -> None:
    before = drawn()
    compaction.compact()
    assert not Topic.objects.exists()
    assert drawn() == before


@pytest.mark.django_db
def test_all_that_is_folded_together_has_one_number() -> None:
    for ref in ("1", "2", "2"):
        record("tool", ref)
    compaction.compact()
    assert numbers() == {("tool", "1"): 1, ("tool", "2"): 1}
    record("tool", "2")
    compaction.compact()
    assert numbers() == {("tool", "1"): 1, ("tool", "2"): 2}
    assert not Change.objects.exists()


@pytest.mark.django_db
def test_a_fold_goes_on_until_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BATCH", 2)
    for number in range(5):
        record("tool", str(number))
    compaction.compact()
    assert sorted(numbers().values()) == [1, 1, 2, 2, 3]


@pytest.mark.django_db
def test_refs_that_differ_in_case_or_blanks_are_different() -> None:
    for ref in ("a", "A", "a "):
        record("tool", ref)
    compaction.compact()
    assert len(numbers()) == 3


def resource(uri: str) -> tuple[str, str]:
    return "uri", digest(uri.encode())


@pytest.mark.django_db
def test_a_resource_that_nobody_watches_gets_no_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "AT_ONCE", 1)
    session().subscriptions.create(uri="x:session")
    worker = WorkerRow()
    worker.renew()
    worker.watch(["x:worker"])
    compaction.compact()
    begun = Counter.objects.get().value
    names = [resource(f"x:{by}") for by in ("session", "worker", "nobody")]
    # So many of them that none is named.
    for name in (*names, ("uri", "*")):
        record(*name)
    compaction.compact()
    assert not Change.objects.exists()
    raised = {name for name, number in numbers().items() if number > begun}
    assert raised == {*names[:2], ("uri", "*")}


@pytest.mark.django_db
def test_what_somebody_watched_is_forgotten_when_nobody_does() -> None:
    watching = session().subscriptions.create(uri="x:a")
    compaction.compact()
    record(*resource("x:a"))
    compaction.compact()
    before = numbers()[resource("x:a")]
    watching.delete()
    compaction.compact()
    record(*resource("x:a"))
    compaction.compact()
    assert numbers()[resource("x:a")] == before


KEPT = ["tool", "server", "resource", "unheard_of"]
FORGOTTEN = [
    *("uri", "list", "model", "session", "rights"),
    *("logged", "question", "cancelled", "stopped"),
]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", [*KEPT, *FORGOTTEN])
@pytest.mark.parametrize(
    "age_ms", [0, compaction.KEPT_MS - 60_000, compaction.KEPT_MS + 1]
)
def test_how_long_a_number_is_kept(kind: str, age_ms: int) -> None:
    record(kind, "*")
    compaction.compact()
    record("tool", "later")
    compaction.compact()
    old = Topic.objects.filter(ref="*")
    old.update(changed_ms=NowMilliseconds() - age_ms)
    floor, forgotten = Counter.objects.get().floor, old.get().version
    compaction.prune_topics()
    kept = kind in KEPT or age_ms < compaction.KEPT_MS
    assert old.exists() is kept
    assert Counter.objects.get().floor == (floor if kept else forgotten)


@pytest.mark.django_db
def test_a_thousandth_row_is_folded_by_who_writes_it(
    django_capture_on_commit_callbacks: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "RARELY", 1)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        Change.objects.record("tool", "1")
    assert numbers() == {("tool", "1"): 1}


@pytest.mark.django_db(transaction=True)
def test_many_fold_at_once() -> None:
    """No row is lost, no number drawn twice, and nobody waits for ever."""
    for number in range(40):
        record("tool", str(number))
    together = Barrier(8)

    def work(number: int) -> None:
        together.wait()
        for _ in range(5):
            record("tool", str(number))
            compaction.compact()
        connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    compaction.compact()
    assert not Change.objects.exists()
    assert numbers().keys() == {("tool", str(number)) for number in range(40)}
    assert max(numbers().values()) == Counter.objects.get().value
