"""Cursors of lists: a signed position that stays valid after a deployment.

A cursor says after which entry a page starts.  It does not say what its reader may see:
that is checked again for every page.
"""

from __future__ import annotations

import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams, ParseError
from mcp_app.protocol.json_types import JsonObject

# -- sealing ---------------------------------------------------------------------------
# Sealed text: a JSON object that a client stores for us but cannot read or change.
#
# AES-256-GCM, bound to associated data: a text that is sent to another place fails like
# a changed text.  It is written as base64url without padding.

NONCE_BYTES = 12


class TooLarge(ValueError):
    """The sealed text would have too many characters; `size` is their number."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"It needs {size} characters; at most {most} are allowed.")
        self.size = size


def derived_key(secret: str, purpose: str) -> bytes:
    """Derive a key of 32 bytes from a secret of the site (RFC 5869)."""
    kdf = HKDF(SHA256(), length=32, salt=None, info=f"mcp_app:{purpose}".encode())
    return kdf.derive(secret.encode())


def key_fingerprint(secret: str) -> str:
    """Return eight hexadecimal digits that are the same for the same secret.

    Nobody can derive the secret from them.
    """
    return hmac.new(derived_key(secret, "mark"), b"keys", sha256).hexdigest()[:8]


class Sealer:
    """Seals with the first secret and opens with any, so that secrets can be rotated.

    `size` is the most characters of a sealed text.
    """

    def __init__(self, secrets: Sequence[str], purpose: str, *, size: int) -> None:
        self._keys = [AESGCM(derived_key(secret, purpose)) for secret in secrets]
        self._size = size

    def seal(self, value: JsonObject, bound: bytes) -> str:
        """Return an object as text that opens only for `bound`; raise `TooLarge`."""
        nonce = os.urandom(NONCE_BYTES)
        encrypted = self._keys[0].encrypt(nonce, jsonrpc.write(value), bound)
        text = base64url(nonce + encrypted)
        if len(text) > self._size:
            raise TooLarge(len(text), self._size)
        return text

    def open(self, text: object, bound: bytes) -> JsonObject | None:
        """Return the object; None unless one of the secrets sealed it for `bound`."""
        try:
            sealed = self._decode_sealed(text)
        except ValueError:
            return None
        return self._decrypt_sealed(sealed, bound)

    def _decode_sealed(self, text: object) -> bytes:
        """Return the bytes of a text; raise ValueError if it is not ours."""
        if not isinstance(text, str) or len(text) > self._size:
            raise ValueError("This text was never sealed.")
        return decode_base64url(text)

    def _decrypt_sealed(self, sealed: bytes, bound: bytes) -> JsonObject | None:
        nonce, encrypted = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        for key in self._keys:
            try:
                value = jsonrpc.read(key.decrypt(nonce, encrypted, bound))
            except (InvalidTag, ValueError, ParseError):
                continue
            return value if isinstance(value, dict) else None
        return None


def base64url(value: bytes) -> str:
    """Return bytes as base64url without padding (RFC 4648 §5)."""
    return urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes:
    """Return the bytes of a text; raise ValueError unless `base64url` writes it so.

    Without this check, several texts would decode to the same bytes, because foreign
    characters and spare bits are skipped.
    """
    value = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64url(value) != text:
        raise ValueError("This text is not as base64url writes it.")
    return value


# -- cursors ---------------------------------------------------------------------------

LARGEST = 1024
"""The most characters of a cursor."""

# The signed bytes start with their purpose, so that nothing else signed with this key
# can pass as a cursor.
_PURPOSE = b"mcp_app.cursor.1\0"
_DIGEST_SIZE = 32


@dataclass(frozen=True, slots=True)
class Cursor:
    """The entry before a page, by the list's order: position, then name."""

    server: str
    listing: str
    position: int
    name: str


def seal_cursor(cursor: Cursor, key: bytes) -> str:
    """Return the cursor as opaque text; ValueError if its name is too long."""
    fields = [cursor.server, cursor.listing, cursor.position, cursor.name]
    payload = jsonrpc.write(fields)
    text = base64url(_signature(payload, key) + payload)
    if len(text) > LARGEST:
        raise ValueError(
            f"The name {cursor.name[:40]!r}… does not fit into a cursor of "
            f"{LARGEST} characters."
        )
    return text


def open_cursor(
    text: str, keys: Sequence[bytes], *, server: str, listing: str
) -> Cursor:
    """Return the cursor that `seal_cursor` made for this list with one of `keys`.

    Raises InvalidParams, with one sentence for every reason.
    """
    try:
        sealed = decode_base64url(text) if len(text) <= LARGEST else b""
    except ValueError:
        sealed = b""
    signature, payload = sealed[:_DIGEST_SIZE], sealed[_DIGEST_SIZE:]
    if any(hmac.compare_digest(_signature(payload, key), signature) for key in keys):
        cursor = Cursor(*cast("list[Any]", jsonrpc.read(payload)))
        if (cursor.server, cursor.listing) == (server, listing):
            return cursor
    raise InvalidParams(
        "The cursor does not come from this list. List again without a cursor."
    )


def _signature(payload: bytes, key: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + payload, "sha256")
