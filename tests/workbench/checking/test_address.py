"""Addresses that can be looked at."""

from __future__ import annotations

import pytest

from mcp_app.workbench.checking.client import (
    address_problem,
    better_address,
    leads_back,
    public_line,
)


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
        ("https://example.com/mcp?", "question mark"),
        ("https://example.com/mcp#", "no #"),
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


URL = "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    ("location", "back", "better"),
    [
        ("/mcp", True, URL),
        (URL, True, URL),
        ("https://mcp.example.com:443/mcp", True, "https://mcp.example.com:443/mcp"),
        ("https://mcp.example.com:x/mcp", False, ""),
        ("//[", False, ""),
        ("/mcp/", False, f"{URL}/"),
        ("https://other.example.com/mcp", False, "https://other.example.com/mcp"),
        ("http://other.example.com/mcp", False, ""),
        ("https://other.example.com/login", False, ""),
        ("/mcp?next=1", False, ""),
        ("https://me:word@other.example.com/mcp", False, ""),
        ("javascript:alert(1)", False, ""),
    ],
)
def test_where_a_redirect_leads(location: str, back: bool, better: str) -> None:
    assert leads_back(URL, location) is back
    assert better_address(URL, location) == better


def test_from_http_to_https() -> None:
    assert better_address("http://mcp.example.com/mcp", URL) == URL


def test_the_setting_by_which_a_server_has_an_address() -> None:
    line = 'MCP["PUBLIC_URL"] = "https://mcp.example.com/mcp"'
    assert public_line(URL, "default") == line
    assert public_line(f"{URL}/", "default") == line
    assert public_line(f"{URL}/team", "team") == line
    assert public_line(f"{URL}/other", "team") == ""
