"""Settings of the fleet: the drill's, with another app."""

from __future__ import annotations

from tests.drill.settings import *  # noqa: F403
from tests.drill.settings import INSTALLED_APPS, MCP

INSTALLED_APPS = ["tests.fleet", *INSTALLED_APPS]
INSTALLED_APPS.remove("tests.drill")
ROOT_URLCONF = "mcp_project.urls"
# The checks of the suite's own site look for modules of the usual name.
MCP = {**MCP, "AUTODISCOVER": "offers"}
