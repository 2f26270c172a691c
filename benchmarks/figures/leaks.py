"""What is left behind by closed sessions, by what was refused, and by what differs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from benchmarks import servers
from benchmarks.client import checked, close_session, open_session
from benchmarks.different import send_different
from benchmarks.guarded_server import guarded_call
from benchmarks.measuring import AtMost, Effort, Result
from benchmarks.messages import call, is_sum, is_text
from benchmarks.postgres import Cluster, cluster
from benchmarks.processes import Process
from benchmarks.refused import Refused, of_session, oversized, refuse
from benchmarks.rows import counted, more

TIMES = 10_000
"""Sessions, and refused requests, in a full run."""
WARM = 1 / 5
"""The part of them after which memory is looked at first: pools and caches are full."""
GROWTH_MIB = 2.0
"""Less than 300 bytes for each of the others: the least that could be kept of a session
or a request, a dictionary of its own, is more."""
LARGE_EACH = 100
"""One request in so many is too large by its body, and not by what it announces."""

_PART = 100
"""Different requests on one connection."""
_CLIENTS = 16
"""A session waits for commits and checks more than it works."""
_JANITOR_SECONDS = 15
_SETTLE_SECONDS = 5.0
_PATIENCE_SECONDS = 4 * _JANITOR_SECONDS
_CALL_LOG = ("call", "callstatistic")
_OF_SESSIONS = ("session", "subscription", "stream", "event", "question")
"""Tables whose rows go with their session, and not with the janitor."""


def left_behind(effort: Effort) -> Iterator[Result]:
    """Open and close sessions, then send what is refused; look at what stays."""
    times = round(TIMES * min(1.0, effort.counting / Effort().counting))
    with ExitStack() as stack:
        database = stack.enter_context(cluster())
        server = stack.enter_context(
            servers.drill(database=database.url, janitor=_JANITOR_SECONDS)
        )
        yield from _sessions(server, database, times)
        yield from _refused(server, database, times)
        yield _different(server, database, 10 * times)


# -- sessions ------------------------------------------------------------------------


def _sessions(server: Process, database: Cluster, times: int) -> Iterator[Result]:
    _lived(server.port, 0)
    before = _settled(server, database, {})
    warm = round(times * WARM)
    _together(lambda number: _lived(server.port, number), warm)
    early = _least(server.resident_kib)
    _together(lambda number: _lived(server.port, number), times - warm)
    at_once = more(_table_sizes(database), before)
    unclosed = {name: at_once[name] for name in _OF_SESSIONS if name in at_once}
    yield _memory("sessions", times - warm, early, _least(server.resident_kib))
    later = more(_settled(server, database, before), before)
    yield _rows("sessions", times, {**later, **unclosed})


def _lived(port: int, _: int) -> None:
    """Open a session, call a tool that has rows, and close it."""
    session = open_session(port)
    request = call("drill_count", {"n": 0, "delay_ms": 0}, session=session)
    checked(port, request, is_text("done 0"))
    close_session(port, session)


# -- requests ------------------------------------------------------------------------


def _refused(server: Process, database: Cluster, times: int) -> Iterator[Result]:
    kinds, large = of_session(open_session(server.port)), oversized()
    before = _settled(server, database, {})
    warm = round(times * WARM)

    def send(number: int) -> None:
        refuse(server.port, _chosen(kinds, large, number))

    _together(send, warm)
    early = _least(server.resident_kib), _least(server.descriptors, server.threads)
    _together(send, times - warm)
    at_once = more(_table_sizes(database), before)
    yield _memory(
        "refused requests", times - warm, early[0], _least(server.resident_kib)
    )
    yield _rows("refused requests", times, at_once)
    held = _least(server.descriptors, server.threads)
    yield Result(
        figure=f"descriptors and threads that {times - warm:,} refused requests leave",
        measured=held - early[1],
        bound=AtMost(0),
        raw=f"{early[1]:.0f}, then {held:.0f}",
    )


def _chosen(kinds: list[Refused], large: Refused, number: int) -> Refused:
    return large if number % LARGE_EACH == 0 else kinds[number % len(kinds)]


def _different(server: Process, database: Cluster, times: int) -> Result:
    """Send requests of which no two are alike."""
    request = guarded_call(server, database.url)
    parts = range(0, times, _PART)

    def send(part: int) -> None:
        send_different(server.port, request, range(part, part + _PART))

    # Half of them fill whatever has a bound.
    half = len(parts) // 2
    _together(lambda part: send(parts[part]), half)
    early = _least(server.resident_kib)
    _together(lambda part: send(parts[half + part]), len(parts) - half)
    what = "different headers, tokens, paths and sessions"
    late = _least(server.resident_kib)
    return _memory(what, times // 2, early, late, warm=1 / 2)


# -- looking -------------------------------------------------------------------------


def _together(work: Callable[[int], None], times: int) -> None:
    """Do something so often, a few at a time."""
    with ThreadPoolExecutor(_CLIENTS) as pool:
        for _ in pool.map(work, range(times)):
            continue


def _least(*looks: Callable[[], float]) -> float:
    """Return the least that is seen in a while: connections are about to close."""
    end, seen = time.monotonic() + _SETTLE_SECONDS, list[float]()
    while time.monotonic() < end:
        time.sleep(0.2)
        seen.append(sum(look() for look in looks))
    return min(seen)


def _table_sizes(database: Cluster) -> dict[str, int]:
    """Return the rows of each table but those of the call log, which are kept."""
    rows = counted(database.url)
    return {name: rows[name] for name in rows if name not in _CALL_LOG}


def _settled(
    server: Process, database: Cluster, before: Mapping[str, int]
) -> dict[str, int]:
    """Return the rows once there are no more than before, or patience is at its end.

    With nothing before: once they have been the same for two rounds of the janitor.
    """
    looks = itertools.count()
    rows, same = _table_sizes(database), 0
    while next(looks) < _PATIENCE_SECONDS:
        if (before and not more(rows, before)) or same > 2 * _JANITOR_SECONDS:
            break
        time.sleep(1)
        # Changes are put away when somebody asks.
        checked(server.port, call("drill_add"), is_sum)
        now = _table_sizes(database)
        rows, same = now, same + 1 if now == rows else 0
    return rows


def _memory(
    what: str, count: int, before: float, after: float, warm: float = WARM
) -> Result:
    return Result(
        figure=f"memory that {count:,} {what} leave",
        measured=(after - before) / 1024,
        bound=AtMost(GROWTH_MIB),
        unit="MiB",
        raw=f"{before:,.0f} KiB after {warm:.0%} of all, then {after:,.0f} KiB",
    )


def _rows(what: str, count: int, left: Mapping[str, int]) -> Result:
    named = ", ".join(f"{rows:,} of {name}" for name, rows in left.items())
    return Result(
        figure=f"rows that {count:,} {what} leave",
        measured=sum(left.values()),
        bound=AtMost(0),
        raw=named or "every table of the app counted but the call log's",
    )
