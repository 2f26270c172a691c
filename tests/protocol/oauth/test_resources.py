"""One audience has one form."""

from __future__ import annotations

import pytest

from mcp_app.protocol.oauth.addresses import canonical

FORMS = [
    ("https://a.example/mcp", "https://a.example/mcp"),
    ("https://a.example/mcp/", "https://a.example/mcp"),
    ("https://a.example/mcp/sse", "https://a.example/mcp"),
    ("https://a.example/mcp/sse/", "https://a.example/mcp"),
    ("HTTPS://A.EXAMPLE:443/mcp", "https://a.example/mcp"),
    ("http://a.example:80/mcp", "http://a.example/mcp"),
    ("http://127.0.0.1:8000/mcp/b/", "http://127.0.0.1:8000/mcp/b"),
    ("https://[0:0::1]/mcp", "https://[::1]/mcp"),
    ("https://a.example", "https://a.example"),
    ("https://a.example/", "https://a.example"),
    ("https://a.example/sse", "https://a.example"),
    # What is another address stays one.
    ("https://a.example/MCP", "https://a.example/MCP"),
    ("https://a.example/mcp//", "https://a.example/mcp/"),
    ("https://a.example/mcp/sse//", "https://a.example/mcp/sse/"),
    ("https://a.example/mcp/sse/sse", "https://a.example/mcp/sse"),
    ("https://a.example/mcpsse", "https://a.example/mcpsse"),
    ("https://a.example/mcp/SSE", "https://a.example/mcp/SSE"),
    ("https://a.example/%6dcp", "https://a.example/%6dcp"),
    ("https://a.example/b/../mcp", "https://a.example/b/../mcp"),
    ("https://a.example:8443/mcp", "https://a.example:8443/mcp"),
    ("https://a.example:80/mcp", "https://a.example:80/mcp"),
    ("http://a.example/mcp", "http://a.example/mcp"),
]
NO_RESOURCES = [
    ("", "no absolute"),
    ("mcp", "no absolute"),
    ("/mcp", "no absolute"),
    ("a.example/mcp", "no absolute"),
    ("urn:a:b", "no absolute"),
    ("https:/a.example/mcp", "no absolute"),
    ("https:///mcp", "host"),
    ("https://a.example./mcp", "host"),
    ("https://a.example:0/mcp", "host"),
    ("https://a.example/mcp#", "fragment"),
    ("https://a.example/mcp?", "query"),
    ("https://a.example/mcp?a=b", "query"),
    ("https://b@a.example/mcp", "user part"),
    ("https://a.example\\mcp", "characters"),
    ("https://a.example/mcp\n", "characters"),
    ("https://ä.example/mcp", "characters"),
    ("https://a.example/" + "b" * 1_983, "2000 characters"),
]


def test_the_canonical_form() -> None:
    for resource, form in FORMS:
        assert canonical(resource) == form, resource


def test_what_is_no_resource() -> None:
    for resource, reason in NO_RESOURCES:
        with pytest.raises(ValueError, match=reason):
            canonical(resource)
    assert len(canonical("https://a.example/" + "b" * 1_982)) == 2_000
