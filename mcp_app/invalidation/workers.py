"""The row of each worker, and how long a command waits for the other workers.

A commit has taken effect everywhere once every live worker has checked, which is
`FRESHNESS` later.  Without other live workers it takes effect at once.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import uuid4

from django.db import IntegrityError, connections, router, transaction
from django.db.models import QuerySet

from mcp_app.invalidation.changes import ResourceSubscriptions
from mcp_app.models import PublishedRow, Stop, Subscription, Worker
from mcp_app.models.changes import committed
from mcp_app.models.expiry import PORTION, ExpiredRows
from mcp_app.models.stops import By, Running
from mcp_app.models.transactions import NowMilliseconds, now_sql, tells_of_commits
from mcp_app.models.workers import MAX_REASON_LENGTH, MOST_BROKEN, MOST_SESSIONS, Report
from mcp_app.pools.database import log_writer, reader, writer

# -- peers -----------------------------------------------------------------------------
# Which other processes live, judged by the monotonic clock of this one.
#
# The times in rows are the database's, and its clock may jump.  If it jumps forward,
# live processes seem silent; if it jumps back, the row of a dead one lies in the
# future.  So this module does not look at the age of a row, but measures how long it
# has not changed.

SILENT_S: Final = 14.0
"""A process whose row has not changed for this long counts as dead.

