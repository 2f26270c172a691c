"""Keeps the processors awake while servers are compared.

A processor that sleeps must be woken, and whoever writes to its socket pays for that: a
server that answers slowly then wakes its client for each answer, and one that answers
quickly does not.  So each processor gets an empty loop of the idle class, which runs
only where nothing else wants to.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LOOP: Final = """
import os, sys
parent = int(sys.argv[2])
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
print("awake", flush=True)
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def awake() -> Iterator[list[int]]:
    """Run the loops until the block ends; give the ids of their processes."""
    loops = [
        subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(processor), str(os.getpid())],
            stdout=subprocess.PIPE,
        )
        for processor in sorted(os.sched_getaffinity(0))
    ]
    try:
        for each in loops:
            if each.stdout is None or not each.stdout.readline():
                raise OSError("A processor could not be kept awake.")
        yield [each.pid for each in loops]
    finally:
        for each in loops:
            each.kill()
            each.wait()
            if each.stdout is not None:
                each.stdout.close()
