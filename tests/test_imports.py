"""The import graph of the product, with what is imported for types alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import grimp

SERVING: Final = """
import os
import sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
import django
django.setup()
import mcp_app.asgi
from django.urls import reverse
reverse("admin:mcp_app_tool_changelist")
late = "mcp_app.workbench", "mcp_app.transports.in_process", "mcp_app.toolsets"
assert "mcp_app.admin.trying.tabs" in sys.modules
assert not [each for each in sys.modules if each.startswith(late)]
"""


def test_no_circle_of_imports() -> None:
    # What only a type checker imports runs in no circle.  What is cached may be of a
    # file that was exchanged within the same second.
    graph = grimp.build_graph(
        *("mcp_app", "mcp_project"), cache_dir=None, exclude_type_checking_imports=True
    )
    circles = [
        f"{importer} imports {imported}, which leads back to it"
        for importer in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if graph.find_shortest_chain(imported, importer) is not None
    ]
    assert circles == []


def test_processes_that_serve_clients_import_no_workbench() -> None:
    """Its pages and its command import it when they are used."""
    program = [sys.executable, "-c", SERVING]
    subprocess.run(program, cwd=Path(__file__).parent.parent, check=True, timeout=60)
