"""Which tests drive other programs, and which run in the process of pytest alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

DRIVING: Final = frozenset(
    {
        "benchmarks",
        "browser",
        "clients",
        "conformance",
        "differential",
        "drill",
        "newcomer",
        "suite",
        "wire",
        "audit/test_many_processes.py",
        "management/commands/test_mcp_stdio.py",
        "migrations/test_there_and_back.py",
        "process/test_apps.py",
        "process/test_broken_rows.py",
        "process/test_connections.py",
        "process/test_crossing.py",
        "process/test_forking.py",
        "process/test_lifecycle.py",
        "process/test_many_processes.py",
        "process/test_model.py",
        "process/test_nginx.py",
        "process/test_old_transport.py",
        "process/test_outages.py",
        "process/test_proxies.py",
        "process/test_reliability.py",
        "process/test_resuming.py",
        "process/test_revocations.py",
        "process/test_servers.py",
        "process/test_shared_rates.py",
        "process/test_site_faults.py",
        "process/test_slow_clients.py",
        "process/test_surviving.py",
        "process/test_wsgi.py",
        "test_databases.py",
    }
)
"""Rooms, and modules of other rooms, whose tests are about programs that they start.

Paths from tests/.
"""


def drives(path: str | PurePath) -> bool:
    """Whether a test module, or a folder of them, is one that drives programs.

    The path is one from the root, and begins with "tests/".
    """
    parts = PurePath(path).parts[1:]
    return any("/".join(parts[: length + 1]) in DRIVING for length in range(len(parts)))


def room(path: str | PurePath) -> str:
    """Return the room of a file of tests/ or mcp_app/; "" for those at the top."""
    parts = PurePath(path).parts
    return parts[1] if len(parts) > 2 else ""


@cache
def modules_in_process() -> tuple[str, ...]:
    """Return all test modules that drive no programs, as paths from the root."""
    every = ROOT.glob("tests/**/test_*.py")
    paths = sorted(each.relative_to(ROOT).as_posix() for each in every)
    return tuple(each for each in paths if not drives(each))
