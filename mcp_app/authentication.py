"""What `MCP["AUTHENTICATION"]` can name: our ways to know who is asking."""

from __future__ import annotations

from mcp_app.auth.authenticators import django_session
from mcp_app.auth.issuer_tokens import issuer
from mcp_app.auth.token_cache import access_token, oauth

__all__ = ["access_token", "django_session", "issuer", "oauth"]
