"""Settings of a small site: SQLite in memory, or what `DATABASE_URL` names."""

from __future__ import annotations

import environ

environment = environ.Env()
SECRET_KEY = "for tests"
DEBUG = True
DATABASES = {"default": environment.db("DATABASE_URL", default="sqlite://:memory:")}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "mcp_app",
    "tests.testing.site.parcels",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "mcp_app.urls"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
USE_TZ = True
