"""The caller and client of a call, as JSON in a row; and a request from this JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp_app.interface.principal import Principal, Scope
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import CLIENT_CAPABILITIES, CLIENT_INFO
from mcp_app.server.invocation import context_headers

if TYPE_CHECKING:
    from mcp_app.server.request import Request


def caller_of(request: Request) -> JsonObject:
    """Return the caller and client of a request as JSON for the row."""
    principal, client = request.principal, request.client
    scope = principal.scope
    permissions = principal.permissions
    return {
        "principal": {
            "kind": principal.kind,
            "user_id": principal.user_id,
            "user_name": principal.user_name,
            "client": principal.client,
            "scopes": sorted(principal.scopes),
            "permissions": None if permissions is None else sorted(permissions),
            "scope": scope
            and [scope.read_only, sorted(scope.tags), sorted(scope.tools)],
        },
        "client": {"name": client.name, "version": client.version},
        "capabilities": dict(client.capabilities),
        "headers": {"Host": request.host, **context_headers(request)},
        "path": request.path,
    }


def caller_members(caller: Mapping[str, Any]) -> dict[str, Any]:
    """Return members of a `Request` of the caller that `caller_of` has stored."""
    return {
        "principal": _principal_of(caller),
        "meta": {
            CLIENT_INFO: caller["client"],
            CLIENT_CAPABILITIES: caller["capabilities"],
        },
        "headers": Headers(
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in caller["headers"].items()
        ),
        "path": caller["path"],
    }


def _principal_of(caller: Mapping[str, Any]) -> Principal:
    members = dict(caller["principal"])
    scope, permissions = members.pop("scope"), members.pop("permissions")
    return Principal(
        **{**members, "scopes": frozenset(members["scopes"])},
        permissions=None if permissions is None else frozenset(permissions),
        # In older rows a scope has no third member, the tools: then the set is empty.
        scope=scope
        and Scope(
            read_only=scope[0], tags=frozenset(scope[1]), tools=frozenset(*scope[2:])
        ),
    )
