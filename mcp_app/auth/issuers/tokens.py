"""JWTs as access tokens (RFC 9068): which are an issuer's, and which are good."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.issuers.key_sets import ALGORITHMS, KeySet
from mcp_app.auth.issuers.options import IssuerOptions
from mcp_app.auth.resources import is_audience
from mcp_app.interface.principal import AuthenticationFailed
from mcp_app.models.tokens import BEGINNING
from mcp_app.protocol.headers import Headers

if TYPE_CHECKING:
    from jwt.types import Options

SCHEME: Final = "bearer"
PARTS: Final = 3
LEEWAY_S: Final = 60
"""Clocks of others may be wrong by so much."""
TYPES: Final = frozenset({"at+jwt", "application/at+jwt", "jwt"})
ID_TOKEN: Final = "ID"  # noqa: S105 - what Keycloak calls tokens about a sign-in

_PYJWT: Final[Options] = {
    "require": ["exp", "iss", "sub", "aud"],
    "verify_aud": False,
    "enforce_minimum_key_length": True,
}
"""Which audiences are good is not told by equal texts alone: `_is_for` looks."""
_SENTENCES: Final = {
    "ExpiredSignatureError": "The token has expired.",
    "ImmatureSignatureError": "The token is not valid yet.",
    "InvalidKeyError": "The key of the token is too short.",
    "InvalidSignatureError": "The signature of the token is wrong.",
}


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class UnverifiedToken:
    """A token as it came, and what it says of itself; it has no repr."""

    text: str
    header: Mapping[str, Any]
    claims: Mapping[str, Any]


@sensitive_variables()
def token_of(headers: Headers, issuer: str) -> UnverifiedToken | None:
    """Return the JWT in the headers that says to be of an issuer, None for others."""
    scheme, _, text = (headers.get(b"authorization") or "").partition(" ")
    text = text.strip(" \t")
    parts = text.split(".")
    is_other = len(parts) != PARTS or text.startswith(BEGINNING)
    if scheme.lower() != SCHEME or is_other:
        return None
    header, claims = _object(parts[0]), _object(parts[1])
    if header is None or claims is None or claims.get("iss") != issuer:
        return None
    return UnverifiedToken(text, header, claims)


@sensitive_variables()
def _object(part: str) -> Mapping[str, Any] | None:
    """Return the JSON object of a part (RFC 7515, section 3), None if it is none."""
    try:
        filled = part + "=" * (-len(part) % 4)
        found = orjson.loads(b64decode(filled, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        return None
    return found if isinstance(found, dict) else None


async def verify(
    token: UnverifiedToken, options: IssuerOptions, keys: KeySet, server: str
) -> dict[str, Any]:
    """Return the claims of a token for a server (by its slug).

    Raises `AuthenticationFailed`, or `AuthenticationUnavailable` without keys.
    """
    algorithm, kid = _checked_header(token)
    key = await keys.find(kid, algorithm)
    claims = _signed_claims(token, key, algorithm, options.issuer)
    if not _is_for(claims["aud"], options, server):
        raise AuthenticationFailed("The token is for another audience.")
    return claims


def _checked_header(token: UnverifiedToken) -> tuple[str, str | None]:
    """Return the algorithm and the name of the key; raises `AuthenticationFailed`.

    What else the header says of its key (`jku`, `jwk`, `x5u`) is not looked at.
    """
    header, claims = token.header, token.claims
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise AuthenticationFailed("The algorithm of the token is not accepted.")
    if not isinstance(kid, str | None) or "crit" in header:
        raise AuthenticationFailed("The header of the token is not accepted.")
    if kind is not None and str(kind).lower() not in TYPES:
        raise AuthenticationFailed("The type of the token is not accepted.")
    is_about_sign_in = "nonce" in header or "nonce" in claims
    if is_about_sign_in or claims.get("typ") == ID_TOKEN:
        raise AuthenticationFailed("This is an ID token. Send an access token.")
    return algorithm, kid


@sensitive_variables()
def _signed_claims(
    token: UnverifiedToken, key: Any, algorithm: str, issuer: str
) -> dict[str, Any]:
    import jwt  # noqa: PLC0415 - an extra

    try:
        claims = jwt.decode(
            token.text,
            key,
            algorithms=[algorithm],
            options=_PYJWT,
            issuer=issuer,
            leeway=LEEWAY_S,
        )
    except jwt.MissingRequiredClaimError as error:
        raise AuthenticationFailed(f"The token has no {error.claim}.") from None
    except Exception as error:
        # Whatever a token leads to: frames of PyJWT would show it.
        said = _SENTENCES.get(type(error).__name__, "The token is not valid.")
        raise AuthenticationFailed(said) from None
    if type(claims["exp"]) not in (int, float):
        raise AuthenticationFailed("The exp of the token is not a number.")
    return claims


def _is_for(aud: object, options: IssuerOptions, server: str) -> bool:
    """Whether one of the audiences (RFC 7519, section 4.1.3) is the right one."""
    given = aud if isinstance(aud, list) else [aud]
    texts = [each for each in given if isinstance(each, str)]
    if options.audience:
        return options.audience in texts
    return any(is_audience(each, server) for each in texts)
