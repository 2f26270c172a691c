"""Tokens of external issuers: JWTs that somebody else signs (RFC 9068)."""

from __future__ import annotations

import binascii
import logging
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DataError
from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.caches import authentication_cache
from mcp_app.auth.issuer_keys import ALGORITHMS, KeySet, key_ends
from mcp_app.auth.issuer_options import (
    EMAIL,
    IssuerOptions,
    UnusableIssuer,
    read_options,
)
from mcp_app.auth.resources import is_audience, metadata_of
from mcp_app.auth.site_requests import insufficient_scope, principal_of_user
from mcp_app.interface.principal import (
    ISSUER,
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
    Scope,
)
from mcp_app.models.tokens import BEGINNING
from mcp_app.pools.database import authenticators
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.oauth.requests import CHANGE, READ

if TYPE_CHECKING:
    from jwt.types import Options


# -- tokens ----------------------------------------------------------------------------
# JWTs as access tokens (RFC 9068): which belong to an issuer, and which are valid.

SCHEME: Final = "bearer"
TOKEN_PARTS: Final = 3
LEEWAY_S: Final = 60
"""How much the clock of an issuer may differ from ours."""
TYPES: Final = frozenset({"at+jwt", "application/at+jwt", "jwt"})
ID_TOKEN: Final = "ID"  # noqa: S105 - what Keycloak calls tokens about a sign-in

_PYJWT: Final[Options] = {
    "require": ["exp", "iss", "sub", "aud"],
    "verify_aud": False,
    "enforce_minimum_key_length": True,
}
"""PyJWT compares audiences only as texts, so `_is_audience_for` checks them."""
_SENTENCES: Final = {
    "ExpiredSignatureError": "The token has expired.",
    "ImmatureSignatureError": "The token is not valid yet.",
    "InvalidKeyError": "The key of the token is too short.",
    "InvalidSignatureError": "The signature of the token is wrong.",
}


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class UnverifiedToken:
    """A token as it was sent, with its unverified claims; it has no repr."""

    text: str
    header: Mapping[str, Any]
    claims: Mapping[str, Any]


@sensitive_variables()
def token_from_headers(headers: Headers, issuer: str) -> UnverifiedToken | None:
    """Return the JWT in the headers if it names this issuer, else None."""
    scheme, _, text = (headers.get(b"authorization") or "").partition(" ")
    text = text.strip(" \t")
    parts = text.split(".")
    is_no_jwt = len(parts) != TOKEN_PARTS or text.startswith(BEGINNING)
    if scheme.lower() != SCHEME or is_no_jwt:
        return None
    header, claims = decode_part(parts[0]), decode_part(parts[1])
    if header is None or claims is None or claims.get("iss") != issuer:
        return None
    return UnverifiedToken(text, header, claims)


