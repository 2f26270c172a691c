"""The admin: definitions, servers, sessions, access tokens and calls."""

from __future__ import annotations

from mcp_app.admin.calls import log
from mcp_app.admin.definitions import definition_admin
from mcp_app.admin.operations import session_admin
from mcp_app.admin.servers import server_admin
from mcp_app.admin.tokens import token_admin

__all__ = ["definition_admin", "log", "server_admin", "session_admin", "token_admin"]
