"""What every test of a cluster needs: its staff, and its part that only writes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tests.drill.running import ROOT
from tests.process.clusters import CHANGING, Cluster, python_environment
from tests.process.operating import Operator
from tests.process.staff import Staff

FRESHNESS: Final = 0.25
"""As in `mcp_app.invalidation.workers`, which needs a configured Django."""
PATIENCE_S: Final = 60.0
"""What is told later counts as untold."""


class Writer:
    """A program of the site that saves ledger lines in transactions.

    It is started for the first of them.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = python_environment(environment)
        self._lock = threading.Lock()
        self._open: dict[str, Future[int]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)

    @cached_property
    def _process(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.drill.writing"],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, key: str, worker: str, seconds: float) -> Future[int]:
        """Save a line in a transaction that stays open for a while.

        When it is committed, the result is how many deadlocks there were before.
        """
        committed = Future[int]()
        with self._lock:
            process = self._process
            if not self._reader.ident:
                self._reader.start()
            assert process.stdin is not None
            self._open[key] = committed
            process.stdin.write(f"{json.dumps([key, worker, seconds])}\n")
            process.stdin.flush()
        return committed

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                key, error, deadlocks = json.loads(line)
                if error:
                    self._open[key].set_exception(AssertionError(error))
                else:
                    self._open[key].set_result(deadlocks)

    def close(self) -> None:
        """End when everything is committed."""
        if not self._reader.ident:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join()
        assert self._process.wait() == 0


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster, and who changes it."""

    cluster: Cluster
    staff: Staff
    writer: Writer
    operator: Operator
    patience: float = PATIENCE_S

    def key(self, model: str, name: str) -> str:
        """Return the primary key of a row."""
        return str(self.cluster.keys[model][name])

    @staticmethod
    def changing(url: str) -> str:
        """Return where a process serves what changes, and nothing else."""
        return f"{url}/{CHANGING}"


@contextmanager
def site(cluster: Cluster, patience: float = PATIENCE_S) -> Iterator[Site]:
    """Let staff log in, until the block ends."""
    with (
        closing(Writer(cluster.environment)) as writer,
        closing(Operator(cluster.environment)) as operator,
        closing(Staff(cluster.urls[0])) as staff,
    ):
        yield Site(cluster, staff, writer, operator, patience)
