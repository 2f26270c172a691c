"""Cursors of lists: a place, signed, that survives a redeploy.

A cursor says after which entry a page starts, not what its reader may see; that is
checked again for every page.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams

LARGEST = 1024
"""Characters of a cursor."""

# What is signed starts with its purpose, so that nothing else signed with the same
# key can be passed off as a cursor.
_PURPOSE = b"mcp_app.cursor.1\0"
_DIGEST_SIZE = 32


@dataclass(frozen=True, slots=True)
class Cursor:
    """The entry that a page follows, by the list's order: position, then name."""

    server: str
    listing: str
    position: int
    name: str


def seal(cursor: Cursor, key: bytes) -> str:
    """The cursor as opaque text; ValueError where its name is too long for one."""
    place = [cursor.server, cursor.listing, cursor.position, cursor.name]
    payload = jsonrpc.write(place)
    text = _encoded(_signature(payload, key) + payload)
    if len(text) > LARGEST:
        raise ValueError(
            f"The name {cursor.name[:40]!r}… does not fit into a cursor of "
            f"{LARGEST} characters."
        )
    return text


def open(text: str, keys: Sequence[bytes], *, server: str, listing: str) -> Cursor:
    """The cursor that `seal` made for this list with one of `keys`.

    Raises InvalidParams, with one sentence for every reason.
    """
    payload = _payload(text, keys)
    if payload is None:
        raise _foreign()
    cursor = Cursor(*cast("list[Any]", jsonrpc.read(payload)))
    if (cursor.server, cursor.listing) != (server, listing):
        raise _foreign()
    return cursor


def _payload(text: str, keys: Sequence[bytes]) -> bytes | None:
    """What was signed, or None where nothing here has signed it."""
    sealed = _decoded(text)
    if sealed is None:
        return None
    signature, payload = sealed[:_DIGEST_SIZE], sealed[_DIGEST_SIZE:]
    for key in keys:
        if hmac.compare_digest(_signature(payload, key), signature):
            return payload
    return None


def _signature(payload: bytes, key: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + payload, "sha256")


def _encoded(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _decoded(text: str) -> bytes | None:
    if len(text) > LARGEST or not text.isascii():
        return None
    try:
        sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return None
    # The decoder skips foreign characters and spare bits; only the text that we
    # would write is ours.
    return sealed if _encoded(sealed) == text else None


def _foreign() -> InvalidParams:
    return InvalidParams(
        "The cursor does not come from this list. List again without a cursor."
    )
