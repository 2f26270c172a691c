"""The ASGI application: the MCP endpoints with their streams, and Django behind."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

import mcp_app.asgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mcp_project.settings")
application = mcp_app.asgi.application(get_asgi_application())
