"""Addresses of servers: for clients, for challenges, and as the audience of tokens."""

from __future__ import annotations

import pytest
from django.test import override_settings
from pytest_django import Settings

from mcp_app.auth import resources

ORIGIN = "https://shop.example"


@pytest.mark.parametrize(
    ("public", "slug", "url"),
    [
        ("", "default", f"{resources.LOCAL}/mcp"),
        ("", "shop", f"{resources.LOCAL}/mcp/shop"),
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
    assert resources.server_url(slug) == url


def test_the_public_address_comes_before_that_of_the_site(settings: Settings) -> None:
    settings.MCP = {}
    assert resources.server_url("shop", "https://here/") == "https://here/mcp/shop"
    settings.MCP = {"PUBLIC_URL": "https://shop.example/m"}
    assert (
        resources.server_url("shop", "https://here/") == "https://shop.example/m/shop"
    )


def test_a_site_whose_urls_have_no_endpoint(settings: Settings) -> None:
    settings.MCP = {}
    with override_settings(ROOT_URLCONF=__name__):
        assert resources.server_url("shop") == f"{resources.LOCAL}/mcp/shop"


urlpatterns: list[object] = []


@pytest.mark.parametrize(
    ("resource", "slug"),
    [
        ("https://shop.example/mcp", "default"),
        ("https://SHOP.example:443/mcp/", "default"),
        ("https://shop.example/mcp/sse", "default"),
        ("https://shop.example/mcp/office", "office"),
        ("https://shop.example/mcp/office/", "office"),
        ("https://shop.example/mcp/office/sse", "office"),
        ("https://shop.example/MCP/office", None),
        ("https://shop.example/mcp/office/more", None),
        ("https://shop.example/mcp/office?a=b", None),
        ("https://shop.example/mcpoffice", None),
        ("https://shop.example/", None),
        ("http://shop.example/mcp/office", None),
        ("https://shop.example:8443/mcp/office", None),
        ("https://evil.example/mcp/office", None),
        ("https://shop.example@evil.example/mcp/office", None),
        ("mcp/office", None),
    ],
)
def test_the_server_of_a_resource(
    settings: Settings, resource: str, slug: str | None
) -> None:
    settings.MCP = {"PUBLIC_URL": ORIGIN}
    assert resources.slug_of_resource(resource, ORIGIN) == slug


@pytest.mark.parametrize(
    ("public", "debug", "host", "origin"),
    [
        ("https://shop.example/mcp", False, "evil.example", "https://shop.example"),
        (None, True, "127.0.0.1:8000", "http://127.0.0.1:8000"),
        (None, True, "localhost:8000", "http://localhost:8000"),
        (None, True, "evil.example", None),
        (None, False, "127.0.0.1:8000", None),
    ],
)
def test_the_origin_is_never_that_of_the_host_header(
    settings: Settings, public: str | None, debug: bool, host: str, origin: str | None
) -> None:
    settings.MCP = {} if public is None else {"PUBLIC_URL": public}
    settings.DEBUG = debug
    assert resources.site_origin("http", host) == origin


def test_the_metadata_is_that_of_the_address_that_was_asked(settings: Settings) -> None:
    where = f"{ORIGIN}/.well-known/oauth-protected-resource"
    settings.MCP = {"PUBLIC_URL": ORIGIN}
    assert resources.metadata_url(ORIGIN, "/mcp/office/") == f"{where}/mcp/office/"
    # A proxy maps another path to ours.
    settings.MCP = {"PUBLIC_URL": f"{ORIGIN}/tools"}
    assert (
        resources.metadata_url(ORIGIN, "/mcp/office/sse") == f"{where}/tools/office/sse"
    )


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
        assert resources.audience_of(slug) == audience
        assert resources.metadata_of(slug) == metadata


def test_a_setting_that_is_no_address(settings: Settings) -> None:
    settings.MCP = {"PUBLIC_URL": "shop.example.com"}
    with pytest.raises(ValueError, match="http"):
        resources.audience_of("default")
    assert not resources.is_audience("shop.example.com/mcp", "default")


def test_an_address_may_be_written_in_several_forms(settings: Settings) -> None:
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}
    for text in (
        "https://Shop.example.com:443/mcp",
        "https://shop.example.com/mcp/",
        "https://shop.example.com/mcp/sse",
    ):
        assert resources.is_audience(text, "default")
    for text in (
        "https://shop.example.com/mcp?a",
        "https://shop.example.com/mcp#a",
        "https://shop.example.com:444/mcp",
        "https://a@shop.example.com/mcp",
        "https://shop.example.com/MCP",
        "",
    ):
        assert not resources.is_audience(text, "default")


# -- oauth settings --------------------------------------------------------------------


HERE = "localhost"


@pytest.mark.parametrize(
    ("clients", "hosts", "is_in"),
    [
        ([], ["claude.ai"], True),
        (["claude.ai"], ["claude.ai"], True),
        (["claude.ai"], ["claude.ai:8443"], True),
        (["claude.ai:8443"], ["claude.ai:8443"], True),
        (["claude.ai:8443"], ["claude.ai"], False),
        (["claude.ai"], ["a.claude.ai"], False),
        (["claude.ai"], ["claude.ai", "evil.example"], False),
        (["!evil.example"], ["claude.ai"], True),
        (["!evil.example"], ["evil.example"], False),
        (["!evil.example"], ["claude.ai", "evil.example:1"], False),
        # A name that is no host by RFC 1123, and one from the root.
        (["!my_host.example"], ["my_host.example:8443"], False),
        (["my_host.example"], ["my_host.example:8443"], True),
        (["!evil.example"], ["evil.example."], False),
        (["!evil.example"], ["evil.example.:443"], False),
        ([HERE], ["127.0.0.1:1"], True),
        ([HERE], ["[::1]:1"], True),
        ([f"!{HERE}"], ["[::1]"], False),
        ([f"!{HERE}"], ["127.0.0.1"], False),
        # Entries may be written in several ways, too.
        (["!Evil.example."], ["evil.example"], False),
        (["!evil.example:443"], ["evil.example"], False),
        (["!127.0.0.1"], ["localhost:3000"], False),
        (["!localhost:3000"], ["127.0.0.1:3000"], False),
        (["!localhost:3000"], ["127.0.0.1:3001"], True),
        (["!::1"], ["[::1]:3000"], False),
        (["claude.ai.", "127.0.0.1"], ["claude.ai", "localhost:1"], True),
        (["2001:db8::1"], ["[2001:db8::1]:8443"], True),
    ],
)
def test_hosts_of_clients_that_the_settings_admit(
    settings: Settings, clients: list[str], hosts: list[str], is_in: bool
) -> None:
    settings.MCP = {**settings.MCP, "OAUTH": {"clients": clients}}
    assert resources.oauth_settings().admits_hosts(hosts) is is_in
