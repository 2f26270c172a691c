"""SQLite gets what many calls share once for many rows; the rows are the same."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_app.audit.writing import SIZES, insert_many, write
from mcp_app.models import Call, CallStatistic
from mcp_app.models.call_writing import Own
from tests.audit.records import batch, record

pytestmark = [
    pytest.mark.usefixtures("no_calls"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite writes so"),
]

SHARED: Final = tuple("1" for _ in Call.SHARED)
TEXT = "é𝄞 \\ %s '\" \t\n?1"


def own_columns(count: int) -> list[Own]:
    texts = [str(place) for place in range(5, len(Call.OWN) + 1)]
    return [(number, 2, 3, 4, *texts) for number in range(count)]


@pytest.mark.parametrize("count", [4, 5, 138, 2 * SIZES[0] + 228])
def test_rows_are_the_same_whichever_statement_writes_them(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = [
        record(took=0.001 * number, user=TEXT, error=f"{TEXT}{number}")
        for number in range(count)
    ]
    other = [record(name="book", user="") for _ in range(140)]
    calls = [call for pair in zip(one, other, strict=False) for call in pair]
    calls += one[len(other) :]
    write(batch(*calls))
    columns = [name for name in (*Call.SHARED, *Call.OWN) if name != "time_ms"]
    written = sorted(Call.objects.values_list(*columns))
    Call.objects.all().delete()
    monkeypatch.setattr("mcp_app.audit.writing.insert_many", lambda _, rows: rows)
    write(batch(*calls, number=2))
    assert sorted(Call.objects.values_list(*columns)) == written
    assert len(written) == len(calls)


def test_what_fills_no_statement_is_left() -> None:
    some = own_columns(2 * SIZES[0] + 228)
    with CaptureQueriesContext(connection) as queries:
        assert insert_many(connection, {SHARED: some}) == {SHARED: some[-3:]}
    # A number for each size that is used: 2, 2, 1 and 1 statements.
    assert len(queries) == len(SIZES)
    assert Call.objects.count() == len(some) - 3
    times = Call.objects.order_by("time_ms").values_list("time_ms", flat=True)
    assert list(times) == list(range(len(some) - 3))
    assert insert_many(connection, {}) == {}


def test_old_sqlite_gets_no_statement_with_more_parameters_than_it_takes() -> None:
    some = own_columns(SIZES[0])
    connection.ensure_connection()
    category = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
    before = connection.connection.setlimit(category, 999)
    try:
        assert insert_many(connection, {SHARED: some}) == {}
        write(batch(*(record(name=f"tool{number}") for number in range(120))))
    finally:
        connection.connection.setlimit(category, before)
    assert Call.objects.count() == len(some) + 120
    for seconds in (60, 3_600):
        counted = CallStatistic.objects.filter(seconds=seconds)
        assert len({row.name for row in counted}) == 120


class OfAnotherDriver:
    """A connection as another driver has it: without `getlimit`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        if name == "getlimit":
            raise AttributeError(name)
        return getattr(self._connection, name)


def test_a_driver_that_tells_no_limit_gets_what_each_sqlite_takes() -> None:
    some = own_columns(SIZES[0])
    with CaptureQueriesContext(connection) as queries:
        own = connection.connection
        connection.connection = OfAnotherDriver(own)
        try:
            assert insert_many(connection, {SHARED: some}) == {}
        finally:
            connection.connection = own
    assert len(queries) == 1
    assert Call.objects.count() == len(some)
