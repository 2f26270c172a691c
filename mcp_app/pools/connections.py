"""When the connections of the pools' threads are closed."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from weakref import WeakSet

from django.db import close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

LAST_CLOSE_S: Final = 1.0
"""Seconds that an ending process waits for the threads of closed pools."""

_ending: WeakSet[threading.Thread] = WeakSet()
_thread = threading.local()


@receiver(connection_created, dispatch_uid="mcp_app.pools.connections")
def _remember(**_: object) -> None:
    _thread.connected = True


class _WithoutOldConnections:
    """Do before and after a call what Django does around a request.

    A thread that never opened a connection has nothing to check, and most calls open
    none.  It holds no state, so one serves all calls: a generator costs more.
    """

    def __enter__(self) -> None:
        if getattr(_thread, "connected", False):
            close_old_connections()

    def __exit__(self, *_: object) -> None:
        if getattr(_thread, "connected", False):
            close_old_connections()


without_old_connections: Final = _WithoutOldConnections()


@contextmanager
def own_connections() -> Iterator[None]:
    """Put those of calls in the place of this thread's connections.

    So no call meets what a view or the site's middleware has left in one of its own (a
    tenant, a setting of the database's session), and none leaves anything there.
    """
    theirs = _take_out()
    for each in getattr(_thread, "own", ()):
        connections[each.alias] = each
    try:
        yield
    finally:
        _thread.own = _take_out()
        for each in theirs:
            connections[each.alias] = each


def _take_out() -> Sequence[BaseDatabaseWrapper]:
    found = connections.all(initialized_only=True)
    for each in found:
        del connections[each.alias]
    return found


def end_before_exit(threads: Iterable[threading.Thread | None]) -> None:
    """Let an ending process wait for these, which close their connections and end.

    An interpreter that goes while a daemon thread closes a SQLite file can crash.
    """
    _ending.update(each for each in threads if each is not None)


@atexit.register
def _wait_for_last_close() -> None:
    until = time.monotonic() + LAST_CLOSE_S
    for each in tuple(_ending):
        each.join(max(0.0, until - time.monotonic()))
