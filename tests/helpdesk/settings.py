"""Settings of the help desk: one table, one API, one key."""

from __future__ import annotations

import os
from typing import Any

SECRET_KEY = "a key of a help desk that keeps nothing of worth"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "tests.helpdesk.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "rest_framework",
    "drf_spectacular",
    "tests.helpdesk",
]
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["HELPDESK_DATABASE"],
    }
}
REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["tests.helpdesk.key.HasKey"],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Help desk",
    "VERSION": "1.0",
    "OAS_VERSION": "3.0.3",
    "SERVE_PERMISSIONS": ["tests.helpdesk.key.HasKey"],
}