This is `LIVE_MS` less a second: three looks, five seconds apart, may take a moment less
than 15 s.  Before the first look it may have been silent for a heartbeat.
"""
MAX_INTERVAL_S: Final = 6.0
"""At most this much of the time between two looks counts: this process may have been
paused, and the others with it."""

Owner: TypeAlias = tuple[str, int | None, bool]
"""A process: its key, `heartbeat_ms` of its row (None if it has no row), and whether it
owns an open stream or holds a session of HTTP+SSE."""


@dataclass(slots=True)
class _PeerState:
    """A row as it was last seen, and the seconds for which it has not changed."""

    heartbeat_ms: int | None
    runs: bool
    looked: float
    silent: float = 0.0
    changed: bool = False

    @property
    def counts_as_dead(self) -> bool:
        """Whether it counts as dead; a process without a row has said that it ends."""
        return self.heartbeat_ms is None or self.silent >= SILENT_S


@dataclass(frozen=True, slots=True)
class PeerStates:
    """What a process knows of the others; immutable, so any thread may read it."""

    dead: Mapping[str, int | None] = field(default_factory=dict)
    """Those that were silent for too long, with the last `heartbeat_ms` of each."""
    alive: frozenset[str] = frozenset()
    """Those whose row was seen to change, and that are not dead."""

    def is_process_alive(self, key: str, heartbeat_ms: int, *, old: bool) -> bool:
        """Return whether the process with this row lives.

        `old` is the judgement of the database's clock: it decides for processes that
        were not watched for long enough.
        """
        if key in self.dead and self.dead[key] == heartbeat_ms:
            return False
        return not old or key in self.alive


class PeerMonitor:
    """Watches the rows of the other processes; times are those of a monotonic clock."""

    def __init__(self, own_key: str) -> None:
        self._own_key = own_key
        self._watched: dict[str, _PeerState] = {}

    def observe_owners(self, owners: Iterable[Owner], now: float) -> None:
        rows = {key: (heartbeat_ms, runs) for key, heartbeat_ms, runs in owners}
        for key in self._watched.keys() - rows.keys():
            del self._watched[key]
        for key, (heartbeat_ms, runs) in rows.items():
            self.observe_process(key, heartbeat_ms, now, runs=runs)

    def observe_process(
        self, key: str, heartbeat_ms: int | None, now: float, *, runs: bool = True
    ) -> bool:
        """Note one row; return whether its process is dead."""
        if key == self._own_key:
            return False
        watched = self._watched.setdefault(key, _PeerState(heartbeat_ms, runs, now))
        if heartbeat_ms == watched.heartbeat_ms:
            watched.silent += min(max(0.0, now - watched.looked), MAX_INTERVAL_S)
        else:
            watched.silent, watched.changed = 0.0, True
        watched.heartbeat_ms, watched.looked, watched.runs = heartbeat_ms, now, runs
        return watched.counts_as_dead

    def observe_open_streams(
        self, owners: Mapping[str, int | None], now: float
    ) -> bool:
        """Note the rows of the owners of open streams; return whether any is dead."""
        # A list, because every row must be noted: `any` would stop at the first.
        dead = [self.observe_process(*owner, now) for owner in owners.items()]
        return any(dead)

    def count_living(self) -> int:
        """Return how many processes seem to live, this one included."""
        return 1 + sum(not each.counts_as_dead for each in self._watched.values())

    def peer_states(self) -> PeerStates:
        """Return which processes are dead, and which are known to live."""
        watched = self._watched.items()
        dead = {key: each.heartbeat_ms for key, each in watched if each.counts_as_dead}
        changed = frozenset(key for key, each in watched if each.changed)
        return PeerStates(dead, changed - dead.keys())

    def orphaning(self) -> dict[str, int | None]:
        """Return the dead with streams or sessions, with their `heartbeat_ms`."""
        return {
            key: each.heartbeat_ms
            for key, each in self._watched.items()
            if each.counts_as_dead and each.runs
        }


# For rooms that may not import `models`.
__all__ = [
    "MAX_REASON_LENGTH",
    "MOST_BROKEN",
    "MOST_SESSIONS",
    "Report",
]

FRESHNESS = 0.25
"""Seconds: a request is answered from the caches only if a check of the database
started less than this before it arrived."""
HEARTBEAT = 5.0
TRUSTED = 10.0
"""After this many seconds without renewing its row, a process checks on every request:
soon the others will take it for dead, and no longer wait for it."""
KEPT_MS = 2 * 3_600_000
"""Rows of dead processes are kept for longer than the database's clock may jump.
Otherwise a live process might have no row until its next heartbeat."""


class WorkerRow:
    """The row of this process; its methods block."""

    def __init__(self) -> None:
        self.id = uuid4().hex
        self.report = Report()
        """What the next heartbeat stores; replaced as a whole."""
        self.judged = PeerStates()
        """What is known of the other processes; replaced as a whole."""
        self.resources = ResourceSubscriptions(self.id)

    def renew(self) -> None:
        """Update the heartbeat, or insert the row."""
        report = self.report.as_text()
        if not Worker.objects.beat(self.id, report):
            Worker.objects.create(
                id=self.id,
                host=socket.gethostname()[:255],
                pid=os.getpid(),
                started_ms=NowMilliseconds(),
                seen_ms=NowMilliseconds(),
                report=report,
            )
            # If others took this process for dead, they deleted these with its row.
            self.resources.insert_rows()

    def exchange_demand(self, demand: str) -> list[str]:
        """Store how often persons call here; return what other processes stored."""
        return Worker.objects.exchange_demand(self.id, demand)

    def watch(self, uris: Iterable[str]) -> None:
        """Store which resources the streams of this process watch."""
        try:
            self.resources.insert_rows(uris)
        except IntegrityError:
            # Others took this process for dead and deleted its row.
            self.renew()
            self.resources.insert_rows(uris)

    def remove(self) -> None:
        """Delete the row, so that nobody waits for this process any more."""
        delete_workers(Worker.objects.filter(pk=self.id))

    def others_live(self) -> bool:
        """Return whether another process may use its caches; read it after a commit."""
        rows = Worker.objects.exclude(pk=self.id).aged()
        is_alive = self.judged.is_process_alive
        return any(is_alive(key, seen_ms, old=old) for key, seen_ms, old in rows)


class Here:
    """The process that serves requests in this OS process, if there is one."""

    def __init__(self) -> None:
        self._row: WorkerRow | None = None
        self._stale: Callable[[], None] | None = None
        self._changed: Callable[[], None] | None = None

    def register_process(
        self, row: WorkerRow, stale: Callable[[], None], changed: Callable[[], None]
    ) -> None:
        """Register the serving process, and what any thread calls after a commit."""
        self._row, self._stale, self._changed = row, stale, changed

    def forget_process(self, row: WorkerRow | None = None) -> None:
        """Forget the serving process, or only the one with this row."""
        if row is None or row is self._row:
            self._row = self._stale = self._changed = None

    def notify_process(self, **_: object) -> None:
        """Notify the process that changes were committed in this OS process."""
        if self._changed is not None:
            self._changed()

    def committed(self) -> None:
        """Wait until the last commit has taken effect in every process; blocks."""
        # A command or a task watches no other process, so it uses the database's clock.
        if self._stale is not None:
            self._stale()
        row = self._row
        live = Worker.objects.live().exists() if row is None else row.others_live()
        if live:
            time.sleep(FRESHNESS)


here = Here()
os.register_at_fork(after_in_child=here.forget_process)


def connect() -> None:
    """Notify the process that serves here of commits in this OS process."""
    committed.connect(here.notify_process)


def hold_after_commit(using: str) -> None:
    """Delay the caller after its commit until every process has seen the change.

    For commands in synchronous code: there is one wait per commit, however often this
    is called.  Nobody waits if a site commits by hand.
    """
    if not tells_of_commits(using):
        return
    connection = transaction.get_connection(using)
    if not any(entry[1] is _wait_after_commit for entry in connection.run_on_commit):
        transaction.on_commit(_wait_after_commit, using=using, robust=True)


def _wait_after_commit() -> None:
    if threading.current_thread().name not in _OWN_THREADS:
        here.committed()


_OWN_THREADS = frozenset(each.name for each in (reader, writer, log_writer))
"""The process's own threads, whose other work must not wait."""


