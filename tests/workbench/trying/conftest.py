"""A second database beside the one of the tests, and dry runs on both."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import connection, connections

from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from tests.drill.databases import FILES, TABLES, database
from tests.scripting import Play
from tests.workbench.trying.dry_runs import DryRuns, close_all, rows_of_code


@pytest.fixture(scope="module")
def archive(served_rows: None) -> Iterator[None]:
    """A database `archive`; on SQLite it is as Django makes it, without our options."""
    with database(connection.vendor, TABLES) as name:
        is_file = connection.vendor == "sqlite"
        place: dict[str, Any] = {"NAME": FILES / name if is_file else name}
        if connection.vendor == "sqlite":
            place["OPTIONS"] = {}
            with closing(sqlite3.connect(place["NAME"])) as made:
                made.execute("PRAGMA journal_mode=DELETE")
        connections.settings["archive"] = {**connections.settings["default"], **place}
        yield
        writer.close()
        close_all()
        for each in connections.all(initialized_only=True):
            if each.alias == "archive":
                del connections["archive"]
        del connections.settings["archive"]


@pytest.fixture
async def dry_runs(
    scripted: None, archive: None, process: Process, play: Play
) -> DryRuns:
    return DryRuns(process, play)


@pytest.fixture
async def nothing_left(dry_runs: DryRuns) -> AsyncIterator[None]:
    before = await writer.run(rows_of_code)
    yield
    assert await writer.run(rows_of_code) == before
