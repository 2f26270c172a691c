"""Documents are read from a file or from the site, and what they offer is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from mcp_app.egress.sites import sites
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.models import OpenApiDocument
from mcp_app.publishing.openapi import fetch, offers_in, site_of, store
from tests.egress.peer import Peer, answer, peer_in_thread

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
    return store(content(**changes), sites()["helpdesk"])


def test_a_document_is_kept() -> None:
    author = User.objects.create_user("lee")
    row = store(content(), sites()["helpdesk"], location="/a.json", author=author)
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
    again = store(content(info={"title": "New"}), sites()["helpdesk"], known=row)
    assert again.pk == row.pk
    assert OpenApiDocument.objects.get().title == row.title


def test_a_known_document_that_is_gone() -> None:
    row = stored()
    OpenApiDocument.objects.all().delete()
    with pytest.raises(DocumentError, match="somebody has deleted this document"):
        store(content(), sites()["helpdesk"], known=row)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (b"{", "no JSON that can be read"),
        (content(paths={}), "has no operation that can be a tool"),
        (b'{"swagger": "2.0"}', "Swagger 2.0"),
    ],
)
def test_nothing_is_stored_of_what_cannot_be_read(given: bytes, sentence: str) -> None:
    with pytest.raises(DocumentError, match=sentence):
        store(given, sites()["helpdesk"])
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


def test_a_site_that_is_not_there() -> None:
    assert site_of("helpdesk").title == "Help desk"
    with pytest.raises(DocumentError, match="no site “gone”"):
        site_of("gone")


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
    assert fetch(sites()["peer"], "/openapi?format=json", user) == content()
    assert peer.received[0].target == "/api/openapi?format=json"
    assert peer.received[0].header("X-Key") == ["a-long-key"]


@pytest.mark.parametrize(
    ("path", "sent", "sentence"),
    [
        ("a.json", b"", "must begin with “/”"),
        ("/" + "a" * 500, b"", "The path is longer than 500 characters."),
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
        fetch(sites()["peer"], path, user)
