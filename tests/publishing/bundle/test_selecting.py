"""Which rows a bundle is made of."""

from __future__ import annotations

import pytest

from mcp_app.models import PublishedRow, Server, Tool
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused
from mcp_app.publishing.bundle.format import key_of
from tests.published import published
from tests.publishing.bundle.content import fill, overlay, tool

pytestmark = pytest.mark.django_db


def named(rows: list[PublishedRow]) -> list[str]:
    return sorted(key_of(row) for row in rows)


def test_everything_but_what_says_nothing() -> None:
    fill()
    assert named(bundle.everything()) == [
        "Hours",
        "default",
        "greet",
        "hours",
        "shop",
        "shop://logo",
        "shop://orders/{number}",
        "vanished",
    ]


def test_what_a_server_chooses_goes_along_even_if_it_says_nothing() -> None:
    overlay("silent")
    server = Server.objects.create(slug="shop", selection="chosen")
    assert "silent" not in named(bundle.everything())
    server.tools.set(Tool.objects.all())
    assert named(bundle.everything()) == ["default", "shop", "silent"]
    assert named(bundle.servers_by_name(["shop"])) == ["shop", "silent"]


def test_a_server_takes_along_what_it_offers() -> None:
    tool("sale", tags="sale")
    published_before = published(tool("before", tags="sale"))
    published_before.tags = ""
    published_before.save()
    tool("other", tags="stock")
    overlay("silent")
    Server.objects.create(slug="shop", selection="tags", tags="sale")
    assert named(bundle.servers_by_name(["shop"])) == ["before", "sale", "shop"]
    assert named(bundle.servers_by_name(["default", "shop", "shop"])) == [
        "before",
        "default",
        "other",
        "sale",
        "shop",
    ]


def test_a_server_takes_along_what_its_version_offers() -> None:
    tool("sale", tags="sale")
    tool("stock", tags="stock")
    server = published(Server(slug="shop", selection="tags", tags="sale"))
    server.tags = "stock"
    server.save()
    assert named(bundle.servers_by_name(["shop"])) == ["sale", "shop", "stock"]


def test_servers_that_are_not_there() -> None:
    with pytest.raises(BundleRefused) as refused:
        bundle.servers_by_name(["shop", "default", "Default"])
    assert refused.value.problems == (
        "There is no server “shop”.",
        "There is no server “Default”.",
    )
