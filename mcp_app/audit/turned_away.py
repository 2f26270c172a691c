"""Requests that never became a call: counted in memory, told with each heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias

from mcp_app.audit.storable import storable
from mcp_app.models.calls import HOUR_S

Group: TypeAlias = tuple[int, str, str, int]
"""When an hour began (ms), the reason, the client, and how many requests."""

HOURS: Final = 24
GROUPS: Final = 30
"""Beyond so many in one hour, clients are not told apart; reasons always are."""
OTHERS: Final = "\N{HORIZONTAL ELLIPSIS}"
"""Stands for clients that are not told apart: none calls itself so in Latin-1."""
LONGEST: Final = 60
"""Characters that are kept of what a client calls itself."""


class Reason(StrEnum):
    """Why a request was refused; the values are told to other processes."""

    HOST = "host"
    ORIGIN = "origin"
    NOBODY = "nobody"
    """No credentials, where some are needed."""
    CREDENTIALS = "credentials"
    """Credentials that let nobody in."""
    SERVER = "server"
    """There is no server at this address."""
    SESSION = "session"
    METHOD = "method"
    ACCEPT = "accept"
    CONTENT_TYPE = "content_type"
    SLOW = "slow"
    BODY = "body"
    HEADERS_SIZE = "headers_size"
    HEADERS = "headers"
    VERSION = "version"
    JSON = "json"
    MESSAGE = "message"
    TOO_MANY = "too_many"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"
    OTHER = "other"


class TurnedAway:
    """Counts what a process refuses, hour by hour, for a day.

    Anybody can send what is refused, as much as they like: how much is kept of it has
    a bound.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[tuple[int, str, str], int] = {}
        self._hour = 0

    def note(self, reason: Reason, client: str) -> None:
        """Count a request; `client` is what it calls itself, "" for nothing."""
        hour = int(self._clock()) // HOUR_S
        if hour != self._hour:
            self._begin(hour)
        key = (hour, reason.value, storable(client[:LONGEST]))
        if key not in self._counts and not self._tells_apart(hour):
            key = (hour, reason.value, OTHERS)
        self._counts[key] = self._counts.get(key, 0) + 1

    def said(self) -> tuple[Group, ...]:
        """Return what was counted."""
        return tuple(
            (hour * HOUR_S * 1_000, reason, client, count)
            for (hour, reason, client), count in self._counts.items()
            if hour > int(self._clock()) // HOUR_S - HOURS
        )

    def _tells_apart(self, hour: int) -> bool:
        """Whether an hour has room for one more: it takes none from those after it."""
        told = sum(key[0] == hour and key[2] != OTHERS for key in self._counts)
        return told < GROUPS

    def _begin(self, hour: int) -> None:
        """Forget what is older than a day."""
        self._hour = hour
        kept = hour - HOURS
        self._counts = {
            key: count for key, count in self._counts.items() if key[0] > kept
        }
