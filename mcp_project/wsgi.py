"""The WSGI application: the site, and the MCP endpoints without streams."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

import mcp_app.wsgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mcp_project.settings")
application = mcp_app.wsgi.application(get_wsgi_application())
