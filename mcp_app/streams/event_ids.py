"""Event ids, of request streams and of standing streams.

They are `<public_id>.<seq>` and `<public_id>.<seq>.<seen>`.  `public_id` is random for
each stream, and carries a mark with which every process recognises, without a row, that
the stream belongs to the session.  The `seq` of a request is the number of its message
in the log; in a standing stream it counts the session's own log messages.  `seen` is
the number up to which all changes have been announced on the stream.

An id is used once in a session (transports, "Resumability and Redelivery").  If more
events have the same number, each gets the id before it and one more part, a count.  A
client that returns with such an id gets all of them again.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import NamedTuple

from mcp_app.protocol.errors import InvalidRequest

_PART = 9
"""Random bytes, and as many of the mark: twelve characters each."""
_DRAWN = 256
_COUNT = r"(0|[1-9][0-9]{0,17})"
# `int()` would take other digits, blanks and underscores.
_EVENT_ID = re.compile(
    rf"([A-Za-z0-9_-]{{24}})\.{_COUNT}\.{_COUNT}(?:\.[1-9][0-9]{{0,8}})?", re.ASCII
)
_OF_REQUEST = re.compile(rf"([A-Za-z0-9_-]{{24}})\.{_COUNT}", re.ASCII)


class SeenEvents(NamedTuple):
    """The numbers up to which a client has seen all log messages, and all changes."""

    logged: int
    changes: int


def new_public_id(session: str) -> str:
    """Return the id of a new stream of the session with this digest."""
    chance = _chances.take()
    return urlsafe_b64encode(chance + _mark(session, chance)).decode()


def position_of(event_id: str, session: str) -> SeenEvents:
    """Return what a client has seen, according to an event id of its session.

    Raises the same error for every wrong id.
    """
    found = _EVENT_ID.fullmatch(event_id)
    if found is None:
        raise wrong()
    public_id, seq, number = found.groups()
    if not _is_own(public_id, session):
        raise wrong()
    return SeenEvents(int(seq), int(number))


def of_message(public_id: str, seq: int) -> str:
    """Return the id of a message of a request's stream; 0 is before the first."""
    return f"{public_id}.{seq}"


def of_request(event_id: str, session: str) -> tuple[str, int] | None:
    """Return which stream of a request an id names, and which of its messages.

    None means that the id is not of a request's stream.
    """
    found = _OF_REQUEST.fullmatch(event_id)
    if found is None:
        return None
    if not _is_own(found[1], session):
        raise wrong()
    return found[1], int(found[2])


def _is_own(public_id: str, session: str) -> bool:
    whole = urlsafe_b64decode(public_id)
    return hmac.compare_digest(whole[_PART:], _mark(session, whole[:_PART]))


def wrong() -> InvalidRequest:
    """Return the error for an id that is malformed, unknown, or of another session."""
    return InvalidRequest("Last-Event-ID is not an event of this session.")


def _mark(session: str, chance: bytes) -> bytes:
    return blake2b(chance, key=session.encode(), digest_size=_PART).digest()


class _Chances:
    """Random bytes, drawn from the kernel in bulk, because it is slow to answer."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._left = b""

    def take(self) -> bytes:
        """Return bytes for one stream."""
        if not self._left:
            self._left = secrets.token_bytes(_PART * _DRAWN)
        taken, self._left = self._left[:_PART], self._left[_PART:]
        return taken


_chances = _Chances()


class EventIds:
    """Creates the event ids of one stream."""

    __slots__ = ("_more", "logged", "public_id", "seen")

    def __init__(self, session: str) -> None:
        self.public_id = new_public_id(session)
        self.seen = 0
        self.logged = 0
        self._more = 0

    def first(self) -> str:
        """Return the id that precedes all events."""
        return f"{self.public_id}.{self.logged}.{self.seen}"

    def next(self, number: int) -> str:
        """Return the id of an event that announces everything up to a number."""
        self._more = 0 if number > self.seen else self._more + 1
        self.seen = max(number, self.seen)
        return f"{self.first()}.{self._more}" if self._more else self.first()

    def next_logged(self, seq: int) -> str:
        """Return the id of the event of a log message, by its number."""
        self._more, self.logged = 0, seq
        return self.first()
