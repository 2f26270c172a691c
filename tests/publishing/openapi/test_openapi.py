"""Tests of `mcp_app/publishing/openapi/openapi.py`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from mcp_app.catalog.registry import Registry
from mcp_app.egress.sites import usable_sites
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.models import ImportedOperation, OpenApiDocument, Tool
from mcp_app.models.openapi import pack_offers
from mcp_app.publishing.openapi import (
    columns_of,
    compare_operations,
    fetch_document,
    make_tools,
    offers_in,
    store,
    take_over,
)
from tests.egress.peer import Peer, answer, peer_in_thread
from tests.published import published

pytestmark = [pytest.mark.django_db]

DOCUMENT: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {"title": "Help\ndesk \u202e", "version": "1.2"},
    "paths": {
        "/tickets": {
            "get": {"operationId": "listTickets", "tags": ["Tickets"]},
            "post": {
                "operationId": "createTicket",
                "summary": "Create a ticket",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"subject": {"type": "string"}},
                                "required": ["subject"],
                            }
                        }
                    },
                },
            },
        },
        "/upload": {
            "post": {"requestBody": {"required": True, "content": {"image/png": {}}}}
        },
    },
}


def content(**changes: Any) -> bytes:
    return json.dumps({**DOCUMENT, **changes}).encode()


def stored(**changes: Any) -> OpenApiDocument:
    return store(content(**changes), usable_sites()["helpdesk"])


def test_a_document_is_kept() -> None:
    author = User.objects.create_user("lee")
    row = store(
        content(), usable_sites()["helpdesk"], location="/a.json", author=author
    )
    row.refresh_from_db()
    assert (row.site, row.version, row.operations) == ("helpdesk", "1.2", 3)
    assert row.title.startswith("Help desk ")
    assert "\u202e" not in row.title
    assert (row.location, row.read_by) == ("/a.json", author)
    offers = offers_in(row)
    assert [*offers] == ["GET /tickets", "POST /tickets", "POST /upload"]
    assert offers["POST /upload"].bar == "it wants a file"


def test_the_same_title_is_the_same_document() -> None:
    first, second = stored(), stored(paths={"/x": {"get": {}}})
    assert first.pk == second.pk
    assert [*offers_in(second)] == ["GET /x"]
    assert stored(info={}).title == "Help desk"
    assert OpenApiDocument.objects.count() == 2


def test_a_known_document_keeps_its_title() -> None:
    row = stored()
    again = store(content(info={"title": "New"}), usable_sites()["helpdesk"], row=row)
    assert again.pk == row.pk
    assert OpenApiDocument.objects.get().title == row.title


def test_a_document_without_operations() -> None:
    with pytest.raises(DocumentError, match="has no operation that can be a tool"):
        stored(paths={})
    assert not OpenApiDocument.objects.exists()


def test_too_much_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_app.models.openapi.MOST_INFLATED", 10)
    with pytest.raises(DocumentError, match="at most 0 are stored"):
        stored()
    assert not OpenApiDocument.objects.exists()


def test_too_much_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_app.publishing.openapi.MOST_INFLATED", 10)
    with pytest.raises(DocumentError, match="take more than 0 MiB"):
        stored()


@pytest.fixture
def peer(settings: Settings) -> Iterator[Peer]:
    with peer_in_thread() as other:
        sites = other.settings(secret_headers={"X-Key": "a-long-key"}, answer=10)
        settings.MCP = {**settings.MCP, "HTTP": sites}
        yield other


def test_a_document_is_fetched(peer: Peer) -> None:
    """With the site's key, and larger than an answer may be."""
    peer.send = answer(content(), media_type="application/yaml")
    user = User.objects.create_user("lee")
    fetched = fetch_document(usable_sites()["peer"], "/openapi?format=json", user)
    assert fetched == content()
    assert peer.received[0].target == "/api/openapi?format=json"
    assert peer.received[0].header("X-Key") == ["a-long-key"]


