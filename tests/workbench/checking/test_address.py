"""Addresses that can be looked at."""

from __future__ import annotations

import pytest

from mcp_app.workbench.checking.address import address_problem


@pytest.mark.parametrize(
    "url", ["https://example.com/mcp", "http://127.0.0.1:8000/mcp", "http://[::1]/mcp/"]
)
def test_good_ones(url: str) -> None:
    assert address_problem(url) == ""


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("", "begin with"),
        ("mcp", "begin with"),
        ("ftp://example.com/", "begin with"),
        ("file:///etc/passwd", "begin with"),
        ("https:///mcp", "begin with"),
        ("https://user:secret@example.com/mcp", "no user name"),
        ("https://example.com/mcp?a=1", "question mark"),
        ("https://example.com/mcp#a", "no #"),
        ("https://example.com/a b", "spaces"),
        ("https://example.com/\r\nX: y", "ASCII"),
        ("https://exämple.com/mcp", "ASCII"),
        ("https://example.com:0/mcp", "port 0"),
        ("https://example.com:99999/mcp", "."),
        ("https://[::1/mcp", "."),
        ("https://example.com/" + "x" * 1_000, "1000"),
    ],
)
def test_bad_ones(url: str, rule: str) -> None:
    assert rule in address_problem(url)
