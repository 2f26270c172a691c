"""Ending connections of a thread that hangs, from another thread.

A statement on its way hears of it as of any connection that breaks.
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
"""So long a server has to hear that a statement is wanted no more."""
DROPPED: Final = struct.pack("ii", 1, 0)


class Line(NamedTuple):
    """The socket of a driver's connection: its descriptor, and the file behind it.

    Not every driver tells it to another thread.
    """

    wrapper: Any
    driver: Any
    descriptor: int
    file: int

    @classmethod
    def of(cls, wrapper: Any) -> Self | None:
        """Return that of Django's connection; None where there is none."""
        with suppress(Exception):
            driver = wrapper.connection
            descriptor = driver.fileno()
            return cls(wrapper, driver, descriptor, os.fstat(descriptor).st_ino)
        return None

    def is_held(self) -> bool:
        """Whether it is still its thread's own, or went back to Django's pool."""
        return self.wrapper.connection is self.driver

    def shut(self) -> None:
        """Let the connection break, whatever its thread does meanwhile."""
        if not self.is_held():
            return
        with suppress(OSError):
            same = os.dup(self.descriptor)
            # It may be closed at any moment, and its descriptor be another's.
            if os.fstat(same).st_ino == self.file:
                _shut(same)
            else:
                os.close(same)


def _shut(descriptor: int) -> None:
    with socket.socket(fileno=descriptor) as same:
        if same.family in (socket.AF_INET, socket.AF_INET6):
            # What was not sent must not arrive when the network is back.
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DROPPED)
        same.shutdown(socket.SHUT_RDWR)


def waits_for_a_lock(wrappers: Sequence[Any]) -> bool:
    """Whether one of Django's connections is open to a file: no network is silent."""
    return any(
        each.vendor == "sqlite" and each.connection is not None for each in wrappers
    )


def cut(lines: Sequence[Line]) -> None:
    """Cut what is open; does not wait."""
    for each in lines:
        # Else a server that is there goes on with it, and keeps its locks.
        if not _hears_of_cancelling(each.driver) or not _begun(_cancel_and_shut, each):
            each.shut()


def _begun(function: Callable[[Line], None], line: Line) -> bool:
    """Whether there is a thread for it."""
    thread = threading.Thread(
        target=function, args=(line,), name="mcp-cut", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _hears_of_cancelling(driver: Any) -> bool:
    # Older ones cancel only in a way that may hang, and all threads with it.
    try:
        from psycopg import capabilities  # noqa: PLC0415 - a site may have no psycopg

        return hasattr(driver, "cancel_safe") and capabilities.has_cancel_safe()
    except (ImportError, AttributeError):
        return False


def _cancel_and_shut(line: Line) -> None:
    if line.is_held():
        with suppress(Exception):
            line.driver.cancel_safe(timeout=CANCEL_S)
    # It may have gone back to the pool meanwhile, and be in another's hands.
    line.shut()