@pytest.mark.parametrize(
    ("path", "sent", "sentence"),
    [
        ("/a\0b", b"", "did not give the document: "),
        ("/a?b=\0", b"", "did not give the document: "),
        ("/../a.json", b"", "did not give the document: A segment of the path"),
        ("/a.json", answer(status=404), "Help desk answered with the status 404."),
        ("/a.json", answer(b"a" * 30), "did not give the document: The answer is"),
    ],
)
def test_what_cannot_be_fetched(
    peer: Peer, settings: Settings, path: str, sent: bytes, sentence: str
) -> None:
    settings.MCP = {**settings.MCP, "LIMITS": {"document": 20}}
    peer.send = sent
    user = User.objects.create_user("lee")
    with pytest.raises(DocumentError, match=sentence):
        fetch_document(usable_sites()["peer"], path, user)


# -- comparing -------------------------------------------------------------------------


CREATE = "POST /tickets"


@pytest.fixture
def row() -> OpenApiDocument:
    row = stored()
    make_tools(row, ["GET /tickets", CREATE], Registry(), None)
    return row


def again(row: OpenApiDocument, change: Any) -> None:
    document = copy.deepcopy(DOCUMENT)
    change(document["paths"])
    store(json.dumps(document).encode(), usable_sites()["helpdesk"], row=row)


def with_urgency(paths: Any) -> None:
    post = paths["/tickets"]["post"]
    post["summary"] = "Open a ticket"
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    schema["properties"]["urgency"] = {"type": "integer"}


def standings(row: OpenApiDocument) -> dict[str, str]:
    return {each.operation.key: each.standing.value for each in compare_operations(row)}


def key_of(row: OpenApiDocument, key: str) -> int:
    return int(row.imported.get(key=key).pk)


def test_nothing_changed(row: OpenApiDocument) -> None:
    for change in (
        lambda paths: paths.setdefault("/new", {"get": {}}),
        # No column shows a tag.
        lambda paths: paths["/tickets"]["post"].update(tags=["new"]),
    ):
        again(row, change)
        assert standings(row) == {"GET /tickets": "same", CREATE: "same"}


def test_taking_over(row: OpenApiDocument) -> None:
    tool = published(Tool.objects.get(name="create_ticket"))
    version = tool.published
    again(row, with_urgency)
    assert take_over(row, [key_of(row, CREATE)], Registry(), None) == ([tool], [])
    tool.refresh_from_db()
    assert "urgency" in tool.json("input_schema")["properties"]
    assert tool.json("config")["body"]["json"]["urgency"] == "{{urgency}}"
    # Clients see what was published.
    assert tool.published == version
    assert standings(row)[CREATE] == "same"
    assert take_over(row, [key_of(row, CREATE)], Registry(), None) == ([], [])


def test_json_that_means_the_same_is_not_ones_own(row: OpenApiDocument) -> None:
    tool = Tool.objects.get(name="create_ticket")
    tool.config = json.dumps(tool.json("config"), indent=4)
    tool.save()
    again(row, with_urgency)
    _changed, own = take_over(row, [key_of(row, CREATE)], Registry(), None)
    assert own == []


def test_what_is_gone(row: OpenApiDocument) -> None:
    again(row, lambda paths: paths["/tickets"].pop("post"))
    assert standings(row)[CREATE] == "gone"
    assert take_over(row, [key_of(row, CREATE)], Registry(), None) == ([], [])
    assert Tool.objects.filter(name="create_ticket").exists()


def test_what_cannot_be_a_tool_any_more(row: OpenApiDocument) -> None:
    def wants_a_file(paths: Any) -> None:
        paths["/tickets"]["post"]["requestBody"]["content"] = {"image/png": {}}

    again(row, wants_a_file)
    (barred,) = (each for each in compare_operations(row) if each.bar)
    assert barred.bar == "it wants a file"
    assert take_over(row, [key_of(row, CREATE)], Registry(), None) == ([], [])


