"""Faults of servers that run, by name: each is on while a file of its name is there.

FAULTS names the directory to the servers; `tests.drill.faults` has what they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SLOW_CHECKS: Final = "slow_checks"
"""No fault: checks take 0.4 s, and all that is promised holds."""
SLOW_S: Final = 0.4

ANNOUNCED_AT_ONCE: Final = "announced_at_once"
ANSWERED_AT_ONCE: Final = "answered_at_once"
READ_APART: Final = "read_apart"
FOLDED_BY_ITS_OWN: Final = "folded_by_its_own"
NEW_STREAMS_FORGOTTEN: Final = "new_streams_forgotten"
LOOKED_WHEN_RUNG: Final = "looked_when_rung"
ASKED_WHO_WATCHES: Final = "asked_who_watches"
SENT_BEFORE_COMMIT: Final = "sent_before_commit"
OWNER_IGNORED: Final = "owner_ignored"
REFUSED_TOGETHER: Final = "refused_together"
GAPS_PASSED: Final = "gaps_passed"
DISK_NOT_AWAITED: Final = "disk_not_awaited"
FAULTS: Final = (
    ANNOUNCED_AT_ONCE,
    ANSWERED_AT_ONCE,
    READ_APART,
    FOLDED_BY_ITS_OWN,
    NEW_STREAMS_FORGOTTEN,
    LOOKED_WHEN_RUNG,
    ASKED_WHO_WATCHES,
    SENT_BEFORE_COMMIT,
    OWNER_IGNORED,
    REFUSED_TOGETHER,
    GAPS_PASSED,
    DISK_NOT_AWAITED,
)


@contextmanager
def on(directory: Path, *names: str) -> Iterator[None]:
    for name in names:
        (directory / name).touch()
    try:
        yield
    finally:
        for name in names:
            (directory / name).unlink()
