"""Settings for mypy: the tests', and whose models it must know, too."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "mcp_project.shop", "tests.fleet"]
