"""A program with a key of its own: its row, and what it signs."""

from __future__ import annotations

import json
import time
from typing import Any, Final
from uuid import uuid4

import jwt

from tests.auth.issuers.loopback_issuer import private_key
from tests.oauth.program import ORIGIN
from tests.secrecy import note

JWK: Final = "ES256"


def assertion(
    client_id: str,
    *,
    algorithm: str = JWK,
    key: str = "one",
    header: dict[str, Any] | None = None,
    **claims: Any,
) -> str:
    """Return what a program signs; None takes a claim away."""
    usual = {
        "iss": client_id,
        "sub": client_id,
        "aud": ORIGIN,
        "exp": int(time.time()) + 300,
        "jti": str(uuid4()),
        **claims,
    }
    whole = {name: value for name, value in usual.items() if value is not None}
    plain = json.dumps(whole).encode()
    signer = private_key(algorithm, key)
    made = jwt.PyJWS().encode(plain, signer, algorithm, headers=header)
    note(made)
    return made
