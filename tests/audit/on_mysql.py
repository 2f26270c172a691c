"""Texts that a column of MySQL cannot store; run by `tests/test_databases.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.db import OperationalError, connection

from mcp_app.audit.call_log import CallLog
from mcp_app.audit.writing import write
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.durability import Kind, doubts
from mcp_app.pools.connections import is_outage
from mcp_app.pools.database import writer
from tests.audit.reading import totals
from tests.audit.records import batch, record

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

PATIENCE_S: Final = 60
KEY: Final = ("default", "tool", "add", "answered")
ALTER: Final = (
    "ALTER TABLE mcp_app_call MODIFY client_name varchar(128) CHARACTER SET {} NOT NULL"
)


@pytest.fixture(params=["latin1", "utf8mb3"], autouse=True)
def _characters(request: pytest.FixtureRequest) -> Iterator[None]:
    """A column whose characters are not all there are."""
    with connection.cursor() as cursor:
        cursor.execute(ALTER.format(request.param))
        yield
        for model in (Call, CallStatistic, CallWriter):
            model._default_manager.all().delete()
        cursor.execute(ALTER.format("utf8mb4"))


def figures() -> tuple[int, dict[Any, int], dict[Any, int]]:
    return Call.objects.count(), totals(), totals("dropped")


def test_it_says_that_it_is_an_outage_and_is_none() -> None:
    write(batch(record(client="fox")))
    with pytest.raises(OperationalError) as raised:
        Call.objects.update(client_name="🦊")
    assert raised.value.args[0] == 1366
    assert not is_outage(raised.value)
    assert Kind.CHARACTERS in [each.kind for each in doubts("default")]


@pytest.mark.parametrize("strict", [True, False])
async def test_a_text_that_its_characters_cannot_say_stops_nobody(strict: bool) -> None:
    kept = CallLog("writer", max_calls=1_000, key=b"key", strict=strict)
    for number in range(50):
        kept.add(record(client="🦊" if number == 20 else "fox"))
    kept.write_pending()
    async with asyncio.timeout(PATIENCE_S):
        await kept.wait_until_written()
        while kept.has_pending:
            await asyncio.sleep(0.01)
    assert await writer.run(figures) == (49, {KEY: 50}, {KEY: 1})
    assert kept.dropped == 1
