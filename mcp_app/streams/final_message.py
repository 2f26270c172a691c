"""The message that ends a stream if its requests get no other answer."""

from __future__ import annotations

from typing import Any

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import ProtocolError


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
