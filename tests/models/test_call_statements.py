"""How much goes into one statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from django.db import connection

from mcp_app.audit.writing import write
from mcp_app.models import Call, CallStatistic, CallWriter
from tests.audit.records import batch, record

pytestmark = pytest.mark.usefixtures("served_rows")


@pytest.fixture
def _old() -> Iterator[None]:
    """A connection that takes as many parameters as SQLite did before 3.32."""
    connection.ensure_connection()
    category = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
    before = connection.connection.setlimit(category, 999)
    yield
    connection.connection.setlimit(category, before)
    for model in (Call, CallStatistic, CallWriter):
        model._default_manager.all().delete()


@pytest.mark.usefixtures("_old")
def test_old_sqlite_takes_few_parameters() -> None:
    write(batch(*(record(name=f"tool{number}") for number in range(120))))
    assert Call.objects.count() == 120
    for seconds in (60, 3_600):
        counted = CallStatistic.objects.filter(seconds=seconds)
        assert len({row.name for row in counted}) == 120
