"""What is here of that which a bundle names, in few statements."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.models import Resource, Server, Tool
from mcp_app.publishing.bundle.format import Bundle, Entry, PublishedContent
from mcp_app.publishing.bundle.site_rows import SiteRows
from tests.published import published
from tests.publishing.bundle.content import tool

pytestmark = pytest.mark.django_db


def entry(key: str, model: Any = Tool, **more: Any) -> Entry:
    return Entry(place="here", model=model, key=key, **{"working": {}, **more})


def served_as(key: str, identity: str) -> Entry:
    version = PublishedContent(number=1, hash="", content={"name": identity})
    return entry(key, published=version)


def looked(*entries: Entry) -> SiteRows:
    return SiteRows(Bundle(entries))


def test_a_long_key_is_found_by_its_digest() -> None:
    uri = f"shop://{'x' * 2_000}"
    row = Resource.objects.create(name="r", uri=uri, mime_type="text/plain")
    assert looked(entry(uri, Resource)).rows == {("resource", uri): row}


def test_what_stands_in_the_way_is_found_by_what_clients_see() -> None:
    row = published(tool("find"))
    row.name = "search"
    row.save()
    found = looked(served_as("other", "find"))
    assert found.published_as("tool", "find") == row
    assert found.published_as("prompt", "find") is None
    assert found.published_as("tool", "search") is None
    assert found.rows == {}


def test_what_a_version_chose_and_is_gone_has_no_key() -> None:
    gone = tool("find")
    pk = gone.pk
    server = Server.objects.get()
    server.selection = Server.Selection.CHOSEN
    server.access = "token"
    server.save()
    server.tools.add(gone)
    published(server)
    assert looked(entry(server.slug, Server)).keys["tool"] == {pk: "find"}
    gone.delete()
    assert pk not in looked(entry(server.slug, Server)).keys["tool"]


def test_a_server_that_offers_all_chooses_nothing() -> None:
    server = Server.objects.get()
    server.tools.add(tool("find"))
    assert not any(looked(entry(server.slug, Server)).choice_of_row(server).values())
