"""Proof that who exchanges a code is who asked for it (RFC 7636, S256 alone)."""

from __future__ import annotations

import re
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from mcp_app.protocol.oauth.texts import base64url

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def is_challenge(text: str) -> bool:
    """Whether it has the form of an S256 challenge: 43 characters (§4.2)."""
    return _CHALLENGE.fullmatch(text) is not None


def is_verifier(text: str) -> bool:
    """Whether it has the form of a verifier: 43 to 128 characters (§4.1)."""
    return _VERIFIER.fullmatch(text) is not None


def fits(challenge: str, verifier: str) -> bool:
    """Whether a verifier is the one of a challenge, told in constant time (§4.6)."""
    if not (is_challenge(challenge) and is_verifier(verifier)):
        return False
    return compare_digest(base64url(sha256(verifier.encode()).digest()), challenge)
