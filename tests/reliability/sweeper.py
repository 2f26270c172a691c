"""The program that lets sessions expire."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from threading import Lock

from tests.drill.running import ROOT
from tests.process.clusters import python_environment


class Sweeper:
    """Makes sessions old and sweeps them away, in a process of its own."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = Lock()
        given = {name: value for name, value in environment.items() if name != "FAULTS"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.drill.sweeping"],
            cwd=ROOT,
            env=python_environment(given),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def sweep(self, session_id: str) -> None:
        """Return when the session has expired, and every process knows it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(f"{session_id}\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == "0\n"

    def close(self) -> None:
        """End it."""
        assert self._process.stdout is not None
        # Its input ends, and so does it.
        self._process.communicate()
        assert self._process.returncode == 0
