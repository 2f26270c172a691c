"""The endpoint's names in a URLconf."""

from __future__ import annotations

import pytest
from django.urls import resolve, reverse

from mcp_app.transports.http.view import endpoint


def test_names() -> None:
    assert reverse("mcp_app:endpoint") == "/mcp"
    assert reverse("mcp_app:server", args=["staff"]) == "/mcp/staff"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/staff", "/mcp/staff/"])
def test_paths(path: str) -> None:
    assert resolve(path).func is endpoint
