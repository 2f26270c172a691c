"""What a call costs on stdio."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from statistics import median

from benchmarks import piped
from benchmarks.measuring import AtLeast, Effort, Result
from benchmarks.piped import Piped

RATIO = 3.0
TOGETHER = (1, 32)
"""Calls that a client has on their way: one after another, and many at a time."""
_AT_ONCE = 200


def on_pipes(effort: Effort) -> Iterator[Result]:
    """Call `drill_add` in a session, here and at the SDK."""
    with piped.drill() as own, piped.sdk() as peer:
        for together in TOGETHER:
            yield _compared(effort, own, peer, together)


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
        f"drill_add on stdio / SDK, {together} at a time",
        mine / other,
        AtLeast(RATIO),
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
