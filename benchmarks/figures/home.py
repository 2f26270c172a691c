"""What the admin's home page costs where there are many calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from benchmarks.figures.definitions import measured
from benchmarks.measuring import AtMost, Effort, Result
from tests.drill.databases import DATABASES


def of_1_000_000_calls(effort: Effort) -> Iterator[Result]:
    """Open the page with 1,000 calls and with 1,000,000, on each kind of database."""
    for vendor in ("sqlite", *DATABASES):
        with DATABASES[vendor]() if vendor in DATABASES else nullcontext("") as url:
            found = measured("benchmarks.home", url)
        few, many = found["few"] * 1_000, found["many"] * 1_000
        yield Result(
            figure=f"home page, {vendor}: 1,000,000 calls / 1,000",
            measured=many / few,
            bound=AtMost(2),
            raw=f"{many:.0f} ms : {few:.0f} ms",
        )
        yield Result(
            figure=f"home page, {vendor}: statements",
            measured=found["statements"],
            bound=AtMost(15),
        )
