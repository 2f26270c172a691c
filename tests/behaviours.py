from __future__ import annotations

from mcp_app.catalog.registry import Registry, mcp

registry = Registry()
registry.functions.update(mcp.functions)
registry.completers.update(mcp.completers)
