"""Calls that the row of a task or a subscription asks for, instead of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_app.auth.token_cache import token_cache
from mcp_app.process.admission import NoAccess, Reason, find_caller
from mcp_app.protocol.errors import InternalError
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.server.request import Request

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

LOST_ACCESS: Final = "The caller's access was taken away."


class AccessLost(InternalError):
    """The caller in a row may not call any more."""


async def make_request(
    process: Process, server: str, revision: str, **members: Any
) -> Request:
    """Return a request of an earlier caller, with the caller's current rights.

    Raise `AccessLost` if the caller may not use this server any more.
    """
    principal = members.pop("principal")
    try:
        caller = await find_caller(process, server, principal)
    except NoAccess as error:
        if error.reason is Reason.NO_SERVER:
            raise InternalError(f"There is no server {server!r} any more.") from None
        raise AccessLost(LOST_ACCESS) from None
    if await token_cache.has_ended(principal.key):
        raise AccessLost(LOST_ACCESS)
    return Request(
        process.adapters,
        *caller,
        revision=REVISIONS[revision],
        streams=False,
        **members,
    )
