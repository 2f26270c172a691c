"""What a database refuses is found; all else is stored, once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.db import DataError, IntegrityError, OperationalError, transaction

from mcp_app.audit.tallies import stored_apart
from mcp_app.models.transactions import INNODB_DEADLOCK

pytestmark = pytest.mark.django_db


class Store:
    """Keeps numbers; refuses a portion that has one of `bad` in it."""

    def __init__(self, *bad: int, error: Exception | None = None) -> None:
        self.bad = set(bad)
        self.error = error or DataError("no number")
        self.rows: list[int] = []
        self.portions: list[Sequence[int]] = []

    def __call__(self, numbers: Sequence[int]) -> None:
        self.portions.append(numbers)
        if not self.bad.isdisjoint(numbers):
            raise self.error
        self.rows += numbers


def refused(store: Store, *numbers: int) -> list[int]:
    with transaction.atomic():
        found = stored_apart("default", store, numbers)
    assert all(error is store.error for _, error in found)
    return [number for number, _ in found]


@pytest.mark.parametrize("bad", [(), (0,), (7,), (3, 4), (0, 1, 6, 7), tuple(range(8))])
@pytest.mark.parametrize("count", [8, 7, 1])
def test_each_is_stored_or_named(bad: tuple[int, ...], count: int) -> None:
    store = Store(*bad)
    assert refused(store, *range(count)) == [each for each in bad if each < count]
    assert store.rows == [each for each in range(count) if each not in bad]


def test_what_fits_is_stored_at_once() -> None:
    store = Store()
    assert refused(store) == []
    assert store.portions == []
    assert refused(store, 1, 2, 3) == []
    assert len(store.portions) == 1


@pytest.mark.parametrize(
    "error",
    [
        # It gave way to others, others hold it up, it has no room: no fault of a row.
        OperationalError(INNODB_DEADLOCK, "Deadlock found"),
        OperationalError("database is locked"),
        OperationalError("database or disk is full"),
    ],
)
def test_what_is_no_refusal(error: Exception) -> None:
    store = Store(2, error=error)
    with pytest.raises(OperationalError) as raised:
        refused(store, 1, 2)
    assert raised.value is error
    assert len(store.portions) == 1


def test_where_the_way_back_is_lost_nothing_is_tried_again() -> None:
    def store(numbers: Sequence[int]) -> None:
        attempts.append(numbers)
        raise IntegrityError("no number")

    attempts: list[Sequence[int]] = []
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(IntegrityError, match="no number"):
            stored_apart("default", store, (1, 2))
    assert attempts == [(1, 2)]
