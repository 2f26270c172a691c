"""Cuts the connections of a hanging thread from another thread.

A running statement then fails as with any broken connection.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

CANCEL_S: Final = 2.0
"""Time limit for telling a server to cancel a statement."""
DROPPED: Final = struct.pack("ii", 1, 0)


class ConnectionKiller(NamedTuple):
    """The socket of a driver's connection: its descriptor, and the file behind it.

    Not every driver reveals it to another thread.
    """

    wrapper: Any
    driver: Any
    descriptor: int
    file: int

    @classmethod
    def of(cls, wrapper: Any) -> Self | None:
        """Return the one of Django's connection; None if it has no socket."""
        with suppress(Exception):
            driver = wrapper.connection
            descriptor = driver.fileno()
            return cls(wrapper, driver, descriptor, os.fstat(descriptor).st_ino)
        return None

    def is_held(self) -> bool:
        """Return whether its thread still has it, or gave it back to Django's pool."""
        return self.wrapper.connection is self.driver

    def shut(self) -> None:
        """Break the connection, whatever its thread is doing."""
        if not self.is_held():
            return
        with suppress(OSError):
            same = os.dup(self.descriptor)
            # It may be closed at any moment, and its descriptor reused.
            if os.fstat(same).st_ino == self.file:
                _shut(same)
            else:
                os.close(same)


def _shut(descriptor: int) -> None:
    with socket.socket(fileno=descriptor) as same:
        if same.family in (socket.AF_INET, socket.AF_INET6):
            # Unsent data must not arrive when the network is back.
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DROPPED)
        same.shutdown(socket.SHUT_RDWR)


def waits_for_a_lock(wrappers: Sequence[Any]) -> bool:
    """Return whether a connection is to a SQLite file, which waits for no network."""
    return any(
        each.vendor == "sqlite" and each.connection is not None for each in wrappers
    )


def cut(lines: Sequence[ConnectionKiller]) -> None:
    """Cut what is open; does not wait."""
    for each in lines:
        # Otherwise a server that is reachable goes on, and keeps its locks.
        if not _hears_of_cancelling(each.driver) or not _begun(_cancel_and_shut, each):
            each.shut()


def _begun(
    function: Callable[[ConnectionKiller], None], line: ConnectionKiller
) -> bool:
    """Return whether a thread could be started for it."""
    thread = threading.Thread(
        target=function, args=(line,), name="mcp-cut", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _hears_of_cancelling(driver: Any) -> bool:
    # Older versions cancel only in a way that may hang, and all threads with it.
    try:
        from psycopg import capabilities  # noqa: PLC0415 - a site may have no psycopg

        return hasattr(driver, "cancel_safe") and capabilities.has_cancel_safe()
    except (ImportError, AttributeError):
        return False


def _cancel_and_shut(line: ConnectionKiller) -> None:
    if line.is_held():
        with suppress(Exception):
            line.driver.cancel_safe(timeout=CANCEL_S)
    # It may have returned to the pool meanwhile, and belong to another thread.
    line.shut()
