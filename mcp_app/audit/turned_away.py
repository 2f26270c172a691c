"""Requests that never became a call: counted in memory, reported with heartbeats."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias

from mcp_app.audit.writing import storable_text
from mcp_app.models.calls import HOUR_S

RefusalCount: TypeAlias = tuple[int, str, str, int]
"""The start of an hour (ms), the reason, the client, and the number of requests."""

HOURS: Final = 24
GROUPS: Final = 30
"""With more groups than this in an hour, clients are counted together for each
reason."""
OTHERS: Final = "\N{HORIZONTAL ELLIPSIS}"
"""Stands for clients that are counted together; headers are Latin-1, so no client has
this name."""
MAX_CLIENT_LENGTH: Final = 60


class Reason(StrEnum):
    """Why a request was refused; the row of the worker stores the values."""

    HOST = "host"
    ORIGIN = "origin"
    NOBODY = "nobody"
    """No credentials, although some are needed."""
    CREDENTIALS = "credentials"
    """Credentials that were not accepted."""
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
    """Counts refused requests by the hour, for a day, in limited memory."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[tuple[int, str, str], int] = {}
        """The number of requests by hour, reason and client."""
        self._hour = 0

    def count_refusal(self, reason: Reason, client: str) -> None:
        """Count a request; `client` is the name that it gives itself, "" for none."""
        hour = int(self._clock()) // HOUR_S
        if hour != self._hour:
            self._hour = hour
            self._counts = {
                key: count
                for key, count in self._counts.items()
                if key[0] > hour - HOURS
            }
        key = (hour, reason.value, storable_text(client[:MAX_CLIENT_LENGTH]))
        if key not in self._counts:
            # Each hour has room for so many groups.
            groups = sum(each[0] == hour and each[2] != OTHERS for each in self._counts)
            if groups >= GROUPS:
                key = (hour, reason.value, OTHERS)
        self._counts[key] = self._counts.get(key, 0) + 1

    def counts_of_day(self) -> tuple[RefusalCount, ...]:
        return tuple(
            (hour * HOUR_S * 1_000, reason, client, count)
            for (hour, reason, client), count in self._counts.items()
            if hour > int(self._clock()) // HOUR_S - HOURS
        )
