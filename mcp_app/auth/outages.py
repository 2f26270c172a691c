"""When what verifies is away: an outage is 503, because 401 would say "wrong".

Clients throw away their tokens and sessions on 401.
"""

from __future__ import annotations

import errno
import logging
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Final

from django.db import Error as DatabaseError

from mcp_app.interface.principal import AuthenticationUnavailable
from mcp_app.pools.database import RETRY_SECONDS, TELL_EVERY_S
from mcp_app.pools.outages import is_outage
from mcp_app.protocol.errors import Unavailable

logger = logging.getLogger("mcp_app.auth")

NETWORK: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("EADDRNOTAVAIL", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETRESET"),
        *("ENETUNREACH", "ENOTCONN", "EMFILE", "ENFILE"),
    )
    if hasattr(errno, name)
)
"""Of the errors of sockets those that Python has no class for."""

_told_at = float("-inf")


def outage(error: Exception) -> Unavailable | None:
    """Return the answer where it says that something is away; None for a fault.

    Libraries have errors of their own, raised from that of the socket: what an error
    comes from is looked at, too.
    """
    if isinstance(error, AuthenticationUnavailable):
        _tell(error)
        return Unavailable(_SAID, retry_after=error.retry_after)
    if any(map(_is_away, _chain(error))):
        _tell(error)
        return Unavailable(_SAID, retry_after=RETRY_SECONDS)
    return None


_SAID: Final = "Authentication is not available at the moment. Try again later."


def _is_away(error: BaseException) -> bool:
    if isinstance(error, DatabaseError):
        return is_outage(error)
    if isinstance(error, ConnectionError | TimeoutError | ssl.SSLError):
        return True
    if isinstance(error, socket.gaierror | socket.herror):
        return True
    return isinstance(error, OSError) and error.errno in NETWORK


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it comes from, hidden ones as well."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += (current.__context__, current.__cause__)
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions


def _tell(error: Exception) -> None:
    """Log it, not for each request; what an error says may have a secret in it."""
    global _told_at  # noqa: PLW0603 - one per OS process is what this is
    now = time.monotonic()
    if now - _told_at >= TELL_EVERY_S:
        _told_at = now
        kinds = " from ".join(type(each).__qualname__ for each in _chain(error))
        logger.warning("Authentication is not available: %s.", kinds)
