"""From a request to its principal, by the entries of `MCP["AUTHENTICATION"]`.

It fails closed: a server that is not public answers 401 if no entry authenticates the
request, and a name that the settings do not have closes the server.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import logging
import re
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Final

from django.db import Error as DatabaseError

from mcp_app.auth import token_cache
from mcp_app.auth.authenticators import (
    Authenticator,
    Unusable,
    authenticators_of,
    issuers_of,
)
from mcp_app.auth.caches import authentication_cache
from mcp_app.auth.resources import metadata_url, site_origin
from mcp_app.auth.site_requests import WRONG, unauthenticated_refusal
from mcp_app.auth.token_cache import TokenEntry, access_token
from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
    ACCESS_TOKEN,
    RESERVED_KINDS,
    AuthenticationFailed,
    AuthenticationRequest,
    AuthenticationUnavailable,
    Principal,
)
from mcp_app.interface.server import ServerDefinition
from mcp_app.pools.connections import is_outage
from mcp_app.pools.database import HANGS_S, RETRY_SECONDS, TELL_EVERY_S, authenticators
from mcp_app.protocol.errors import ProtocolError, Unavailable
from mcp_app.protocol.headers import Headers

# -- outages ---------------------------------------------------------------------------
# If the service behind an authenticator is down, the answer is 503, not 401.
#
# On 401, clients throw away their tokens and sessions.

logger = logging.getLogger("mcp_app.auth")

NETWORK: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("EADDRNOTAVAIL", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETRESET"),
        *("ENETUNREACH", "ENOTCONN", "EMFILE", "ENFILE"),
    )
    if hasattr(errno, name)
)
"""Errors of sockets for which Python has no class."""

_reported_at = float("-inf")


def outage_answer(error: Exception) -> Unavailable | None:
    """Return the 503 if an error means an outage; None if it is a fault.

    Libraries raise their own errors from that of the socket, so the causes of an error
    are examined, too.
    """
    if isinstance(error, AuthenticationUnavailable):
        _log_outage(error)
        return Unavailable(_OUTAGE_MESSAGE, retry_after=error.retry_after)
    if any(map(_means_outage, _error_chain(error))):
        _log_outage(error)
        return Unavailable(_OUTAGE_MESSAGE, retry_after=RETRY_SECONDS)
    return None


_OUTAGE_MESSAGE: Final = (
    "Authentication is not available at the moment. Try again later."
)


def _means_outage(error: BaseException) -> bool:
    if isinstance(error, DatabaseError):
        return is_outage(error)
    if isinstance(error, ConnectionError | TimeoutError | ssl.SSLError):
        return True
    if isinstance(error, socket.gaierror | socket.herror):
        return True
    return isinstance(error, OSError) and error.errno in NETWORK


def _error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all its causes and contexts, hidden ones as well."""
    visited: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in visited:
            continue
        visited.add(id(current))
        yield current
        waiting += (current.__context__, current.__cause__)
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions


def _log_outage(error: Exception) -> None:
    """Log the types of errors, but not for each request: messages may hold secrets."""
    global _reported_at  # noqa: PLW0603 - one per OS process is what this is
    now = time.monotonic()
    if now - _reported_at >= TELL_EVERY_S:
        _reported_at = now
        kinds = " from ".join(type(each).__qualname__ for each in _error_chain(error))
        logger.warning("Authentication is not available: %s.", kinds)


# -- principals ------------------------------------------------------------------------


async def find_principal(
    server: ServerDefinition, request: AuthenticationRequest
) -> Principal:
    """Return the principal of a request; raise 401 if no entry authenticates it."""
    if server.is_public:
        return Principal.ANONYMOUS
    for each in _authenticators(server):
        try:
            principal = await _authenticate_request(each, request)
        except AuthenticationFailed as error:
            message = str(error) or "Authentication failed."
            metadata = metadata_for(server, request)
            raise unauthenticated_refusal(message, WRONG, metadata=metadata) from None
        if principal is not None:
            return principal
    metadata = metadata_for(server, request)
    header = request.headers.get(b"authorization") or ""
    message = _required_sentence(server, header, signs_in=bool(metadata))
    raise unauthenticated_refusal(message, metadata=metadata)


def lets_anyone_in(server: ServerDefinition) -> bool:
    """Return whether a server is public, or has authenticators that are usable."""
    try:
        return server.is_public or bool(_authenticators(server))
    except Unusable:
        return False


