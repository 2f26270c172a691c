"""The message that ends a stream if its requests get no other answer."""

from __future__ import annotations

from typing import Any, Final

from django.db import IntegrityError

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import InternalError, ProtocolError
from mcp_app.streams.log_writer import StreamFenced

EXPECTED: Final = (StreamFenced, IntegrityError)
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


def why(failure: Exception) -> InternalError:
    """Return the error that answers a call whose own answer could not be stored."""
    return ENDED_ELSEWHERE if isinstance(failure, EXPECTED) else UNSTORED


def too_long(events: int, size: int) -> InternalError:
    """Return the error of a call that sent more than so many messages or bytes."""
    return InternalError(
        f"This call sent more than {events} messages or {size} bytes, which is the"
        " limit of what is stored for one call."
    )


def is_batch(requests: str) -> bool:
    """Return whether a stream answers a batch; then its last message is an array."""
    return requests.startswith("[")


def request_ids(requests: str) -> list[str | int]:
    """Return the ids that a stream answers, from the column `requests`."""
    ids: Any = jsonrpc.read(requests.encode())
    return ids if is_batch(requests) else [ids]


def is_answer(message: bytes) -> bool:
    """Return whether a message of a stream answers its requests, and so is the last."""
    value = jsonrpc.read(message)
    return not isinstance(value, dict) or "method" not in value


def final_message(requests: str, error: ProtocolError) -> bytes:
    """Return the error that answers each request of a stream.

    `requests` is the column of the stream's row: an id, or an array of ids, as JSON.
    """
    ids: Any = jsonrpc.read(requests.encode())
    if not is_batch(requests):
        return jsonrpc.write(error_message(ids, error, null_id=False))
    return jsonrpc.write([error_message(each, error, null_id=False) for each in ids])
