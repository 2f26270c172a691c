from __future__ import annotations

import sys

from django.apps import apps


def test_modules_of_installed_apps_are_imported_at_start() -> None:
    assert str(apps.get_app_config("mcp_app").verbose_name) == "MCP server"
    assert "tests.drill.mcp" in sys.modules
