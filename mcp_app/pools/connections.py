"""Closes a thread's old connections around a call, if it has any."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import close_old_connections
from django.db.backends.signals import connection_created
from django.dispatch import receiver

_thread = threading.local()


@receiver(connection_created, dispatch_uid="mcp_app.pools.connections")
def _remember(**_: object) -> None:
    _thread.connected = True


@contextmanager
def without_old_connections() -> Iterator[None]:
    """Do before and after a call what Django does around a request.

    A thread that never opened a connection has nothing to check, and most calls open
    none.
    """
    if getattr(_thread, "connected", False):
        close_old_connections()
    try:
        yield
    finally:
        if getattr(_thread, "connected", False):
            close_old_connections()
