"""What clients are told of a server: its address and its name."""

from __future__ import annotations

import pytest
from django.test import override_settings
from pytest_django import Settings

from mcp_app.account.addresses import LOCAL, server_name, server_url


@pytest.mark.parametrize(
    ("public", "slug", "url"),
    [
        ("", "default", f"{LOCAL}/mcp"),
        ("", "shop", f"{LOCAL}/mcp/shop"),
        ("https://shop.example/mcp", "default", "https://shop.example/mcp"),
        ("https://shop.example/mcp/", "shop", "https://shop.example/mcp/shop"),
        ("https://shop.example/a/b", "shop", "https://shop.example/a/b/shop"),
        # Without a path, that of this site.
        ("https://shop.example", "shop", "https://shop.example/mcp/shop"),
        ("https://shop.example/", "default", "https://shop.example/mcp"),
    ],
)
def test_an_address(settings: Settings, public: str, slug: str, url: str) -> None:
    settings.MCP = {"PUBLIC_URL": public} if public else {}
    assert server_url(slug) == url


def test_the_public_address_comes_before_that_of_the_site(settings: Settings) -> None:
    settings.MCP = {}
    assert server_url("shop", "https://here/") == "https://here/mcp/shop"
    settings.MCP = {"PUBLIC_URL": "https://shop.example/m"}
    assert server_url("shop", "https://here/") == "https://shop.example/m/shop"


def test_a_site_whose_urls_have_no_endpoint(settings: Settings) -> None:
    settings.MCP = {}
    with override_settings(ROOT_URLCONF=__name__):
        assert server_url("shop") == f"{LOCAL}/mcp/shop"


urlpatterns: list[object] = []


@pytest.mark.parametrize(
    ("urls", "slug", "name"),
    [
        ("my_shop.urls", "default", "my-shop"),
        ("my_shop.urls", "office", "my-shop-office"),
        ("shop", "default", "shop"),
    ],
)
def test_a_name(urls: str, slug: str, name: str) -> None:
    with override_settings(ROOT_URLCONF=urls):
        assert server_name(slug) == name
