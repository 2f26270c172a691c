from __future__ import annotations

from typing import Any

import pytest

from mcp_app.interface.server import VERSION, ServerDefinition
from mcp_app.protocol.content import Icon


@pytest.mark.parametrize(
    ("access", "public"),
    [((), False), (("public",), True), (("token",), False), (("token", "x"), False)],
)
def test_only_the_word_public_is_public(access: tuple[str, ...], public: bool) -> None:
    assert ServerDefinition(slug="a", access=access).is_public is public


@pytest.mark.parametrize(
    ("selection", "tags", "offered"),
    [
        ("all", "", True),
        ("tags", "ab", True),
        ("tags", "b", False),
        ("tags", "", False),
    ],
)
def test_what_a_server_offers(selection: Any, tags: str, offered: bool) -> None:
    server = ServerDefinition(slug="a", selection=selection, tags=frozenset("ac"))
    assert server.offers_definition(frozenset(tags)) is offered


def test_what_a_server_says_of_itself() -> None:
    plain = ServerDefinition(slug="default").implementation()
    assert plain == {"name": "django-mcp-app", "version": VERSION}
    icon = Icon(src="https://example.org/i.png")
    shop = ServerDefinition(
        slug="shop",
        title="Shop",
        version="2",
        description="Sells.",
        website_url="https://example.org",
        icons=[icon],
    )
    assert shop.implementation() == {
        "name": "shop",
        "title": "Shop",
        "version": "2",
        "description": "Sells.",
        "websiteUrl": "https://example.org",
        "icons": [{"src": "https://example.org/i.png"}],
    }
