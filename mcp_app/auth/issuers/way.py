"""The way in for tokens of an external issuer."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from mcp_app.auth.challenge import insufficient_scope
from mcp_app.auth.issuers.key_ends import key_ends
from mcp_app.auth.issuers.key_sets import KeySet
from mcp_app.auth.issuers.options import IssuerOptions, UnusableIssuer, read_options
from mcp_app.auth.issuers.tokens import LEEWAY_S, UnverifiedToken, token_of, verify
from mcp_app.auth.issuers.users import find_user
from mcp_app.auth.resources import metadata_of
from mcp_app.auth.result_cache import authentication_cache
from mcp_app.auth.site_requests import let_in
from mcp_app.interface.principal import (
    ISSUER,
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
    Scope,
)
from mcp_app.pools.database import authenticators
from mcp_app.protocol.oauth.authorization import CHANGE, READ

MOST_CLIENT: Final = 200
"""Characters of the name of a client."""

Authenticate: TypeAlias = Callable[[AuthenticationRequest], Awaitable[Principal | None]]

logger = logging.getLogger("mcp_app.auth")


def issuer(name: str, options: Mapping[str, Any]) -> Authenticate:
    """Return what authenticates by an entry of `MCP["AUTHENTICATION"]`.

    `options` are those of docs/settings.md.  With wrong ones nobody is let in by it;
    the system check says why, and so does the log.
    """
    try:
        return IssuerWay(read_options(name, options)).authenticate
    except UnusableIssuer as error:
        logger.error('MCP["AUTHENTICATION"][%r] %s', name, error)
        return _let_nobody_in


async def _let_nobody_in(_request: AuthenticationRequest) -> Principal | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Who shows a token, and when the token ends (Unix time)."""

    principal: Principal
    ends: float


class IssuerWay:
    """Authenticates by the tokens of one issuer."""

    def __init__(self, options: IssuerOptions) -> None:
        self._options = options
        self._keys = KeySet(options)

    async def authenticate(self, request: AuthenticationRequest) -> Principal | None:
        """Return whom a token of the issuer means, None without one.

        Raises `AuthenticationFailed`, `AuthenticationUnavailable`, or Refused (403)
        for a token that allows nothing here.
        """
        token = token_of(request.headers, self._options.issuer)
        if token is None:
            return None
        ask = partial(self._asked, token, request.server)
        try:
            answer = await authentication_cache.find(self._options.name, request, ask)
            if answer.ends <= time.time():
                answer = await ask()
        except AuthenticationFailed as error:
            logger.info("A token of %r was refused: %s", self._options.name, error)
            raise
        key_ends.note(answer.principal.key, answer.ends + LEEWAY_S)
        return answer.principal

    async def _asked(self, token: UnverifiedToken, server: str) -> Answer:
        claims = await verify(token, self._options, self._keys, server)
        scope = self._scope(claims, server)
        user = await authenticators.run(find_user, self._options, claims)
        known = let_in(user, kind=ISSUER, client=self._client(claims))
        principal = replace(known, scopes=scopes_of(claims), scope=scope)
        return Answer(principal=principal, ends=claims["exp"])

    def _scope(self, claims: Mapping[str, Any], server: str) -> Scope | None:
        if not self._options.scopes:
            return None
        given = scopes_of(claims)
        if given.isdisjoint((READ, CHANGE)):
            message = f"The token has neither the scope {READ} nor {CHANGE}."
            raise insufficient_scope(message, READ, metadata_of(server))
        return None if CHANGE in given else Scope(read_only=True)

    def _client(self, claims: Mapping[str, Any]) -> str:
        """Return the name of the entry, with that of the issuer's client."""
        given = claims.get("azp") or claims.get("client_id")
        named = isinstance(given, str) and given.isprintable()
        return f"{self._options.name} {given if named else ''}".strip()[:MOST_CLIENT]


def scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of a token, by `scope` (RFC 8693, section 4.2) or `scp`.

    Issuers write them as one text, or as a list.
    """
    given = claims.get("scope", claims.get("scp", ""))
    listed = given if isinstance(given, list) else str(given).split()
    return frozenset(each for each in listed if isinstance(each, str))
