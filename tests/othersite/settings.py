"""Settings of a site of another kind: no zones, German, people named by e-mail."""

from __future__ import annotations

import os

from tests.oauth.program import ORIGIN, WAYS
from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

DEBUG = False

ALLOWED_HOSTS = ["testserver", "shop.example.com"]
ROOT_URLCONF = "tests.othersite.urls"
AUTH_USER_MODEL = "othersite.Person"
INSTALLED_APPS = [
    *(app for app in INSTALLED_APPS if app != "tests.drill"),
    "tests.othersite",
]
# Tables of people refer to those, and have no migration.
MIGRATION_MODULES = dict.fromkeys(["auth", "contenttypes", "othersite"])

USE_TZ = False
TIME_ZONE = "Europe/Berlin"
LANGUAGE_CODE = "de"
USE_THOUSAND_SEPARATOR = True

PEER = {"url": os.environ["OTHERSITE_PEER"], "networks": ["127.0.0.0/8"]}
MCP = {
    # The checks of the suite's own site look for modules of the usual name.
    "AUTODISCOVER": "offers",
    "PUBLIC_URL": ORIGIN,
    "AUTHENTICATION": WAYS,
    "HTTP": {"peer": {"title": "Peer", **PEER}},
}
