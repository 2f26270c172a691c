from __future__ import annotations

from dataclasses import replace

from mcp_app.interface.server import VERSION, ServerDefinition
from mcp_app.protocol.content import Icon


def test_only_the_word_public_is_public() -> None:
    assert ServerDefinition(slug="a", access=("public",)).is_public
    for access in ((), ("token",), ("token", "x")):
        assert not ServerDefinition(slug="a", access=access).is_public


def test_what_a_server_offers() -> None:
    tagged = ServerDefinition(slug="a", selection="tags", tags=frozenset("ac"))
    offered = [tagged.offers_definition(frozenset(tags)) for tags in ("ab", "b", "")]
    assert offered == [True, False, False]
    everything = replace(tagged, selection="all")
    assert everything.offers_definition(frozenset())


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
