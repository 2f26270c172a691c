"""Codes, access tokens and refresh tokens: how they look, and which are computed.

What is computed comes out alike however often it is asked for: who did not hear an
answer gets the same one again.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from secrets import token_urlsafe
from typing import Final

from mcp_app.protocol.sealing import derived_key

CODE: Final = "mcp_ac_"
ACCESS: Final = "mcp_at_"
REFRESH: Final = "mcp_rt_"
CLIENT: Final = "mcp_cl_"

_ACCESS: Final = re.compile(rf"{ACCESS}[A-Za-z0-9_-]{{43}}")
_REFRESH: Final = re.compile(rf"{REFRESH}([A-Za-z0-9_-]{{22}})([A-Za-z0-9_-]{{43}})")


def code_of(made_with: str, secret: str) -> str:
    """The code of one consent page, of 50 characters: the same for the same page."""
    return CODE + _hmac(secret, "oauth-code", made_with)


def new_access() -> str:
    """An access token that nobody has had before, of 50 characters."""
    return ACCESS + token_urlsafe(32)


def is_access(text: str) -> bool:
    """Whether it has the form of such an access token; other tokens are not as long."""
    return _ACCESS.fullmatch(text) is not None


def new_refresh() -> str:
    """The first refresh token of an app: 22 characters of its name, 43 of a secret."""
    return REFRESH + token_urlsafe(16) + token_urlsafe(32)


def refresh_parts(text: str) -> tuple[str, str] | None:
    """The name and the secret of a refresh token; None for what is none."""
    parts = _REFRESH.fullmatch(text)
    return (parts[1], parts[2]) if parts else None


def successor(text: str, secret: str) -> str:
    """The refresh token that follows this one, with the same name.

    Raises ValueError for what is no refresh token.
    """
    parts = refresh_parts(text)
    if parts is None:
        raise ValueError("This is no refresh token.")
    return REFRESH + parts[0] + _hmac(secret, "oauth-refresh", parts[1])


def _hmac(secret: str, purpose: str, text: str) -> str:
    key = derived_key(secret, purpose)
    return base64url(hmac.digest(key, text.encode(), "sha256"))


def base64url(value: bytes) -> str:
    """Bytes as base64url without padding (RFC 4648 §5)."""
    return urlsafe_b64encode(value).rstrip(b"=").decode("ascii")
