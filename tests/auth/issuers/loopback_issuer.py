"""An issuer on loopback: metadata and keys over HTTP, and tokens that it signs."""

from __future__ import annotations

import base64
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from mcp_app.auth.issuer_options import IssuerOptions, read_options
from tests.secrecy import note

LOOPBACK: Final = ["127.0.0.1/32"]
AUDIENCE: Final = "https://shop.example.com/mcp/by-issuer"
RFC_8414: Final = "/.well-known/oauth-authorization-server/realms/staff"
OPENID: Final = "/realms/staff/.well-known/openid-configuration"
KEYS: Final = "/keys"

Found = dict[str, Any] | list[Any] | bytes | int
"""A document, bytes that are none, or a status."""


def private_key(algorithm: str, name: str = "one") -> Any:
    """Return a key of a name, made once; those of RSA sign by several algorithms."""
    return _made("RSA" if algorithm[0] in "RP" else algorithm, name)


@cache
def _made(kind: str, name: str) -> Any:
    if kind == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    if kind == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    size = 1_024 if name == "short" else 2_048
    return rsa.generate_private_key(public_exponent=65_537, key_size=size)


def public_jwk(algorithm: str, name: str = "one", **changes: Any) -> dict[str, Any]:
    """Return the public part of a key, as a set has it; None takes a member away."""
    made = get_default_algorithms()[algorithm]
    public = private_key(algorithm, name).public_key()
    whole = json.loads(str(made.to_jwk(public)))
    # PyJWT writes operations, most issuers write the use.
    whole = {**whole, "use": "sig", "kid": f"{algorithm} {name}", **changes}
    whole.pop("key_ops", None)
    return {key: value for key, value in whole.items() if value is not None}


@dataclass
class LoopbackIssuer:
    """What it serves by path, and what it was asked for; it may be away."""

    port: int = 0
    documents: dict[str, Found] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/realms/staff"

    def metadata(self, **changes: Any) -> dict[str, Any]:
        return {"issuer": self.url, "jwks_uri": f"{self.origin}{KEYS}", **changes}

    def serve_keys(self, *keys: dict[str, Any]) -> None:
        self.documents[KEYS] = {"keys": [*keys]}

    def entry(self, **changes: Any) -> dict[str, Any]:
        """Return the entry of the settings; None takes an option away."""
        given = {
            "path": "mcp_app.authentication.issuer",
            "issuer": self.url,
            "claim": "sub",
            "field": "username",
            "networks": LOOPBACK,
            **changes,
        }
        return {key: value for key, value in given.items() if value is not None}

    def options(self, **changes: Any) -> IssuerOptions:
        given = self.entry(**{"audience": AUDIENCE, **changes})
        return read_options("keycloak", given)

    def token(
        self,
        algorithm: str = "ES256",
        name: str = "one",
        *,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Return a token for ana; None takes a claim, or a part of the header, away."""
        whole = {
            "iss": self.url,
            "sub": "ana",
            "aud": AUDIENCE,
            "exp": int(time.time()) + 300,
            "client_id": "cursor",
            "scope": "mcp:read mcp:change",
            **claims,
        }
        claims = {key: value for key, value in whole.items() if value is not None}
        given = {"typ": "at+jwt", "kid": f"{algorithm} {name}", **(header or {})}
        # Without any PyJWT writes a type of its own.
        headers = {
            key: value
            for key, value in given.items()
            if value is not None or key == "typ"
        }
        key = private_key(algorithm, name)
        with warnings.catch_warnings():
            # One of the keys is short.
            warnings.simplefilter("ignore")
            made = jwt.encode(claims, key, algorithm, headers=headers)
        note(made)
        return made

    def id_jag(self, name: str = "one", **changes: Any) -> str:
        """Return what a company says of ana, for the client "claude"."""
        header = {"typ": "oauth-id-jag+jwt", **changes.pop("header", {})}
        usual = {
            "aud": "https://shop.example.com",
            "resource": "https://shop.example.com/mcp/support",
            "client_id": "claude",
            "iat": int(time.time()),
            "jti": str(uuid4()),
        }
        return self.token("ES256", name, header=header, **{**usual, **changes})

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"issuer": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self.port = self._server.server_address[1]
        serve: Callable[[], None] = self._server.serve_forever
        threading.Thread(target=lambda: _quick(serve), daemon=True).start()

    def stop(self) -> None:
        """Go away: nobody listens any more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _quick(serve: Callable[..., None]) -> None:
    serve(poll_interval=0.005)


class _Handler(BaseHTTPRequestHandler):
    issuer: LoopbackIssuer

    def do_GET(self) -> None:
        self.issuer.requests.append(self.path)
        found = self.issuer.documents.get(self.path, 404)
        status = found if isinstance(found, int) else 200
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"{self.issuer.origin}{OPENID}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def loopback_issuer() -> Iterator[LoopbackIssuer]:
    """Serve an issuer with its metadata by OpenID Connect and one key of ES256."""
    issuer = LoopbackIssuer()
    issuer.start()
    issuer.documents[OPENID] = issuer.metadata()
    issuer.serve_keys(public_jwk("ES256"))
    try:
        yield issuer
    finally:
        issuer.stop()


def encoded(part: dict[str, Any] | bytes) -> str:
    plain = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(plain).rstrip(b"=").decode()
