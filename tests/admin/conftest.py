"""Functions that code registered, for the forms that choose one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_app.catalog.registry import mcp


@pytest.fixture
def functions() -> Iterator[None]:
    """Registers shop.find(customer, limit) and shop.policy(), and a tool `search`."""

    @mcp.function("shop.find")
    def find(customer: str, limit: int = 10) -> int:
        """Find orders."""
        return limit

    @mcp.function("shop.policy")
    def policy() -> str:
        return "No returns."

    @mcp.tool("search")
    def search() -> str:
        return ""

    yield
    for key in ("shop.find", "shop.policy"):
        del mcp.functions[key]
    del mcp.tools["search"]
