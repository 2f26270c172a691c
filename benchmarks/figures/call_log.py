"""What the admin's pages of 1,000,000 calls cost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from benchmarks.measuring import AtMost, Effort, Result
from benchmarks.processes import run_module


def of_1_000_000(effort: Effort) -> Iterator[Result]:
    """Open the list of calls, filtered in each way, and one call; on SQLite."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            "DATABASE_URL": f"sqlite:///{directory}/db.sqlite3",
            "DJANGO_SETTINGS_MODULE": "mcp_project.settings",
            "DEBUG": "true",
            "SECRET_KEY": "a key for a benchmark, which seals nothing of worth",
        }
        found = run_module("benchmarks.call_log", environment)
    for page, cost in found.items():
        name = f"with 1,000,000 calls and 10,000 tools: {page}"
        yield Result(f"CPU of an admin page {name}", cost["CPU"], AtMost(0.5), "s")
        yield Result(f"queries of an admin page {name}", cost["queries"], AtMost(15))
