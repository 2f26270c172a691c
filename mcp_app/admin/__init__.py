"""The admin: definitions, servers, sessions, access tokens and calls, in its look."""

from __future__ import annotations

from mcp_app.admin import definitions, server, sessions, tokens
from mcp_app.admin.calls import log

__all__ = ["definitions", "log", "server", "sessions", "tokens"]
