"""From a request to its principal, by the entries of `MCP["AUTHENTICATION"]`.

It fails closed: a server that is not public answers 401 where nobody authenticates,
and a name that the settings lack closes the server.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Sequence
from functools import cache, partial
from typing import cast

from mcp_app.auth import tokens
from mcp_app.auth.challenge import WRONG, unauthenticated
from mcp_app.auth.kept import answers
from mcp_app.auth.outages import outage
from mcp_app.auth.ways import Way, ways
from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
    RESERVED_KINDS,
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
)
from mcp_app.interface.server import ServerDefinition
from mcp_app.pools.database import HANGS_S, authenticators
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.headers import Headers

logger = logging.getLogger("mcp_app.auth")


async def principal(
    server: ServerDefinition, request: AuthenticationRequest
) -> Principal:
    """Return who is asking; raise 401 where nobody may ask like this."""
    if server.public:
        return Principal.ANONYMOUS
    for each in _ways(server):
        found = await _authenticated(each, request)
        if found is not None:
            return found
    raise unauthenticated("Authentication is needed.")


def known(server: ServerDefinition, headers: Headers) -> Principal | None:
    """Return who is asking where that is known at once, None where it is to be asked.

    So it is where the first way in is an access token that was shown before.
    """
    first = next(iter(_ways(server)), None)
    if first is not None and first.authenticate is tokens.access_token:
        return tokens.known(headers, server.slug)
    return None


def _ways(server: ServerDefinition) -> Sequence[Way]:
    """Return the ways in, in their order; none where a name is unknown."""
    found = ways(server.access)
    if found is None:
        there = mcp_settings.authentication
        lacking = (name for name in server.access if name not in there)
        _tell_closed(server.slug, ", ".join(map(repr, lacking)))
        return ()
    return found


@cache
def _tell_closed(slug: str, names: str) -> None:
    """Log it once, not for each request."""
    logger.error(
        "The server %r is closed: the settings have no authentication %s.", slug, names
    )


async def _authenticated(each: Way, request: AuthenticationRequest) -> Principal | None:
    """Return whom a way lets in, None for "not mine"; raise 401 or 503."""
    try:
        if each.keeps:
            ask = partial(_asked, each, request)
            return await answers.of(each.name, request, ask)
        return await _asked(each, request)
    except AuthenticationFailed as error:
        raise unauthenticated(str(error) or "Authentication failed.", WRONG) from None
    except ProtocolError:
        raise
    except Exception as error:
        if (away := outage(error)) is None:
            raise
        raise away from error


async def _asked(each: Way, request: AuthenticationRequest) -> Principal | None:
    found: object
    if each.kind and each.is_async:
        # What is ours waits for the database, and for no longer than that may take.
        found = await cast("Awaitable[object]", each.authenticate(request))
    elif each.is_async:
        found = await _soon(each.authenticate(request))
    else:
        found = await _soon(await authenticators.run(each.authenticate, request))
    return _checked(each, found)


async def _soon(answer: object) -> object:
    """Return what a coroutine says, who raises TimeoutError where it hangs."""
    if not inspect.isawaitable(answer):
        return answer
    async with asyncio.timeout(HANGS_S):
        return await answer


def _checked(each: Way, found: object) -> Principal | None:
    """Raise where a site's answer is none, or claims what only ours may say."""
    if found is None:
        return None
    if not isinstance(found, Principal):
        raise TypeError(
            f"{each.authenticate!r} returned {found!r}: it must return a Principal or"
            " None."
        )
    if found.kind != each.kind and found.kind in RESERVED_KINDS:
        raise ValueError(
            f"{each.authenticate!r} returned a Principal of the kind {found.kind!r},"
            " which is reserved: it would have the sessions of others."
        )
    return found
