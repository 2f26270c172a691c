"""The admin: definitions, servers and sessions, in the stock look."""

from __future__ import annotations

from mcp_app.admin import definitions, server, sessions

__all__ = ["definitions", "server", "sessions"]
