"""Paths without the root path, which some servers leave in them."""

from __future__ import annotations

import pytest

from mcp_app.transports.asgi_types import path_below_root


@pytest.mark.parametrize(
    ("root", "path", "rest"),
    [
        ("", "/mcp", "/mcp"),
        ("", "mcp", "mcp"),
        ("/site", "/site/mcp", "/mcp"),
        ("/site/", "/site/mcp", "/mcp"),
        ("/site", "/site/", "/"),
        # Once only, and only a whole part.
        ("/site", "/site/site/mcp", "/site/mcp"),
        ("/site", "/sitemap/mcp", "/sitemap/mcp"),
        ("/site", "/site", "/site"),
        ("/site", "/mcp", "/mcp"),
        ("/", "/mcp", "/mcp"),
    ],
)
def test_a_path_below_its_root(root: str, path: str, rest: str) -> None:
    assert path_below_root(root, path) == rest
