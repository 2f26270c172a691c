"""From a request to its principal, by the callables of `MCP["AUTHENTICATION"]`.

It fails closed: a server that is not public answers 401 where nobody authenticates,
and a name that the settings lack closes the server.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TypeAlias

from django.db import Error as DatabaseError
from django.utils.module_loading import import_string

from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
)
from mcp_app.interface.server import ServerDefinition
from mcp_app.pools.database import authenticators, unavailable
from mcp_app.pools.outages import is_outage
from mcp_app.protocol.errors import Refused

Authenticate: TypeAlias = Callable[
    [AuthenticationRequest], Principal | Awaitable[Principal | None] | None
]

logger = logging.getLogger("mcp_app.auth")

CHALLENGE = 'Bearer realm="mcp"'
WRONG = "invalid_token"
_DESCRIPTION = re.compile(r"[ !#-\[\]-~]+")
"""What a description may have (RFC 6750, section 3)."""


@cache
def _imported(path: str) -> Authenticate:
    found: Authenticate = import_string(path)
    return found


async def principal(
    server: ServerDefinition, request: AuthenticationRequest
) -> Principal:
    """Return who is asking; raise 401 where nobody may ask like this."""
    if server.public:
        return Principal.ANONYMOUS
    for authenticate in _callables(server):
        found = await _authenticated(authenticate, request)
        if found is not None:
            return found
    raise _unauthenticated("Authentication is needed.")


def _callables(server: ServerDefinition) -> list[Authenticate]:
    """Return what may authenticate, in its order; nothing where a name is unknown."""
    known = mcp_settings.authentication
    unknown = [name for name in server.access if name not in known]
    if unknown:
        _tell_closed(server.slug, ", ".join(map(repr, unknown)))
        return []
    return [_imported(known[name]) for name in server.access]


@cache
def _tell_closed(slug: str, names: str) -> None:
    """Log it once, not for each request."""
    logger.error(
        "The server %r is closed: the settings have no authentication %s.", slug, names
    )


async def _authenticated(
    authenticate: Authenticate, request: AuthenticationRequest
) -> Principal | None:
    try:
        if inspect.iscoroutinefunction(authenticate):
            found = await authenticate(request)
        else:
            found = await authenticators.run(authenticate, request)
            found = await found if inspect.isawaitable(found) else found
    except AuthenticationFailed as error:
        raise _unauthenticated(str(error) or "Authentication failed.", WRONG) from None
    except DatabaseError as error:
        if not is_outage(error):
            raise
        raise unavailable() from error
    if not isinstance(found, Principal | None):
        raise TypeError(
            f"{authenticate!r} returned {found!r}: it must return a Principal or None."
        )
    return found


def _unauthenticated(message: str, error: str = "") -> Refused:
    """Return a 401 with its challenge; `error` is a code of RFC 6750, section 3.1.

    Where nothing was shown there is none (section 3).
    """
    challenge = CHALLENGE
    if error:
        challenge = f'{challenge}, error="{error}"'
        if _DESCRIPTION.fullmatch(message):
            challenge = f'{challenge}, error_description="{message}"'
    return Refused(401, message, {"WWW-Authenticate": challenge})
