"""From a request to its principal, by the callables of `MCP["AUTHENTICATION"]`.

It fails closed: a server that is not public answers 401 where nobody authenticates,
and a name that the settings lack closes the server.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeAlias

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils.module_loading import import_string

from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
)
from mcp_app.interface.server import ServerDefinition
from mcp_app.protocol.errors import Refused

Authenticate: TypeAlias = Callable[
    [AuthenticationRequest], Principal | Awaitable[Principal | None] | None
]

CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="mcp"'}

_threads = ThreadPoolExecutor(4, thread_name_prefix="mcp-authentication")
"""Authentication never waits for a thread of user code."""


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
    for name in server.access:
        path = mcp_settings.authentication.get(name)
        if path is None:
            break
        found = await _authenticated(_imported(path), request)
        if found is not None:
            return found
    raise _unauthenticated("Authentication is needed.")


async def _authenticated(
    authenticate: Authenticate, request: AuthenticationRequest
) -> Principal | None:
    try:
        if inspect.iscoroutinefunction(authenticate):
            found: Principal | None = await authenticate(request)
            return found
        in_thread = sync_to_async(_blocking, thread_sensitive=False, executor=_threads)
        return await in_thread(authenticate, request)
    except AuthenticationFailed as error:
        raise _unauthenticated(str(error) or "Authentication failed.") from None


def _blocking(
    authenticate: Authenticate, request: AuthenticationRequest
) -> Principal | None:
    close_old_connections()
    try:
        return authenticate(request)  # type: ignore[return-value]
    finally:
        close_old_connections()


def _unauthenticated(message: str) -> Refused:
    return Refused(401, message, CHALLENGE)
