"""Processors are kept awake by loops of the idle class, which end with the block."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.awake import awake


@pytest.mark.long
def test_each_processor_has_a_loop_that_ends() -> None:
    with awake() as loops:
        assert len(loops) == len(os.sched_getaffinity(0))
        for pid in loops:
            assert os.sched_getscheduler(pid) == os.SCHED_IDLE
            assert len(os.sched_getaffinity(pid)) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in loops)
