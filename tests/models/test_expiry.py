"""Rows that have outlived their use go a portion at a time."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection

from mcp_app.models import Blob, CallStatistic, CallWriter, LoggedMessage, expiry
from mcp_app.models.expiry import ExpiredRows, delete_rows
from mcp_app.models.transactions import INNODB_DEADLOCK

pytestmark = pytest.mark.django_db


def writers(count: int) -> None:
    for number in range(count):
        CallWriter.objects.create(id=f"w{number}", number=number, written_ms=0)


def left() -> list[int]:
    return [*CallWriter.objects.order_by("number").values_list("number", flat=True)]


def statistic(name: str, start_ms: int = 0) -> CallStatistic:
    return CallStatistic.objects.create(
        seconds=60,
        start_ms=start_ms,
        server="default",
        kind="tool",
        name=name,
        outcome="answered",
    )


def test_portion_by_portion_the_first_of_their_order_before() -> None:
    writers(5)
    rows = CallWriter.objects.exclude(number=4).order_by("-number")
    found = expiry.expired_rows("writers", rows, 2)
    assert found.count() == 4
    assert (found.remove(), left()) == (2, [0, 1, 4])
    assert (found.remove(), left()) == (2, [4])
    assert (found.remove(), left()) == (None, [4])


def test_without_a_number_a_portion_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "PORTION", 3)
    writers(4)
    found = expiry.expired_rows("writers", CallWriter.objects.order_by("number"))
    assert [found.remove(), found.remove(), found.remove()] == [3, 1, None]


def test_what_gave_way_to_a_writer_is_done_again() -> None:
    errors: list[DatabaseError] = [OperationalError(INNODB_DEADLOCK, "Deadlock")]

    def take() -> int:
        if errors:
            raise errors.pop()
        return 7

    # A test's transaction is one that this must not end.
    connection.in_atomic_block = False
    try:
        assert ExpiredRows("rows", lambda: 0, take).remove() == 7
    finally:
        connection.in_atomic_block = True


@pytest.mark.parametrize("by_each", [False, True])
def test_rows_go_by_their_keys(monkeypatch: pytest.MonkeyPatch, by_each: bool) -> None:
    def delete(model: Any, keys: Any, column: str = "pk") -> None:
        if by_each:
            expiry._delete_one_by_one("default", model, keys, column)
        else:
            delete_rows("default", model, keys, column)

    writers(3)
    delete(CallWriter, [])
    assert left() == [0, 1, 2]
    delete(CallWriter, ["w0", "w2", "gone"])
    assert left() == [1]
    delete(CallWriter, [1], "number")
    assert left() == []
    # A key of several columns.
    kept, gone = statistic("a"), statistic("b")
    delete(CallStatistic, [])
    delete(CallStatistic, [gone.pk])
    assert [each.pk for each in CallStatistic.objects.all()] == [kept.pk]
    assert not LoggedMessage.objects.exists()


# -- blobs -----------------------------------------------------------------------------


def test_the_same_bytes_are_kept_once() -> None:
    first = Blob.objects.keep(b"\x00\xff", "image/png")
    again = Blob.objects.keep(b"\x00\xff", "text/plain")
    assert first == again
    found = Blob.objects.get()
    assert bytes(found.content) == b"\x00\xff"
    assert (found.size, found.media_type) == (2, "image/png")