@sensitive_variables()
def decode_part(part: str) -> Mapping[str, Any] | None:
    """Return the JSON object that a part holds (RFC 7515, section 3), else None."""
    try:
        # JWTs leave out the padding of base64.
        filled = part + "=" * (-len(part) % 4)
        value = orjson.loads(b64decode(filled, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        return None
    return value if isinstance(value, dict) else None


async def verify(
    token: UnverifiedToken, options: IssuerOptions, keys: KeySet, server: str
) -> dict[str, Any]:
    """Return the claims of a token for a server (by its slug).

    Raises `AuthenticationFailed`, or `AuthenticationUnavailable` without its keys.
    """
    algorithm, kid = _checked_header(token)
    key = await keys.find(kid, algorithm)
    claims = signed_claims(token, key, algorithm, options.issuer)
    if not _is_audience_for(claims["aud"], options, server):
        raise AuthenticationFailed("The token is for another audience.")
    return claims


def _checked_header(token: UnverifiedToken) -> tuple[str, str | None]:
    """Return the algorithm and the name of the key; raises `AuthenticationFailed`.

    Other parameters of the header about the key (`jku`, `jwk`, `x5u`) are ignored.
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
def signed_claims(
    token: UnverifiedToken, key: Any, algorithm: str, issuer: str
) -> dict[str, Any]:
    """Return the claims of a token if its signature, issuer and times are right."""
    import jwt  # noqa: PLC0415 - an extra

    try:
        claims = jwt.decode(
            token.text, key, [algorithm], options=_PYJWT, issuer=issuer, leeway=LEEWAY_S
        )
    except jwt.MissingRequiredClaimError as error:
        raise AuthenticationFailed(f"The token has no {error.claim}.") from None
    except Exception as error:
        # Catch all errors that a token causes: frames of PyJWT would show the token.
        message = _SENTENCES.get(type(error).__name__, "The token is not valid.")
        raise AuthenticationFailed(message) from None
    if type(claims["exp"]) not in (int, float):
        raise AuthenticationFailed("The exp of the token is not a number.")
    return claims


def _is_audience_for(aud: object, options: IssuerOptions, server: str) -> bool:
    """Whether one of the audiences (RFC 7519, section 4.1.3) is the right one."""
    audiences = aud if isinstance(aud, list) else [aud]
    texts = [audience for audience in audiences if isinstance(audience, str)]
    if options.audience:
        return options.audience in texts
    return any(is_audience(text, server) for text in texts)


# -- users -----------------------------------------------------------------------------
# The user of the site whom the claims of a verified token name.  No user is created.

NO_USER_MESSAGE: Final = "This site has no user for the token."
MAX_ROWS: Final = 100
"""How many rows that a database calls equal are compared exactly."""


def find_user(options: IssuerOptions, claims: Mapping[str, Any]) -> Any:
    """Return the user, active or not; blocks, raises `AuthenticationFailed`."""
    value = claims.get(options.claim)
    if not isinstance(value, str) or not value:
        raise AuthenticationFailed(f"The token has no {options.claim}.")
    if options.claim == EMAIL and claims.get("email_verified") is not True:
        raise AuthenticationFailed("The e-mail address of the token is not verified.")
    if options.user is None:
        return _by_column(options, value)
    user = options.user(dict(claims))
    if user is None:
        raise AuthenticationFailed(NO_USER_MESSAGE)
    return user


def _by_column(options: IssuerOptions, value: str) -> Any:
    """Return the one user whose column is the value, character by character.

    A database with a tolerant collation finds other users, too.
    """
    normalized = _ascii_lower if options.claim == EMAIL else str
    lookup = "iexact" if options.claim == EMAIL else "exact"
    users = get_user_model()._default_manager
    try:
        rows = list(users.filter(**{f"{options.field}__{lookup}": value})[:MAX_ROWS])
    except (DataError, TypeError, ValueError, ValidationError):
        # No row can have such a value: a text that is no number, or that has a NUL.
        rows = []
    values = [normalized(str(getattr(row, options.field))) for row in rows]
    if values.count(normalized(value)) != 1:
        raise AuthenticationFailed(NO_USER_MESSAGE)
    return rows[values.index(normalized(value))]


def _ascii_lower(text: str) -> str:
    """Return a text in lower case if it is ASCII, else unchanged."""
    return text.lower() if text.isascii() else text


# -- way -------------------------------------------------------------------------------
# The way in for tokens of an external issuer.

MAX_CLIENT_LENGTH: Final = 200
"""Characters of the name of a client."""

Authenticate: TypeAlias = Callable[[AuthenticationRequest], Awaitable[Principal | None]]

logger = logging.getLogger("mcp_app.auth")


def issuer(name: str, options: Mapping[str, Any]) -> Authenticate:
    """Return the function that authenticates by an entry of `MCP["AUTHENTICATION"]`.

    `options` are those of docs/settings.md.  If one of them is wrong, the entry lets
    nobody in; the system check and the log say why.
    """
    try:
        return IssuerWay(read_options(name, options)).authenticate
    except UnusableIssuer as error:
        logger.error('MCP["AUTHENTICATION"][%r] %s', name, error)
        return _let_nobody_in


async def _let_nobody_in(_request: AuthenticationRequest) -> Principal | None:
    return None


class IssuerWay:
    """Authenticates by the tokens of one issuer."""

    def __init__(self, options: IssuerOptions) -> None:
        self._options = options
        self._keys = KeySet(options)

    async def authenticate(self, request: AuthenticationRequest) -> Principal | None:
        """Return the principal of the issuer's token, None if there is no such token.

        Raises `AuthenticationFailed`, `AuthenticationUnavailable`, or `RequestRefused`
        (403) if the token allows nothing here.
        """
        token = token_from_headers(request.headers, self._options.issuer)
        if token is None:
            return None
        ask = partial(self._verified_answer, token, request.server)
        try:
            answer = await authentication_cache.find_or_authenticate(
                self._options.name, request, ask
            )
            # The second member is the token's end: if it is past, verify it again.
            if answer[1] <= time.time():
                answer = await ask()
        except AuthenticationFailed as error:
            logger.info("A token of %r was refused: %s", self._options.name, error)
            raise
        principal, ends = answer
        key_ends.note_key_end(principal.key, ends + LEEWAY_S)
        return principal

    async def _verified_answer(
        self, token: UnverifiedToken, server: str
    ) -> tuple[Principal, float]:
        """Return the principal of a token, and when the token ends (Unix time)."""
        claims = await verify(token, self._options, self._keys, server)
        scope = self._token_scope(claims, server)
        user = await authenticators.run(find_user, self._options, claims)
        client = claims.get("azp") or claims.get("client_id")
        if not isinstance(client, str) or not client.isprintable():
            client = ""
        client = f"{self._options.name} {client}".strip()[:MAX_CLIENT_LENGTH]
        principal = principal_of_user(user, kind=ISSUER, client=client)
        principal = replace(principal, scopes=scopes_of(claims), scope=scope)
        return principal, claims["exp"]

    def _token_scope(self, claims: Mapping[str, Any], server: str) -> Scope | None:
        if not self._options.scopes:
            return None
        scopes = scopes_of(claims)
        if scopes.isdisjoint((READ, CHANGE)):
            message = f"The token has neither the scope {READ} nor {CHANGE}."
            raise insufficient_scope(message, READ, metadata_of(server))
        return None if CHANGE in scopes else Scope(read_only=True)


def scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of a token, from `scope` (RFC 8693, section 4.2) or `scp`.

    Issuers write them as one text, or as a list.
    """
    scopes = claims.get("scope", claims.get("scp", ""))
    listed = scopes if isinstance(scopes, list) else str(scopes).split()
    return frozenset(each for each in listed if isinstance(each, str))
