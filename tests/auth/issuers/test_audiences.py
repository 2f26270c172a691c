"""The address of a server, in the one form that is compared."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from mcp_app.auth.issuers.audiences import audience_of, is_audience, metadata_of

urlpatterns: list[object] = []


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


def test_a_setting_that_is_no_address(settings: Settings) -> None:
    settings.MCP = {"PUBLIC_URL": "shop.example.com"}
    with pytest.raises(ValueError, match="http"):
        audience_of("default")
    assert not is_audience("shop.example.com/mcp", "default")


def test_an_address_may_be_written_in_several_forms(settings: Settings) -> None:
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}
    for text in (
        "https://Shop.example.com:443/mcp",
        "https://shop.example.com/mcp/",
        "https://shop.example.com/mcp/sse",
    ):
        assert is_audience(text, "default")
    for text in (
        "https://shop.example.com/mcp?a",
        "https://shop.example.com/mcp#a",
        "https://shop.example.com:444/mcp",
        "https://a@shop.example.com/mcp",
        "https://shop.example.com/MCP",
        "",
    ):
        assert not is_audience(text, "default")


def test_a_site_without_the_endpoint_has_its_usual_path(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}
    assert audience_of("default") == "https://shop.example.com/mcp"
