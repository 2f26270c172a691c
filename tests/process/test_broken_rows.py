"""Two processes of which one lacks what code declares: a deployment under way."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest

from tests.drill.databases import prepared_file
from tests.drill.running import started

pytestmark = pytest.mark.programs

PATIENCE_S: Final = 60
LACKING: Final = "ledger://{key} is not in its code."


def reasons(file: Path) -> list[list[str]]:
    with closing(sqlite3.connect(file, timeout=PATIENCE_S)) as database:
        rows = database.execute("SELECT report FROM mcp_app_worker").fetchall()
    reports = [json.loads(text or "{}") for (text,) in rows]
    return [[reason for *_key, reason in each.get("broken", [])] for each in reports]


def wait_until(file: Path, processes: int, lacking: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        known = reasons(file)
        if (len(known), sum(LACKING in each for each in known)) == (processes, lacking):
            return
        time.sleep(0.1)
    raise AssertionError(reasons(file))


def test_a_process_that_lacks_a_definition_says_it_while_it_runs(
    tmp_path: Path,
) -> None:
    file = tmp_path / "db.sqlite3"
    shutil.copy(prepared_file(), file)
    shared = {"DATABASE_URL": f"sqlite:///{file}"}
    with ExitStack() as servers:
        newer = started("uvicorn", {**shared, "LEDGER": "1"})
        servers.callback(newer.stop)
        wait_until(file, processes=1, lacking=0)
        older = started("uvicorn", shared)
        servers.callback(older.kill)
        wait_until(file, processes=2, lacking=1)
        assert older.stop() == 0
        wait_until(file, processes=1, lacking=0)
