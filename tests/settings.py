"""Settings for the tests: the project's, with the fixtures in place of the demo."""

from __future__ import annotations

import os

os.environ.setdefault(
    "SECRET_KEY", "a key for tests, which seals nothing of worth: 0123"
)
os.environ.setdefault("DEBUG", "true")

from mcp_project.settings import *  # noqa: F403
from mcp_project.settings import INSTALLED_APPS, MCP

# The test runner switches DEBUG off, and with it Django's loopback names.
ALLOWED_HOSTS = ["127.0.0.1", "[::1]", "localhost"]

# The drill stands in the place of the demo, whose tools would be listed, too.
INSTALLED_APPS = [
    *(app for app in INSTALLED_APPS if app != "mcp_project.shop"),
    "tests.drill",
]

# Tests name the ways in that they need.
MCP = {name: value for name, value in MCP.items() if name != "AUTHENTICATION"}

# Nobody listens there: what is made of it is looked at, and not called.
MCP = {
    **MCP,
    "HTTP": {
        "helpdesk": {
            "title": "Help desk",
            "url": "https://help.example.com/api",
            "secret_headers": {"X-Partner": "a-key-of-the-help-desk"},
        }
    },
}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
