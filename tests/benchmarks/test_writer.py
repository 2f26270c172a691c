"""The parts of the writer can be measured: the code that they name is still there."""

from __future__ import annotations

from benchmarks.writer import VARIANTS
from mcp_app.audit.call_log import CallLog
from tests.audit.records import batch, record


def test_each_part_does_its_work() -> None:
    parts = [work for work in VARIANTS.values() if work is not None]
    assert len(parts) == 4
    for work in parts:
        work(batch(record()))
    # One of them takes the place of this.
    assert callable(CallLog._write)
