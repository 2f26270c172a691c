"""Tests that are marked `databases` run again where users run: not on SQLite only."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.drill.databases import DATABASES
from tests.drill.running import ROOT

MODULES: Final = [
    "tests/admin/calls/test_log.py",
    "tests/admin/test_who_on_the_wire.py",
    "tests/audit",
    "tests/auth/test_permissions.py",
    "tests/auth/test_ruled.py",
    "tests/auth/test_tokens.py",
    "tests/models/test_stops.py",
    "tests/models/test_streams.py",
    "tests/models/test_tokens.py",
    "tests/models/test_workers.py",
    "tests/pools/test_outages.py",
    "tests/process/test_health.py",
    "tests/management/commands/test_mcp_prune.py",
    "tests/process/test_openings.py",
    "tests/process/test_runtime.py",
    "tests/process/test_stops.py",
    "tests/publishing/bundle/test_hostile.py",
    "tests/server/test_context.py",
    "tests/server/test_invocation.py",
    "tests/streams",
    "tests/transports/test_at_most_once.py",
    "tests/transports/test_health.py",
    "tests/transports/test_legacy_sse.py",
    "tests/transports/test_logged_replies.py",
    "tests/wakeup",
    "tests/test_row_copies.py",
]
SERVERS: Final = [
    "tests/audit/on_servers.py",
    "tests/models/on_servers.py",
    "tests/pools/on_servers.py",
    "tests/process/on_servers.py",
    "tests/publishing/on_servers.py",
    "tests/streams/on_servers.py",
    "tests/wakeup/on_servers.py",
]
MORE: Final = {
    "postgresql": [
        "tests/models/on_postgresql.py",
        "tests/server/on_postgresql.py",
        *SERVERS,
    ],
    "mysql": ["tests/audit/on_mysql.py", "tests/models/on_mysql.py", *SERVERS],
}


@pytest.mark.parametrize("vendor", DATABASES)
def test_on_another_database(vendor: str) -> None:
    modules = [*MODULES, *MORE[vendor]]
    with DATABASES[vendor]() as url:
        finished = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "databases", *modules],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": url, "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
    assert finished.returncode == 0, finished.stdout
