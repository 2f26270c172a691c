"""How long large and wrong bodies hold the loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.client import WrongAnswerError
from benchmarks.measuring import AtMost, Effort, Result
from benchmarks.nonsense import MOST_MS
from benchmarks.processes import ROOT, ServerFailedError

PATIENCE_S: Final = 1_800


def of_large_bodies(_: Effort) -> Iterator[Result]:
    """Send each body to the endpoint in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [sys.executable, "-m", "benchmarks.nonsense"],
            cwd=ROOT,
            env={
                **os.environ,
                "DATABASE_URL": f"sqlite:///{Path(folder, 'db.sqlite3')}",
                "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
            },
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    if ended.returncode:
        raise ServerFailedError(f"benchmarks.nonsense ended with {ended.returncode}.")
    for line in ended.stdout.splitlines():
        name, held, took, wrong = json.loads(line)
        if wrong:
            raise WrongAnswerError(f"{name}: {wrong}")
        yield Result(
            figure=f"the loop is held: {name}",
            measured=held,
            bound=AtMost(MOST_MS),
            unit="ms",
            raw=f"the longest answer took {took:,.0f} ms",
        )