def database_ms() -> int:
    """Return the time of the database's clock in milliseconds since 1970; blocks."""
    connection = connections[router.db_for_read(Worker)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now_sql(connection)}")
        return int(cursor.fetchone()[0])


def expired_workers() -> list[ExpiredRows]:
    count = _dead_workers().count
    return [ExpiredRows("dead processes", count, lambda: prune() or None)]


def prune() -> int:
    """Delete the rows of processes that died long ago; return how many; blocks."""
    return delete_workers(_dead_workers()[:PORTION])


def _dead_workers() -> QuerySet[Worker]:
    return Worker.objects.filter(seen_ms__lt=NowMilliseconds() - KEPT_MS)


def delete_workers(workers: QuerySet[Worker]) -> int:
    """Delete the rows of processes, with what they watch; return how many; blocks."""
    keys = list(workers.values_list("pk", flat=True))
    Subscription.objects.filter(worker_id__in=keys).unwatch()
    Worker.objects.filter(pk__in=keys).delete()
    return len(keys)


# -- stops -----------------------------------------------------------------------------
# When these functions return, a stop or start has taken effect in every process.
#
# For synchronous code: inside a transaction, the commit waits instead.


def stop(
    scope: str,
    row: PublishedRow | None = None,
    *,
    by: By,
    running: str = Running.CANCEL,
    reason: str = "",
) -> Stop:
    """Stop something; `row` is the server or definition.  Raises `ValidationError`."""
    using = router.db_for_write(Stop)
    with transaction.atomic(using=using):
        new_stop = Stop.objects.using(using).make(
            scope, row, by=by, running=running, reason=reason
        )
        hold_after_commit(using)
    return new_stop


def stop_rows(rows: Iterable[PublishedRow], *, by: By) -> list[Stop]:
    """Stop these servers or definitions, and cancel their running calls."""
    using = router.db_for_write(Stop)
    with transaction.atomic(using=using):
        new_stops = Stop.objects.using(using).make_many(rows, by=by)
        if new_stops:
            hold_after_commit(using)
    return new_stops


def start(keys: Iterable[int], *, by: By) -> list[Stop]:
    """End these stops, by their keys; return the ones that were still active."""
    using = router.db_for_write(Stop)
    with transaction.atomic(using=using):
        ended = Stop.objects.using(using).end(keys, by=by)
        if ended:
            hold_after_commit(using)
    return ended


def count_cancelled(key: int, calls: int) -> None:
    """Add to the number of calls that a stop has cancelled; blocks."""
    Stop.objects.using(router.db_for_write(Stop)).count_cancelled(key, calls)
