"""What a listener costs that nothing is told."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import servers
from benchmarks.client import EventStream, checked, streams
from benchmarks.measuring import AtMost, Effort, Result
from benchmarks.messages import call, is_sum, stateless
from benchmarks.processes import Process

STREAMS = 500

_EARLIER = 20
"""Opened before the first look, so that what is made once is not counted."""
_SETTLE_SECONDS = 2.0


def idle(effort: Effort) -> Iterator[Result]:
    """Open 500 `subscriptions/listen` streams and look at the server's memory."""
    listen = stateless(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
    )
    with servers.drill() as server:
        checked(server.port, call("drill_add"), is_sum)
        with streams(server.port, [listen] * _EARLIER) as earlier:
            before = _memory(server, earlier)
            with streams(server.port, [listen] * STREAMS) as opened:
                after = _memory(server, opened)
                checked(server.port, call("drill_add"), is_sum)
    yield Result(
        figure=f"memory of each of {STREAMS} idle streams",
        measured=(after - before) / STREAMS,
        bound=AtMost(30),
        unit="KiB",
        raw=f"{before:,.0f} KiB, then {after:,.0f} KiB",
    )


def _memory(server: Process, opened: list[EventStream]) -> float:
    """Return the server's KiB once every stream is acknowledged and quiet."""
    for stream in opened:
        stream.wait_for("notifications/subscriptions/acknowledged")
    time.sleep(_SETTLE_SECONDS)
    return server.memory_kib()
