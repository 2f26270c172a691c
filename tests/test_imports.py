"""The import graph of the product, with what is imported for types alone."""

from __future__ import annotations

import grimp


def test_no_circle_of_imports() -> None:
    # What is cached may be of a file that was exchanged within the same second.
    graph = grimp.build_graph("mcp_app", "mcp_project", cache_dir=None)
    circles = [
        f"{importer} imports {imported}, which leads back to it"
        for importer in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if graph.find_shortest_chain(imported, importer) is not None
    ]
    assert circles == []
