"""Tests that are marked `databases` run again where users run: not on SQLite only."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.drill.databases import DATABASES
from tests.drill.running import ROOT

PARTS: Final = {
    "admin, models, wakeup": [
        "tests/admin/calls/test_log.py",
        "tests/admin/test_who_on_the_wire.py",
        "tests/management/commands/test_mcp_prune.py",
        "tests/models/test_stops.py",
        "tests/models/test_streams.py",
        "tests/models/test_tokens.py",
        "tests/models/test_workers.py",
        "tests/pools/test_outages.py",
        "tests/publishing/bundle/test_hostile.py",
        "tests/wakeup",
        "tests/test_row_copies.py",
        "tests/models/on_servers.py",
        "tests/pools/on_servers.py",
        "tests/publishing/on_servers.py",
        "tests/wakeup/on_servers.py",
    ],
    "audit, auth, server": [
        "tests/audit",
        "tests/auth/test_permissions.py",
        "tests/auth/test_ruled.py",
        "tests/auth/test_tokens.py",
        "tests/server/test_context.py",
        "tests/server/test_invocation.py",
        "tests/audit/on_servers.py",
    ],
    "process": [
        "tests/process/test_health.py",
        "tests/process/test_openings.py",
        "tests/process/test_runtime.py",
        "tests/process/test_stops.py",
        "tests/process/on_servers.py",
    ],
    "streams, transports": [
        "tests/streams",
        "tests/transports/test_at_most_once.py",
        "tests/transports/test_health.py",
        "tests/transports/test_legacy_sse.py",
        "tests/transports/test_logged_replies.py",
        "tests/streams/on_servers.py",
    ],
}
"""Of minutes each, to be shared out; more would each make the tables anew."""

MORE: Final = {
    ("postgresql", "admin, models, wakeup"): ["tests/models/on_postgresql.py"],
    ("postgresql", "audit, auth, server"): ["tests/server/on_postgresql.py"],
    ("mysql", "admin, models, wakeup"): ["tests/models/on_mysql.py"],
    ("mysql", "audit, auth, server"): ["tests/audit/on_mysql.py"],
}
HANGS_S: Final = 240
"""So long no single test takes: the stacks of what hangs are in its output."""
PATIENCE_S: Final = 840


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("vendor", DATABASES)
def test_on_another_database(vendor: str, part: str) -> None:
    modules = [*PARTS[part], *MORE.get((vendor, part), [])]
    hangs = f"faulthandler_timeout={HANGS_S}"
    with DATABASES[vendor]() as url:
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-m", "databases"),
                *("-o", hangs, *modules),
            ],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": url, "PYTEST_ADDOPTS": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert finished.returncode == 0, finished.stdout
