"""Saying that something changed, from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from typing import Any, Final

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

import mcp_app
from mcp_app.invalidation import changes, workers
from mcp_app.invalidation.changes import ResourceSubscriptions, WatchedQuerySet
from mcp_app.invalidation.workers import WorkerRow
from mcp_app.models import Change, Subscription, Worker
from tests.drill.models import Ledger

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

URI: Final = "shop://orders/1"
DIGEST: Final = sha256(URI.encode()).hexdigest()


def rows() -> list[tuple[str, str]]:
    return list(Change.objects.order_by("id").values_list("kind", "ref"))


@pytest.fixture(autouse=True)
def _no_rows() -> None:
    Change.objects.all().delete()


def test_a_resource() -> None:
    mcp_app.changed(URI)
    assert rows() == [("uri", DIGEST)]


@pytest.mark.parametrize("what", changes.LISTS)
@pytest.mark.parametrize(("server", "ref"), [(None, "*"), ("staff", "staff")])
def test_a_list(what: str, server: str | None, ref: str) -> None:
    mcp_app.notify(what, server)
    assert rows() == [("list", f"{what}:{ref}")]


def test_what_is_no_list() -> None:
    with pytest.raises(
        ValueError,
        match=r"'tool' is not the name of a list\. Use one of tools, prompts",
    ):
        mcp_app.notify("tool")
    assert rows() == []


@pytest.mark.parametrize(
    ("what", "row"), [("tools", ("list", "tools:staff")), (URI, ("uri", DIGEST))]
)
def test_what_a_context_names(what: str, row: tuple[str, str]) -> None:
    changes.record_notification(what, "staff")
    assert rows() == [row]


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A database of the site that has none of our tables."""
    alias = "elsewhere"
    connections.databases[alias] = connections.configure_settings(
        {
            DEFAULT_DB_ALIAS: {},
            alias: {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
        }
    )[alias]
    # The test's own database is the only one that pytest-django lets connect by itself.
    connections[alias].connect()
    try:
        yield alias
    finally:
        connections[alias].close()
        del connections[alias], connections.databases[alias]


def test_what_another_database_changes_is_written_at_its_commit(elsewhere: str) -> None:
    with transaction.atomic(using=elsewhere):
        changes.record_change(elsewhere, "rights", "1")
        changes.record_change(elsewhere, "rights", "1")
        assert rows() == []
    assert rows() == [("rights", "1")]
    changes.record_change(elsewhere, "rights", "2")
    assert rows() == [("rights", "1"), ("rights", "2")]


@pytest.mark.parametrize("block", [nullcontext, transaction.atomic])
def test_where_another_database_is_committed_by_hand_it_is_written_at_once(
    elsewhere: str, block: Callable[..., AbstractContextManager[object]]
) -> None:
    transaction.set_autocommit(False, using=elsewhere)
    with block(elsewhere):
        changes.record_change(elsewhere, "rights", "1")
    assert rows() == [("rights", "1")]
    transaction.commit(using=elsewhere)
    Change.objects.all().delete()
    with block(elsewhere):
        changes.record_change(elsewhere, "rights", "1")
    assert rows() == [("rights", "1")]


def test_the_row_belongs_to_the_transaction_of_the_caller() -> None:
    with transaction.atomic():
        mcp_app.changed(URI)
        transaction.set_rollback(True)
    assert rows() == []


CHANGE = ("model", "drill.ledger")


@pytest.fixture
def bulk_rows() -> WatchedQuerySet[Any]:
    Ledger.objects.create(key="a", worker="w")
    return WatchedQuerySet(Ledger)


def edited(bulk_rows: WatchedQuerySet[Any]) -> None:
    row = bulk_rows.get(key="a")
    row.worker = "x"
    bulk_rows.bulk_update([row], ["worker"])


@pytest.mark.parametrize(
    "change",
    [
        lambda bulk_rows: mcp_app.changed_model(Ledger),
        lambda bulk_rows: bulk_rows.update(worker="x"),
        lambda bulk_rows: bulk_rows.bulk_create([Ledger(key="b", worker="w")]),
        edited,
    ],
)
def test_changes(
    bulk_rows: WatchedQuerySet[Any], change: Callable[[WatchedQuerySet[Any]], object]
) -> None:
    change(bulk_rows)
    assert rows() == [CHANGE]


@pytest.mark.parametrize(
    "change",
    [
        lambda bulk_rows: bulk_rows.filter(key="nobody").update(worker="x"),
        lambda bulk_rows: bulk_rows.bulk_create([]),
    ],
)
def test_what_changes_nothing(
    bulk_rows: WatchedQuerySet[Any], change: Callable[[WatchedQuerySet[Any]], object]
) -> None:
    change(bulk_rows)
    assert rows() == []


def test_the_change_belongs_to_the_transaction(bulk_rows: WatchedQuerySet[Any]) -> None:
    with transaction.atomic():
        bulk_rows.update(worker="x")
        transaction.set_rollback(True)
    assert rows() == []
    assert bulk_rows.get(key="a").worker == "w"


class LedgerRows(WatchedQuerySet[Ledger]):
    KIND = "ledger"
    PRIVATE = ("worker",)

    def record(self) -> str:
        return "a record of ours"

    def write_alias(self) -> str:
        return "an alias of ours"


def test_a_site_names_its_own_as_it_likes(bulk_rows: WatchedQuerySet[Any]) -> None:
    own = LedgerRows(Ledger)
    own.update(worker="x")
    own.bulk_create([Ledger(key="b", worker="w")])
    assert rows() == [CHANGE]
    assert LedgerRows.as_manager().record() == "a record of ours"
    assert mcp_app.WatchedQuerySet is WatchedQuerySet


@pytest.fixture
def row() -> WorkerRow:
    made = WorkerRow()
    made.renew()
    return made


def uris(row: WorkerRow) -> list[str]:
    own = Subscription.objects.of_worker(row.id)
    return sorted(own.values_list("uri", flat=True))


def test_a_resource_is_watched_as_long_as_a_stream_does(row: WorkerRow) -> None:
    resources = row.resources
    for some in (["x:a", "x:b"], ["x:b"]):
        resources.begin(some)
        row.watch(some)
    assert uris(row) == ["x:a", "x:b"]
    resources.delete_rows(resources.end(["x:a", "x:b"]))
    assert uris(row) == ["x:b"]
    assert resources.end(["x:b"]) == ["x:b"]
    resources.delete_rows(["x:b"])
    assert uris(row) == []


def test_processes_watch_by_themselves(row: WorkerRow) -> None:
    other = WorkerRow()
    other.renew()
    for each in (row, other):
        each.watch(["x:a"])
    row.resources.delete_rows(["x:a"])
    assert (uris(row), uris(other)) == ([], ["x:a"])


def test_no_session_is_loaded_again_for_it(row: WorkerRow) -> None:
    row.watch(["x:a"])
    row.resources.delete_rows(["x:a"])
    row.watch(["x:b"])
    row.remove()
    assert not Change.objects.exists()


def test_many_resources(row: WorkerRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "AT_ONCE", 2)
    many = [f"x:{number}" for number in range(5)]
    row.watch(many[:3])
    row.watch(many)
    assert uris(row) == many
    row.resources.delete_rows(many)
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
    workers.delete_workers(Worker.objects.all())
    assert uris(row) == []
    row.renew()
    assert uris(row) == ["x:a", "x:b"]
    row.renew()
    assert uris(row) == ["x:a", "x:b"]


@pytest.mark.django_db(transaction=True)
def test_a_process_that_was_taken_for_dead_watches_more(row: WorkerRow) -> None:
    row.resources.begin(["x:a"])
    row.watch(["x:a"])
    workers.delete_workers(Worker.objects.all())
    row.resources.begin(["x:b"])
    row.watch(["x:b"])
    assert uris(row) == ["x:a", "x:b"]
    connection.check_constraints()


def test_nothing_is_watched_by_nobody() -> None:
    assert ResourceSubscriptions("nobody").end(["x:a"]) == ["x:a"]
