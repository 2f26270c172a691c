"""What the log of a process writes, for a test to look at and to break."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from mcp_app.streams import request_log
from mcp_app.streams.log_writer import Batch, Result, write


class Writes:
    """Counts what is in each batch.

    The next `outages` attempts find the database away (`math.inf`: all do until it is
    set back); then each of `faults` breaks one.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[tuple[int, int]] = []
        """Of each batch, how many streams and messages."""
        self.outages: float = 0
        self.faults: list[Exception] = []
        monkeypatch.setattr(request_log, "RETRY_S", (0.01,))
        monkeypatch.setattr(request_log, "write", self._write)

    def _write(self, batch: Batch) -> list[Result]:
        if self.outages:
            self.outages -= 1
            raise OperationalError("The database is away.")
        if self.faults:
            raise self.faults.pop()
        messages = sum(len(gain.payloads) for gain in batch.gains)
        self.sizes.append((len(batch.gains), messages))
        return write(batch)
