"""The janitor that comes often removes what another would keep for an hour."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.drill.running import started

PATIENCE_S = 60


def test_a_process_that_died_a_minute_ago(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    drill = started("uvicorn", {"DATABASE_URL": f"sqlite:///{path}", "JANITOR": "1"})
    try:
        with closing(sqlite3.connect(path, timeout=20)) as database:
            _write_worker(database, "dead", int((time.time() - 60) * 1000))
            _until_gone(database, "dead")
    finally:
        status = drill.stop()
    assert status == 0, drill.output


def _write_worker(database: sqlite3.Connection, name: str, seen_ms: int) -> None:
    database.execute(
        "INSERT INTO mcp_app_worker (id, host, pid, started_ms, seen_ms)"
        " VALUES (?, '', 1, ?, ?)",
        [name, seen_ms, seen_ms],
    )
    database.commit()


def _until_gone(database: sqlite3.Connection, name: str) -> None:
    end = time.monotonic() + PATIENCE_S
    found = "SELECT count(*) FROM mcp_app_worker WHERE id = ?"
    while database.execute(found, [name]).fetchone()[0]:
        assert time.monotonic() < end
        time.sleep(0.1)
