"""A program with a key of its own: its row, and what it signs."""

from __future__ import annotations

import json
import time
from typing import Any, Final
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives import serialization

from mcp_app.models import AccessToken
from mcp_app.protocol.oauth.requests import ASSERTION_TYPE
from tests.auth.issuers.loopback_issuer import private_key, public_jwk
from tests.oauth.program import ORIGIN, RESOURCE
from tests.secrecy import note

JWK: Final = "ES256"


def program_row(algorithm: str = JWK, **columns: Any) -> AccessToken:
    key = json.dumps(public_jwk(algorithm))
    return AccessToken.objects.make(name="a job", public_key=key, **columns)[0]


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


def form(signed: str, **changes: str) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": signed,
        "resource": RESOURCE,
        "client_id": "",
        **changes,
    }


def pem(key: Any, *, private: bool = False) -> str:
    encoding = serialization.Encoding.PEM
    if private:
        kind = serialization.PrivateFormat.PKCS8
        plain = serialization.NoEncryption()
        return str(key.private_bytes(encoding, kind, plain).decode())
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(key.public_key().public_bytes(encoding, info).decode())
