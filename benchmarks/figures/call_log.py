"""What the admin's pages of 1,000,000 calls cost."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures.definitions import measured
from benchmarks.measuring import AtMost, Effort, Result


def of_1_000_000(effort: Effort) -> Iterator[Result]:
    """Open the list of calls, filtered in each way, and one call; on SQLite."""
    for name, seconds in measured("benchmarks.call_log").items():
        yield Result(
            figure=f"CPU of the admin's calls, 1,000,000 of them: {name}",
            measured=seconds,
            bound=AtMost(0.5),
            unit="s",
        )