# -- making ----------------------------------------------------------------------------


BOTH = ["GET /tickets", "POST /tickets"]


def made(keys: list[str] = BOTH, **changes: Any) -> list[Tool]:
    return make_tools(stored(**changes), keys, Registry(), None)


def test_tools_are_made() -> None:
    author = User.objects.create_user("lee")
    row = stored()
    listing, creating = make_tools(row, BOTH, Registry(), author)
    assert (listing.name, creating.name) == ("list_tickets", "create_ticket")
    assert (listing.kind, listing.tags) == ("http", "tickets")
    assert listing.published is None
    assert listing.updated_by == author
    assert (listing.read_only, listing.idempotent) == (True, True)
    assert (creating.read_only, creating.destructive) == (False, False)
    assert creating.title == "Create a ticket"
    assert creating.json("config")["body"] == {"json": {"subject": "{{subject}}"}}
    assert creating.json("input_schema")["required"] == ["subject"]
    # Lint has looked at them: one that has no description cannot be published.
    assert listing.to_fix == 1
    assert creating.to_fix == 0
    assert {each.key for each in row.imported.all()} == {*BOTH}


def test_what_is_left_out() -> None:
    keys = ["GET /tickets", "POST /upload", "GET /gone", "GET /tickets"]
    assert [each.name for each in made(keys)] == ["list_tickets"]
    assert [each.name for each in made(BOTH)] == ["create_ticket"]
    assert made(BOTH) == []


def test_names_that_are_taken() -> None:
    Tool.objects.create(name="list_tickets")
    registry = Registry()
    registry.tool("list_tickets_2")(lambda: "")
    (tool,) = make_tools(stored(), ["GET /tickets"], registry, None)
    assert tool.name == "list_tickets_3"


@pytest.mark.parametrize(
    ("method", "hints"),
    [
        ("put", (False, False, True)),
        ("patch", (False, False, None)),
        ("delete", (False, True, True)),
    ],
)
def test_what_methods_change(method: str, hints: tuple[Any, ...]) -> None:
    paths = {"/x": {method: {"summary": "X"}}}
    (tool,) = made([f"{method.upper()} /x"], paths=paths)
    assert (tool.read_only, tool.destructive, tool.idempotent) == hints


def test_tags() -> None:
    tags = ["Orders & Invoices", "a b", "x" * 90, *[f"{n}" * 60 for n in range(9)]]
    (tool,) = made(["GET /x"], paths={"/x": {"get": {"tags": tags}}})
    assert tool.tags.startswith("orders-invoices a-b xxx")
    assert len(tool.tags) <= 500


def test_texts_without_hidden_characters() -> None:
    get = {"summary": "A\u200bB\nC", "description": "D\u202eE\nF\x00"}
    row = stored(paths={"/x": {"get": get}})
    (offer,) = offers_in(row).values()
    columns = columns_of(offer)
    assert columns["title"] in ("AB C", "ABC")
    assert columns["description"] == "DE\nF"
    (tool,) = make_tools(row, ["GET /x"], Registry(), None)
    tool.full_clean()


def test_all_or_none() -> None:
    row = stored()
    # What was stored by hand, or by an older version, may be refused.
    offers = row.unpack_offers()
    offers[1]["input_schema"] = {"type": "string"}
    row.offers = pack_offers(offers)
    row.save()
    with pytest.raises(DocumentError, match="POST /tickets cannot become a tool"):
        make_tools(row, BOTH, Registry(), None)
    assert not Tool.objects.exists()
    assert not ImportedOperation.objects.exists()


def test_many_operations_of_one_name() -> None:
    paths: Any = {f"/{'a' * 200}/{n}": {"get": {}} for n in range(30)}
    names = [each.name for each in made([f"GET {each}" for each in paths], paths=paths)]
    assert len({*names}) == 30
