"""What only PostgreSQL does for a call; `tests/test_databases.py` runs it there."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from django.db import DatabaseError, connection, connections

from mcp_app import SyncContext
from tests.scripting import Play

pytestmark = [pytest.mark.usefixtures("scripted"), pytest.mark.databases]

PATIENCE_S: Final = 5


@pytest.mark.parametrize("site", ["0", "20ms", "10min"])
async def test_a_statement_that_outlasts_its_call_is_cut(
    play: Play, monkeypatch: pytest.MonkeyPatch, site: str
) -> None:
    loop = asyncio.get_running_loop()
    cut: asyncio.Future[str] = loop.create_future()
    limits: asyncio.Future[str] = loop.create_future()

    def script(ctx: SyncContext) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            loop.call_soon_threadsafe(limits.set_result, cursor.fetchone()[0])
            try:
                cursor.execute("SELECT pg_sleep(60)")
            except DatabaseError as error:
                loop.call_soon_threadsafe(cut.set_result, str(error))
                raise

    options = {"options": f"-c statement_timeout={site}"}
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", options)
    outcome = await play("short_atomic", script)
    assert outcome.result["isError"] is True
    async with asyncio.timeout(PATIENCE_S):
        assert "statement timeout" in await cut
        # What the site says stands where it is shorter.
        limit = int((await limits).removesuffix("ms"))
    assert limit == 20 if site == "20ms" else 200 < limit <= 300


async def test_the_limit_ends_with_the_transaction(play: Play) -> None:
    def script(ctx: SyncContext) -> list[str]:
        connection.set_autocommit(True)
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return [cursor.fetchone()[0]]

    found = await play("not_atomic", script)
    assert found.result["structuredContent"] == {"result": ["0"]}
