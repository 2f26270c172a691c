"""Which processes may answer from their caches, and how long a command waits for them.

What was committed is true everywhere once every live process has checked: that is
`FRESHNESS` later.  Where no other process is live, it is true at once.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from mcp_app.models import Subscription, Worker
from mcp_app.models.changes import committed
from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.expired import PORTION, Expired
from mcp_app.models.transactions import tells_of_commits
from mcp_app.models.workers import MOST_SESSIONS, Report
from mcp_app.pools.database import log_writer, reader, writer
from mcp_app.wakeup.others import Judged
from mcp_app.wakeup.watched import WatchedResources

__all__ = [
    "FRESHNESS",
    "HEARTBEAT",
    "MOST_SESSIONS",
    "TRUSTED",
    "Report",
    "WorkerRow",
    "connect",
    "here",
    "hold_after_commit",
    "prune",
]

FRESHNESS = 0.25
"""Seconds: a request is answered from caches only if a check of the database started
later than its arrival less this."""
HEARTBEAT = 5.0
TRUSTED = 10.0
"""A process that could not renew its row for so long checks on every request: soon the
others will take it for dead, and no longer wait for it."""
KEPT_MS = 2 * 3_600_000
"""Rows of the dead are kept for longer than the database's clock may jump: who lives
would have no row until its next heartbeat."""


class WorkerRow:
    """The row of this process; its methods block."""

    def __init__(self) -> None:
        self.id = uuid4().hex
        self.report = Report()
        """What the next heartbeat says; replaced as a whole, by whoever knows it."""
        self.judged = Judged()
        """What is known of the others; replaced as a whole, by whoever watches them."""
        self.resources = WatchedResources(self.id)

    def renew(self) -> None:
        """Say that this process lives."""
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
            # They went with the row, where others took this process for dead.
            self.resources.write()

    def watch(self, uris: Iterable[str]) -> None:
        """Say what the streams of this process watch."""
        try:
            self.resources.write(uris)
        except IntegrityError:
            # Others took this process for dead: its row is gone, and comes back.
            self.renew()
            self.resources.write(uris)

    def remove(self) -> None:
        """Say that nobody need wait for this process any more."""
        _forget(Worker.objects.filter(pk=self.id))

    def others_live(self) -> bool:
        """Whether another process may answer from its caches; read after a commit."""
        others = Worker.objects.exclude(pk=self.id).aged()
        return any(self.judged.lives(key, seen, old=old) for key, seen, old in others)


class Here:
    """The process that serves in this OS process, if one does."""

    def __init__(self) -> None:
        self._row: WorkerRow | None = None
        self._stale: Callable[[], None] | None = None
        self._changed: Callable[[], None] | None = None

    def serves(
        self, row: WorkerRow, stale: Callable[[], None], changed: Callable[[], None]
    ) -> None:
        """A process serves here.

        From any thread, `stale` tells it that nothing is answered from its caches as
        they are, and `changed` that something was committed.
        """
        self._row, self._stale, self._changed = row, stale, changed

    def forget(self, row: WorkerRow | None = None) -> None:
        """No process serves here any more: none at all, or not the one of this row."""
        if row is None or row is self._row:
            self._row = self._stale = self._changed = None

    def changed(self, **_: object) -> None:
        """Changes were committed in this OS process."""
        if self._changed is not None:
            self._changed()

    def committed(self) -> None:
        """Wait until what was committed just now is true in every process; blocks.

        A command or a task, which watches nobody, goes by the database's clock.
        """
        if self._stale is not None:
            self._stale()
        row = self._row
        live = Worker.objects.live().exists() if row is None else row.others_live()
        if live:
            time.sleep(FRESHNESS)


here = Here()
os.register_at_fork(after_in_child=here.forget)


def connect() -> None:
    """Let the process that serves here know of what is committed here."""
    committed.connect(here.changed)


def hold_after_commit(using: str) -> None:
    """Let the caller go on only when what it commits is true in every process.

    For commands in synchronous code: one wait for a commit, however many they are.
    Nobody waits where a site commits by hand.
    """
    if not tells_of_commits(using):
        return
    connection = transaction.get_connection(using)
    if not any(entry[1] is _hold for entry in connection.run_on_commit):
        transaction.on_commit(_hold, using=using, robust=True)


def _hold() -> None:
    if threading.current_thread().name not in _OWN_THREADS:
        here.committed()


_OWN_THREADS = frozenset(each.name for each in (reader, writer, log_writer))


def expired_workers() -> list[Expired]:
    """Return the processes that died long ago."""
    return [Expired("dead processes", lambda: _dead().count(), lambda: prune() or None)]


def prune() -> int:
    """Forget processes that died long ago; return how many; blocks."""
    return _forget(_dead()[:PORTION])


def _dead() -> QuerySet[Worker]:
    return Worker.objects.filter(seen_ms__lt=NowMilliseconds() - KEPT_MS)


def _forget(workers: QuerySet[Worker]) -> int:
    """Delete rows of processes, and what their streams watched."""
    gone = list(workers.values_list("pk", flat=True))
    Subscription.objects.filter(worker_id__in=gone).unwatch()
    Worker.objects.filter(pk__in=gone).delete()
    return len(gone)
