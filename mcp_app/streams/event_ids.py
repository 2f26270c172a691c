"""Event ids, of request streams and of standing streams.

They are `<public_id>.<seq>` and `<public_id>.<seq>.<announced>`.  `public_id` is random
for each stream, and carries a mark with which every process recognises, without a row,
that the stream belongs to the session.  The `seq` of a request is the number of its
message in the log; in a standing stream it counts the session's own log messages.
`announced` is the number up to which all changes have been announced on the stream.

An id is used once in a session (transports, "Resumability and Redelivery").  If several
events have the same number, each later one gets one more part, a count.  A client that
returns with such an id gets all of them again.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from django.db import IntegrityError

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import InternalError, InvalidRequest, ProtocolError
from mcp_app.streams.log_writer import StreamFenced

_PART = 9
"""Bytes of chance, and as many of the mark: twelve characters each in base64."""
_DRAWN = 256
"""How many ids get their chance from one call of the kernel."""
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
    chance = _chances.take_bytes()
    return urlsafe_b64encode(chance + _session_mark(session, chance)).decode()


def position_of(event_id: str, session: str) -> SeenEvents:
    """Return what a client has seen, by an event id; wrong ids raise the same error."""
    match = _EVENT_ID.fullmatch(event_id)
    if match is None or not _is_of_session(match[1], session):
        raise wrong_event_id()
    return SeenEvents(int(match[2]), int(match[3]))


def of_message(public_id: str, seq: int) -> str:
    """Return the id of a message of a request's stream; 0 is before the first."""
    return f"{public_id}.{seq}"


def of_request(event_id: str, session: str) -> tuple[str, int] | None:
    """Return which stream and message of a request an id names; None for other ids."""
    match = _OF_REQUEST.fullmatch(event_id)
    if match is None:
        return None
    if not _is_of_session(match[1], session):
        raise wrong_event_id()
    return match[1], int(match[2])


def _is_of_session(public_id: str, session: str) -> bool:
    decoded = urlsafe_b64decode(public_id)
    return hmac.compare_digest(decoded[_PART:], _session_mark(session, decoded[:_PART]))


def wrong_event_id() -> InvalidRequest:
    """Return the error for an id that is malformed, unknown, or of another session."""
    return InvalidRequest("Last-Event-ID is not an event of this session.")


def _session_mark(session: str, chance: bytes) -> bytes:
    return blake2b(chance, key=session.encode(), digest_size=_PART).digest()


class _Chances:
    """Random bytes, drawn from the kernel in bulk, because it is slow to answer."""

    def __init__(self) -> None:
        self._drop_bytes()
        os.register_at_fork(after_in_child=self._drop_bytes)

    def _drop_bytes(self) -> None:
        self._bytes = b""

    def take_bytes(self) -> bytes:
        if not self._bytes:
            self._bytes = secrets.token_bytes(_PART * _DRAWN)
        drawn, self._bytes = self._bytes[:_PART], self._bytes[_PART:]
        return drawn


_chances = _Chances()


class EventIds:
    """Creates the event ids of one stream."""

    __slots__ = ("_nth", "announced", "logged", "public_id")

    def __init__(self, session: str) -> None:
        self.public_id = new_public_id(session)
        self.announced = 0
        self.logged = 0
        self._nth = 0

    def current_id(self) -> str:
        """Return the id that precedes all events."""
        return f"{self.public_id}.{self.logged}.{self.announced}"

    def next_change_id(self, number: int) -> str:
        """Return the id of an event that announces everything up to a number."""
        self._nth = 0 if number > self.announced else self._nth + 1
        self.announced = max(number, self.announced)
        return f"{self.current_id()}.{self._nth}" if self._nth else self.current_id()

    def next_logged(self, seq: int) -> str:
        """Return the id of the event of a log message, by its number."""
        self._nth, self.logged = 0, seq
        return self.current_id()


# -- final message ---------------------------------------------------------------------
# The message that ends a stream if its requests get no other answer.

HARMLESS_FAILURES: Final = (StreamFenced, IntegrityError)
"""Failures that are no faults: a stream that was closed, a request that came before."""
ENDED_ELSEWHERE: Final = InternalError(
    "This call was ended from outside: its session was closed, or another process"
    " considered this one dead. Nobody knows whether the call had an effect."
)
UNSTORED: Final = InternalError(
    "The messages of this call could not be stored; the server's log says why. Nobody"
    " knows whether the call had an effect."
)
CROWDED: Final = InternalError(
    "The calls of this server send more than the database takes, and this call sent"
    " more than others. Try again, and ask for less at once."
)


def storage_error(failure: Exception) -> InternalError:
    """Return the error that answers a call whose own answer could not be stored."""
    return ENDED_ELSEWHERE if isinstance(failure, HARMLESS_FAILURES) else UNSTORED


def stream_too_long(events: int, size: int) -> InternalError:
    """Return the error of a call that sent more than so many messages or bytes."""
    return InternalError(
        f"This call sent more than {events} messages or {size} bytes, which is the"
        " limit of what is stored for one call."
    )


def answers_batch(requests: str) -> bool:
    """Return whether a stream answers a batch; then its last message is an array."""
    return requests.startswith("[")


def request_ids(requests: str) -> list[str | int]:
    """Return the ids that a stream answers, from the column `requests`."""
    ids: Any = jsonrpc.read(requests.encode())
    return ids if answers_batch(requests) else [ids]


def is_answer(message: bytes) -> bool:
    """Return whether a message of a stream answers its requests, and so is the last."""
    value = jsonrpc.read(message)
    return not isinstance(value, dict) or "method" not in value


def final_message(requests: str, error: ProtocolError) -> bytes:
    """Return the error that answers each request of a stream.

    `requests` is the column of the stream's row: an id, or an array of ids, as JSON.
    """
    ids = request_ids(requests)
    answers = [error_message(each, error, null_id=False) for each in ids]
    return jsonrpc.write(answers if answers_batch(requests) else answers[0])
