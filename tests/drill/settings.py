"""Settings of the fixture server: the project's, on loopback and with limits off."""

from __future__ import annotations

import os

# What the environment says stands, as in any other site.
for name, value in {
    "SECRET_KEY": "a key for fixtures, which seals nothing of worth: 01234567",
    "DEBUG": "false",
    "ALLOWED_HOSTS": "127.0.0.1,localhost,[::1]",
    "SECURE_SSL_REDIRECT": "false",
    "SECURE_HSTS_SECONDS": "0",
    "SESSION_COOKIE_SECURE": "false",
    "CSRF_COOKIE_SECURE": "false",
    "LOG_LEVEL": "WARNING",
    "MCP_LIMITS": "off",
}.items():
    os.environ.setdefault(name, value)

from mcp_project.settings import *  # noqa: E402, F403
from mcp_project.settings import INSTALLED_APPS, LOGGING, STORAGES  # noqa: E402

# The drill stands in the place of the demo, whose tools would be listed, too. Daphne's
# app is for `runserver` alone, and takes a third of the time until a server serves.
INSTALLED_APPS = [
    *(app for app in INSTALLED_APPS if app not in ("daphne", "mcp_project.shop")),
    "tests.drill",
]
if os.environ.get("UNFOLD"):
    INSTALLED_APPS = ["unfold", *INSTALLED_APPS]
ROOT_URLCONF = "tests.drill.urls"

# The admin has its styles without collectstatic.
STATIC_ROOT = None  # type: ignore[assignment]
WHITENOISE_USE_FINDERS = True
STORAGES = {
    **STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# The queue of a site, if it has one.
match os.environ.get("MCP_TASKS"):
    case "django_tasks":
        INSTALLED_APPS = [*INSTALLED_APPS, "django_tasks_db"]
        TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
    case "celery":
        CELERY_BROKER_URL = os.environ["BROKER_URL"]
        CELERY_TASK_DEFAULT_QUEUE = os.environ["QUEUE"]
        from tests.drill.celery_app import app as celery_app  # noqa: F401 - the current

# Everything that anything says, but for statements, which have what rows have.
if level := os.environ.get("LOG_ROOT"):
    LOGGING["root"] = {"handlers": ["console"], "level": level}
    LOGGING["loggers"] |= {  # type: ignore[operator]
        "django": {"level": level},
        "django.db.backends": {"level": "INFO"},
    }

# Where spans go.
if spans := os.environ.get("SPANS"):
    from pathlib import Path

    from tests.drill.spans import write_spans_into

    write_spans_into(Path(spans))
