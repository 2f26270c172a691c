"""Settings of the fleet: the drill's, with another app."""

from __future__ import annotations

from tests.drill.settings import *  # noqa: F403
from tests.drill.settings import INSTALLED_APPS

INSTALLED_APPS = ["tests.fleet", *INSTALLED_APPS]
INSTALLED_APPS.remove("tests.drill")
ROOT_URLCONF = "mcp_project.urls"
