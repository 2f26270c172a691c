"""The sealed state of a multi round-trip request (2026-07-28, basic/patterns/mrtr).

AES-256-GCM under keys derived from the site's; bound to principal, server, method,
target and arguments as associated data, so that state presented elsewhere fails like
state that was altered.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams, ParseError
from mcp_app.protocol.json_types import JsonObject

FORMAT = 1
NONCE_BYTES = 12
REFUSED = "The request state is not valid for this request, or has expired."


def derived_key(secret: str, purpose: str) -> bytes:
    """Derive a key of 32 bytes from a secret of the site (RFC 5869)."""
    kdf = HKDF(SHA256(), length=32, salt=None, info=f"mcp_app:{purpose}".encode())
    return kdf.derive(secret.encode())


@dataclass(frozen=True, slots=True)
class AnsweredQuestions:
    """An answer of an earlier round and the digest of the question that it answers."""

    digest: str
    result: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """The state in a retry: digests of open questions and earlier answers.

    `round_trip` names the whole conversation: `once` steps belong to it.
    """

    round_trip: str
    asked: dict[str, str] = field(default_factory=dict)
    answered: dict[str, AnsweredQuestions] = field(default_factory=dict)


def binding(
    principal: str, server: str, method: str, target: str, arguments: object
) -> bytes:
    """Return the associated data that a state is bound to."""
    digest = sha256(jsonrpc.canonical(arguments)).hexdigest()
    return jsonrpc.canonical([principal, server, method, target, digest])


class StateSealer:
    """Seals with the first key; opens with any, so that keys can be rotated."""

    def __init__(self, secrets: Sequence[str], *, age: float, size: int) -> None:
        self._keys = [AESGCM(derived_key(each, "request-state")) for each in secrets]
        self._age_ms = int(age * 1000)
        self._size = size

    def seal(self, state: RequestState, bound: bytes, now_ms: int) -> str:
        """Return an opaque string; raise ValueError if it would be too large."""
        payload = jsonrpc.write(
            {
                "v": FORMAT,
                "r": state.round_trip,
                "e": now_ms + self._age_ms,
                "q": state.asked,
                "a": {
                    key: [each.digest, each.result]
                    for key, each in state.answered.items()
                },
            }
        )
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + self._keys[0].encrypt(nonce, payload, bound)
        text = urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii")
        if len(text) > self._size:
            raise ValueError(
                f"The answers so far need {len(text)} bytes of request state; at most"
                f" {self._size} are allowed."
            )
        return text

    def open(self, text: object, bound: bytes, now_ms: int) -> RequestState:
        """Return the state; every failure is the same `InvalidParams`."""
        payload = self._decrypted(self._decoded(text), bound)
        if payload is None or payload["v"] != FORMAT or payload["e"] <= now_ms:
            raise InvalidParams(REFUSED)
        return RequestState(
            round_trip=payload["r"],
            asked=payload["q"],
            answered={
                key: AnsweredQuestions(digest, result)
                for key, (digest, result) in payload["a"].items()
            },
        )

    def _decoded(self, text: object) -> bytes:
        if not isinstance(text, str) or len(text) > self._size or not text.isascii():
            raise InvalidParams(REFUSED)
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            raise InvalidParams(REFUSED) from None
        # Several texts decode to the same bytes; only ours is accepted.
        if urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii") != text:
            raise InvalidParams(REFUSED)
        return sealed

    def _decrypted(self, sealed: bytes, bound: bytes) -> JsonObject | None:
        nonce, encrypted = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        for key in self._keys:
            try:
                payload = jsonrpc.read(key.decrypt(nonce, encrypted, bound))
            except (InvalidTag, ValueError, ParseError):
                continue
            return payload if isinstance(payload, dict) else None
        return None
