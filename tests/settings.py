"""Settings for the tests: the project's, with a database file of this run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault(
    "SECRET_KEY", "a key for tests, which seals nothing of worth: 0123"
)
os.environ.setdefault("DEBUG", "true")

from mcp_project.settings import *  # noqa: F403
from mcp_project.settings import DATABASES, INSTALLED_APPS

# The test runner switches DEBUG off, and with it Django's loopback names.
ALLOWED_HOSTS = ["127.0.0.1", "[::1]", "localhost"]

# The drill stands in the place of the demo, whose tools would be listed, too.
INSTALLED_APPS = [
    *(app for app in INSTALLED_APPS if app != "mcp_project"),
    "tests.drill",
]

# Code under test has threads of its own, which an in-memory database would not let
# in, and runs side by side on one machine must not share a file.
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    DATABASES["default"]["TEST"] = {
        "NAME": Path(tempfile.gettempdir()) / f"django-mcp-app-{RUN}.sqlite3"
    }

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
