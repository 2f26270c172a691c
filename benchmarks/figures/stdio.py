"""What a call costs on stdio, and what is left of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from statistics import median

from benchmarks import piped
from benchmarks.measuring import AtLeast, AtMost, Effort, Result
from benchmarks.piped import Piped

TIMES = 10_000
WARM = 2_000
"""After so many calls memory is looked at first."""
GROWTH_MIB = 2.0
RATIO = 3.0
TOGETHER = (1, 32)
"""Calls that a client has on their way: one after another, and many at a time."""
_AT_ONCE = 200
_IN_A_ROW = 100
_PAUSE_S = 0.2


def on_pipes(effort: Effort) -> Iterator[Result]:
    """Call `drill_add` in a session, here and at the SDK; then look at the memory."""
    with piped.drill() as own, piped.sdk() as peer:
        for together in TOGETHER:
            yield _compared(effort, own, peer, together)
    with piped.drill() as own:
        yield _growth(own)


_numbers = itertools.count(1, _AT_ONCE)


def _compared(effort: Effort, own: Piped, peer: Piped, together: int) -> Result:
    rates: dict[Piped, list[float]] = {own: [], peer: []}
    for server in rates:
        _rate(server, together, effort.warm_up)
    for _ in range(effort.rounds):
        for server, found in rates.items():
            found.append(_rate(server, together, effort.seconds))
    mine, other = median(rates[own]), median(rates[peer])
    return Result(
        figure=f"drill_add on stdio / SDK, {together} at a time",
        measured=mine / other,
        bound=AtLeast(RATIO),
        raw=f"{mine:,.0f}/s : {other:,.0f}/s",
    )


def _rate(server: Piped, together: int, seconds: float) -> float:
    """Return the calls a second of a while; every answer is checked."""
    began = now = time.monotonic()
    calls = 0
    while now < began + seconds:
        server.call(next(_numbers), _AT_ONCE, together)
        calls += _AT_ONCE
        now = time.monotonic()
    return calls / (now - began)


def _slowly(server: Piped, first: int, count: int) -> None:
    """Call no faster than a client would that works all the time.

    The audit gathers the calls of a second: of more there is more in memory for a
    moment, which says nothing of what is left.
    """
    for start in range(first, first + count, _IN_A_ROW):
        server.call(start, _IN_A_ROW, TOGETHER[-1])
        time.sleep(_PAUSE_S)


def _growth(server: Piped) -> Result:
    _slowly(server, 1, WARM)
    before = server.proportional_kib()
    _slowly(server, WARM + 1, TIMES - WARM)
    after = server.proportional_kib()
    return Result(
        figure=f"memory that {TIMES - WARM:,} calls on stdio leave",
        measured=(after - before) / 1024,
        bound=AtMost(GROWTH_MIB),
        unit="MiB",
        raw=f"PSS of {before:,.0f} KiB after {WARM:,}, then {after:,.0f} KiB",
    )
