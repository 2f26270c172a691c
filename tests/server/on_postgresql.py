"""What only PostgreSQL does for a call; `tests/test_databases.py` runs it there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final

import psycopg
import pytest
from django.db import DatabaseError, connection, connections

from mcp_app import SyncContext
from mcp_app.conf import MAX_SECONDS
from mcp_app.pools.database import reader, writer
from mcp_app.process import freshness
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.scripting import STATEFUL, Play
from tests.serving import Connect

pytestmark = [pytest.mark.usefixtures("scripted"), pytest.mark.databases]

PATIENCE_S: Final = 60


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
    outcome = await play("second_atomic", script)
    assert outcome.result["isError"] is True
    async with asyncio.timeout(PATIENCE_S):
        assert "statement timeout" in await cut
        # What the site says stands where it is shorter.
        limit = int((await limits).removesuffix("ms"))
    assert limit == 20 if site == "20ms" else 20 < limit <= 1_000


async def test_the_limit_ends_with_the_transaction(play: Play) -> None:
    def script(ctx: SyncContext) -> list[str]:
        connection.set_autocommit(True)
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return [cursor.fetchone()[0]]

    found = await play("not_atomic", script)
    assert found.result["structuredContent"] == {"result": ["0"]}


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tool_timeout": MAX_SECONDS}}])
async def test_a_call_may_last_for_longer_than_a_statement(play: Play) -> None:
    def script(ctx: SyncContext) -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'said'")
            return [cursor.fetchone()[0]]

    found = await play("atomic_sync", script)
    assert found.result["structuredContent"] == {"result": ["said"]}


@pytest.fixture
def _ours_too() -> Iterator[None]:
    """The connection of the test itself is ended with the others."""
    yield
    connections.close_all()


@pytest.mark.usefixtures("_ours_too")
async def test_connections_that_are_kept_and_that_the_database_ends(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart: a refusal for now at most, and then all is well."""
    monkeypatch.setattr(freshness, "RETRY", 0.01)
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", None)

    def kept() -> bool:
        return connection.connection is not None

    client = await connect(STATEFUL)
    await process.gate.wait_for_check()
    assert await reader.run(kept)
    await asyncio.to_thread(_end_all)
    with contextlib.suppress(Unavailable):
        await process.gate.wait_for_check()
    await asyncio.sleep(0.02)
    await process.gate.wait_for_check()
    refused = await client.request("logging/setLevel", {"level": "error"})
    assert refused.status in (200, 503)
    answered = await client.request("logging/setLevel", {"level": "error"})
    assert answered.status == 200
    reader.close()
    writer.close()


def _end_all() -> None:
    with contextlib.closing(psycopg.connect(_address(), autocommit=True)) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _address() -> str:
    settings = connections.settings["default"]
    return (
        f"host={settings['HOST']} port={settings['PORT'] or 5432}"
        f" user={settings['USER']} dbname={settings['NAME']}"
    )
