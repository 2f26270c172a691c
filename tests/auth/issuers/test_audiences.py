"""The address of a server, in the one form that is compared."""

from __future__ import annotations

from pytest_django import Settings

from mcp_app.auth.issuers.audiences import audience_of, canonical, metadata_of

urlpatterns: list[object] = []


def test_one_text_for_each_address() -> None:
    for url, text in (
        ("https://Shop.Example.com/mcp", "https://shop.example.com/mcp"),
        ("HTTPS://shop.example.com:443/mcp/", "https://shop.example.com/mcp"),
        ("https://shop.example.com/mcp/sse", "https://shop.example.com/mcp"),
        ("https://shop.example.com/mcp/sse/", "https://shop.example.com/mcp"),
        ("https://shop.example.com:8443/mcp", "https://shop.example.com:8443/mcp"),
        ("http://[::1]:80/MCP", "http://[::1]/MCP"),
        ("https://shop.example.com/mcp//", "https://shop.example.com/mcp/"),
        ("https://shop.example.com", "https://shop.example.com"),
        ("https://a@shop.example.com/mcp", ""),
        ("https://shop.example.com/mcp?a=b", ""),
        ("https://shop.example.com/mcp#a", ""),
        ("https://shop.example.com:99999/mcp", ""),
        ("https://[::1/mcp", ""),
        ("api", ""),
        ("", ""),
    ):
        assert canonical(url) == text, url


def test_the_address_of_a_server(settings: Settings) -> None:
    for public, slug, audience, metadata in (
        (None, "default", "", ""),
        (
            "https://shop.example.com",
            "default",
            "https://shop.example.com/mcp",
            "https://shop.example.com/.well-known/oauth-protected-resource/mcp",
        ),
        (
            "https://Shop.example.com:443/tools/",
            "support",
            "https://shop.example.com/tools/support",
            "https://shop.example.com/.well-known/oauth-protected-resource"
            "/tools/support",
        ),
    ):
        settings.MCP = {"PUBLIC_URL": public}
        assert audience_of(slug) == audience
        assert metadata_of(slug) == metadata


def test_a_site_without_the_endpoint_has_its_usual_path(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}
    assert audience_of("default") == "https://shop.example.com/mcp"
