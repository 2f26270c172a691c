"""What a change among 10,000 definitions costs a worker, and the list of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.measuring import AtMost, Effort, Result
from benchmarks.processes import ServerFailedError


def of_10_000(effort: Effort) -> Iterator[Result]:
    """Publish one tool of 10,000, and look at the list in the admin; on SQLite."""
    found = measured("benchmarks.definitions")
    yield Result(
        figure="publish one of 10,000 tools: CPU of a worker",
        measured=found["publish"] * 1000,
        bound=AtMost(20),
        unit="ms",
    )
    yield Result(
        figure="the admin's list of 10,000 tools",
        measured=found["page"],
        bound=AtMost(1),
        unit="s",
    )


def measured(module: str, url: str = "") -> dict[str, float]:
    """Run a module where the database is empty; return what it prints at the end.

    Without a URL that is a new one of SQLite.
    """
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            **os.environ,
            "DATABASE_URL": url or f"sqlite:///{directory}/db.sqlite3",
            "DJANGO_SETTINGS_MODULE": "mcp_project.settings",
            "DEBUG": "true",
            "SECRET_KEY": "a key for a benchmark, which seals nothing of worth",
        }
        ended = subprocess.run(
            [sys.executable, "-m", module],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode:
        raise ServerFailedError(ended.stderr)
    read: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return read
