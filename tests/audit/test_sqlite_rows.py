"""SQLite gets what many calls share once for many rows; the rows are the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_app.audit.sqlite_rows import TOGETHER, insert_many
from mcp_app.audit.writing import write
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.call_statements import PARAMETERS
from tests.audit.records import batch, record

pytestmark = [
    pytest.mark.usefixtures("served_rows"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite writes so"),
]

TEXT = "é𝄞 \\ %s '\" \t\n?1"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for model in (Call, CallStatistic, CallWriter):
        model._default_manager.all().delete()


@pytest.mark.parametrize("count", [TOGETHER - 1, TOGETHER, 2 * TOGETHER + 3])
def test_rows_are_the_same_whichever_statement_writes_them(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = [
        record(took=0.001 * number, user=TEXT, error=f"{TEXT}{number}")
        for number in range(count)
    ]
    other = [record(name="book", user="") for _ in range(TOGETHER)]
    calls = [call for pair in zip(one, other, strict=False) for call in pair]
    calls += one[len(other) :]
    write(batch(*calls))
    columns = [name for name in (*Call.SHARED, *Call.OWN) if name != "time_ms"]
    found = sorted(Call.objects.values_list(*columns))
    Call.objects.all().delete()
    monkeypatch.setattr("mcp_app.audit.writing.insert_many", lambda _, rows: rows)
    write(batch(*calls, number=2))
    assert sorted(Call.objects.values_list(*columns)) == found
    assert len(found) == len(calls)


def test_what_fills_no_statement_is_left() -> None:
    shared = tuple("1" for _ in Call.SHARED)
    some = [(number, 2, 3, 4, "5", "6", "7") for number in range(TOGETHER + 2)]
    with CaptureQueriesContext(connection) as queries:
        assert insert_many(connection, {shared: some}) == {shared: some[TOGETHER:]}
    assert len(queries) == 1
    assert Call.objects.count() == TOGETHER
    assert insert_many(connection, {}) == {}


def test_a_statement_has_no_more_parameters_than_sqlite_takes() -> None:
    parameters = len(Call.SHARED) + TOGETHER * len(Call.OWN)
    assert parameters <= PARAMETERS["sqlite"] < parameters + len(Call.OWN)
