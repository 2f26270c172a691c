"""Bulk operations on a model that resources show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

import mcp_app
from mcp_app.invalidation.changes import WatchedQuerySet
from mcp_app.models import Change
from tests.drill.models import Ledger

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

CHANGE = ("model", "drill.ledger")


def recorded() -> list[tuple[str, str]]:
    return list(Change.objects.order_by("id").values_list("kind", "ref"))


@pytest.fixture
def rows() -> WatchedQuerySet[Any]:
    Ledger.objects.create(key="a", worker="w")
    return WatchedQuerySet(Ledger)


def edited(rows: WatchedQuerySet[Any]) -> None:
    row = rows.get(key="a")
    row.worker = "x"
    rows.bulk_update([row], ["worker"])


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: mcp_app.changed_model(Ledger),
        lambda rows: rows.update(worker="x"),
        lambda rows: rows.bulk_create([Ledger(key="b", worker="w")]),
        edited,
    ],
)
def test_changes(
    rows: WatchedQuerySet[Any], change: Callable[[WatchedQuerySet[Any]], object]
) -> None:
    change(rows)
    assert recorded() == [CHANGE]


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.filter(key="nobody").update(worker="x"),
        lambda rows: rows.bulk_create([]),
    ],
)
def test_what_changes_nothing(
    rows: WatchedQuerySet[Any], change: Callable[[WatchedQuerySet[Any]], object]
) -> None:
    change(rows)
    assert recorded() == []


def test_the_change_belongs_to_the_transaction(rows: WatchedQuerySet[Any]) -> None:
    with transaction.atomic():
        rows.update(worker="x")
        transaction.set_rollback(True)
    assert recorded() == []
    assert rows.get(key="a").worker == "w"


def test_a_manager(rows: WatchedQuerySet[Any]) -> None:
    assert mcp_app.WatchedQuerySet is WatchedQuerySet
    assert hasattr(WatchedQuerySet.as_manager(), "update")


class LedgerRows(WatchedQuerySet[Ledger]):
    """A site's own rows, with names that it chose."""

    KIND = "ledger"
    PRIVATE = ("worker",)

    def record(self) -> str:
        return "a record of ours"

    def write_alias(self) -> str:
        return "an alias of ours"


def test_a_site_names_its_own_as_it_likes(rows: WatchedQuerySet[Any]) -> None:
    own = LedgerRows(Ledger)
    own.update(worker="x")
    own.bulk_create([Ledger(key="b", worker="w")])
    assert recorded() == [CHANGE]
    assert LedgerRows.as_manager().record() == "a record of ours"
