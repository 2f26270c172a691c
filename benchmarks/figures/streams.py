"""What listeners cost that nothing is told, and how fast they are when something is."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import servers
from benchmarks.client import checked, open_session
from benchmarks.listening import Audience, Listener, raise_open_files, standing
from benchmarks.measuring import AtMost, Effort, Result
from benchmarks.messages import call, is_sum, stateless
from benchmarks.postgres import Cluster, cluster
from benchmarks.processes import Process

TOLD = 500
"""Listen streams that want to hear of tools; as many sessions have a GET stream."""
OTHERS = 1_000
"""Listen streams that want to hear of prompts, and are told nothing."""
STREAMS = 2 * TOLD + OTHERS

_EARLIER = 20
"""Opened before the first look, so that what is made once is not counted."""
_SETTLE_SECONDS = 20.0
"""A process looks once, and by and by, for what each new GET stream has missed."""
_BROADCASTS = 4
"""In each round."""
_FRESHNESS = 0.25
"""T: so long a change is held back where another process lives."""
_NOTIFY = "INSERT INTO mcp_app_change (kind, ref) VALUES ('list', 'tools:*')"
"""What `changes.notify("tools")` commits, in any program of the site."""


def standing_open(effort: Effort) -> Iterator[Result]:
    """Open 2,000 streams at one process, wait, and then tell 1,000 of them."""
    raise_open_files()
    with ExitStack() as stack:
        database = stack.enter_context(cluster())
        server = stack.enter_context(servers.drill(database=database.url))
        checked(server.port, call("drill_add"), is_sum)
        audience = Audience()
        with audience.joined(server.port, _gets(server, _EARLIER)):
            audience.quiet(_SETTLE_SECONDS)
        earlier = _listens(server, "prompts", _EARLIER)
        stack.enter_context(audience.joined(server.port, earlier))
        before, few = _idle(effort, audience, server, database)
        told: list[Listener] = []
        for name, requests in (
            ("tools", _listens(server, "tools", TOLD)),
            ("prompts", _listens(server, "prompts", OTHERS)),
        ):
            opened = stack.enter_context(audience.joined(server.port, requests))
            told += opened if name == "tools" else []
        audience.quiet(_SETTLE_SECONDS)
        between = server.resident_kib()
        requests = _gets(server, TOLD)
        told += stack.enter_context(audience.joined(server.port, requests))
        after, many = _idle(effort, audience, server, database)
        yield _memory("subscriptions/listen", TOLD + OTHERS, before, between)
        yield _memory("GET", TOLD, between, after)
        yield _statements(few, many)
        # Where no other process lives, nobody need wait for T.
        other = stack.enter_context(servers.drill(database=database.url))
        checked(other.port, call("drill_add"), is_sum)
        yield _told(effort, audience, told, database)


def _listens(server: Process, what: str, count: int) -> list[bytes]:
    params = {"notifications": {f"{what}ListChanged": True}}
    return [stateless("subscriptions/listen", params).raw(server.port)] * count


def _gets(server: Process, count: int) -> list[bytes]:
    return [standing(server.port, open_session(server.port)) for _ in range(count)]


def _idle(
    effort: Effort, audience: Audience, server: Process, database: Cluster
) -> tuple[float, float]:
    """Return the server's KiB, and its statements a second, while nothing is told."""
    audience.quiet(_SETTLE_SECONDS)
    memory, before = server.resident_kib(), database.statements()
    seconds = effort.counting / 2
    audience.quiet(seconds)
    return memory, (database.statements() - before) / seconds


def _memory(kind: str, count: int, before: float, after: float) -> Result:
    return Result(
        f"memory of each of {count:,} idle {kind} streams",
        (after - before) / count,
        AtMost(30),
        "KiB",
        f"{before:,.0f} KiB, then {after:,.0f} KiB",
    )


def _statements(few: float, many: float) -> Result:
    return Result(
        f"more statements with {STREAMS:,} idle streams than with {_EARLIER}",
        many - few,
        AtMost(0.5),
        "/s",
        f"{many:.1f} statements/s : {few:.1f} statements/s",
    )


def _told(
    effort: Effort, audience: Audience, told: list[Listener], database: Cluster
) -> Result:
    times: list[float] = []
    own, began = time.process_time(), time.monotonic()
    with database.connected() as connection:
        for _ in range(_BROADCASTS * effort.rounds):
            # At any moment between two checks.
            audience.quiet(0.5 + random.random() / 4)
            committing = time.monotonic()
            connection.execute(_NOTIFY)
            times += [when - committing for when in audience.told(told)]
    reader = (time.process_time() - own) / (time.monotonic() - began)
    times.sort()
    return Result(
        f"a change reaches {len(told):,} of {STREAMS:,} streams, p99",
        times[int(0.99 * len(times))],
        AtMost(0.5 + _FRESHNESS),
        "s",
        (
            f"p50 {times[len(times) // 2]:.2f} s, the last {times[-1]:.2f} s;"
            f" the reader took {reader:.0%} of a processor"
        ),
    )