def metadata_for(server: ServerDefinition, request: AuthenticationRequest) -> str:
    """Return the URL of the metadata that names the token issuers, "" for none."""
    origin = site_origin(request.scheme, request.host)
    if origin is None or not issuers_of(_authenticators(server), origin):
        return ""
    return metadata_url(origin, request.path)


_MISTAKES: Final = (
    (r"[\"']|bearer\s+[\"']", "has quotation marks"),
    (r"bearer\s+bearer\b", "has “Bearer” twice"),
    (r"bearer\b", "has something after “Bearer” that is no token of this site"),
    (r"basic\b", "has “Basic”, for a name and a password"),
    ("mcp_", "lacks “Bearer” before the token"),
    (".", "does not begin with “Bearer”"),
)
"""How an Authorization header begins, and what is wrong with it."""


def _required_sentence(server: ServerDefinition, header: str, *, signs_in: bool) -> str:
    ways = ["sign in"] if signs_in else []
    mistakes: list[str] = []
    if any(each.authenticate is access_token for each in _authenticators(server)):
        ways.append("send an access token: “Authorization: Bearer mcp_…”")
        words = (text for begin, text in _MISTAKES if re.match(begin, header, re.I))
        # Only the first mistake is named.
        mistakes = [f" Your header {text}." for text in islice(words, 1)]
    advice = ", or ".join(ways)
    advice = f" {advice[0].upper()}{advice[1:]}." if ways else ""
    return f"Authentication is required.{advice}{''.join(mistakes)}"


def cached_token(
    server: ServerDefinition, headers: Headers
) -> tuple[TokenEntry, float] | None:
    """Return the cached token of a request, and when it gets too old (monotonic).

    None if the principal must be looked up.  Only tokens of this site are cached here,
    and only if no other kind of authenticator comes before.
    """
    for each in _authenticators(server):
        if each.kind != ACCESS_TOKEN:
            return None
        cached = token_cache.cached_token(
            server.slug, headers, of_app=each.offers_sign_in
        )
        if cached is not None:
            return cached
    return None


def _authenticators(server: ServerDefinition) -> Sequence[Authenticator]:
    """Return the authenticators in their order; none if a name is unknown."""
    ways = authenticators_of(server.access)
    if ways is None:
        configured = mcp_settings.authentication
        lacking = (name for name in server.access if name not in configured)
        _tell_closed(server.slug, ", ".join(map(repr, lacking)))
        return ()
    return ways


@cache
def _tell_closed(slug: str, names: str) -> None:
    """Log a closed server once, not for each request."""
    logger.error(
        'The server %r lets nobody in, because MCP["AUTHENTICATION"] has no %s.',
        slug,
        names,
    )


async def _authenticate_request(
    each: Authenticator, request: AuthenticationRequest
) -> Principal | None:
    """Return the principal, None if the request is not for `each`; raise 401 or 503."""
    try:
        if each.keeps:
            ask = partial(_ask_authenticator, each, request)
            return await authentication_cache.find_or_authenticate(
                each.name, request, ask
            )
        return await _ask_authenticator(each, request)
    except (AuthenticationFailed, ProtocolError):
        raise
    except Exception as error:
        if (away := outage_answer(error)) is None:
            raise
        raise away from error


async def _ask_authenticator(
    each: Authenticator, request: AuthenticationRequest
) -> Principal | None:
    result: object
    if each.is_async:
        result = each.authenticate(request)
    else:
        result = await authenticators.run(each.authenticate, request)
    if inspect.isawaitable(result):
        # Our own authenticators limit how long they wait for the database.
        async with asyncio.timeout(None if each.kind and each.is_async else HANGS_S):
            result = await result
    return _valid_principal(each, result)


def _valid_principal(each: Authenticator, result: object) -> Principal | None:
    """Return a valid result; raise if it has a wrong type or a reserved kind."""
    if result is None:
        return None
    if not isinstance(result, Principal):
        raise TypeError(
            f"{each.authenticate!r} returned {result!r}: it must return a Principal or"
            " None."
        )
    if result.kind != each.kind and result.kind in RESERVED_KINDS:
        raise ValueError(
            f"{each.authenticate!r} returned a Principal of the kind {result.kind!r},"
            " which is reserved: it would get access to sessions of others."
        )
    return result
