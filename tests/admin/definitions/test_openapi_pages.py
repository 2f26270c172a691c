"""Tools from a document of OpenAPI, as staff make them and look at them again."""

from __future__ import annotations

import copy
import json
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from mcp_app.models import OpenApiDocument, Tool
from tests.admin.pages import Queries, Staff, page, page_of, text_of
from tests.egress.peer import answer, peer_in_thread
from tests.publishing.openapi.test_openapi import (
    DOCUMENT,
    content,
    stored,
    with_urgency,
)

pytestmark = [pytest.mark.django_db]

START = reverse("admin:mcp_app_tool_openapi")
BOTH = ["GET /tickets", "POST /tickets"]


def _url(name: str) -> str:
    pk = OpenApiDocument.objects.get().pk
    return reverse(f"admin:mcp_app_tool_openapi_{name}", args=[pk])


def _file(body: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("openapi.json", body)


def _text(response: Any) -> str:
    assert response.status_code == 200
    return unescape(response.content.decode())


def _read(client: Client, body: bytes | None = None) -> str:
    """Upload a document, and return the page of its operations."""
    sent = {"site": "helpdesk", "file": _file(content() if body is None else body)}
    return _text(client.post(START, sent, follow=True))


def test_from_a_file_to_tools(admin_client: Client) -> None:
    shown = _text(admin_client.get(START))
    assert "Help desk (https://help.example.com/api)" in shown
    shown = _read(admin_client)
    assert "The document offers 3 operations. Nothing is made yet." in shown
    assert "<strong>Help desk</strong> <code>https://help.example.com/api</" in shown
    assert "<code>/tickets</code>" in shown
    assert "Cannot be a tool: it wants a file." in shown
    assert shown.count('type="checkbox" name="key"') == 2
    assert not Tool.objects.exists()
    told = _text(admin_client.post(_url("operations"), {"key": BOTH}, follow=True))
    assert "2 tools were made. Clients do not see them yet." in told
    tools = Tool.objects.order_by("name")
    assert [each.name for each in tools] == ["create_ticket", "list_tickets"]
    for tool in tools:
        assert page_of(tool) in told
    assert told.count('type="checkbox" name="key"') == 0
    history = admin_client.get(page_of(tools[0], "history"))
    assert "Made from Help desk" in _text(history)
    assert "Help desk" in _text(admin_client.get(START))


def test_from_the_site(admin_client: Client, settings: Settings) -> None:
    with peer_in_thread() as peer:
        settings.MCP = {**settings.MCP, "HTTP": peer.settings()}
        peer.send = answer("<html>")
        assert "Help desk has no document at /openapi.json," in _text(
            admin_client.post(START, {"site": "peer"})
        )
        peer.send = answer(content())
        sent = {"site": "peer"}
        told = _text(admin_client.post(START, sent, follow=True))
        assert "The document offers 3 operations." in told
        document = copy.deepcopy(DOCUMENT)
        with_urgency(document["paths"])
        admin_client.post(_url("operations"), {"key": BOTH})
        peer.send = answer(document)
        again = {"path": "/openapi.json"}
        told = _text(admin_client.post(_url("again"), again, follow=True))
    assert "The document was read again." in told
    assert "Changed there" in told


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"site": "gone", "path": "/a"}, "The settings have no site “gone”"),
        ({"path": "/" + "a" * 500}, "The path is longer than 500 characters."),
        ({"path": "a"}, "The path must begin with “/”"),
        ({"file": b"{"}, "no JSON that can be read"),
        ({"file": b'{"swagger": "2.0"}'}, "This is Swagger 2.0."),
        ({"file": b"a: [" * 50_000}, "deeper than 64 levels"),
    ],
)
def test_what_cannot_be_read(
    admin_client: Client, sent: dict[str, Any], sentence: str
) -> None:
    sent = {"site": "helpdesk", **sent}
    if "file" in sent:
        sent["file"] = _file(sent["file"])
    assert sentence in _text(admin_client.post(START, sent))
    assert not OpenApiDocument.objects.exists()


def test_a_file_that_is_too_large(admin_client: Client, settings: Settings) -> None:
    settings.MCP = {**settings.MCP, "LIMITS": {"document": 10}}
    sent = {"site": "helpdesk", "file": _file(content())}
    assert "at most 10 are allowed" in _text(admin_client.post(START, sent))


def test_filters(admin_client: Client) -> None:
    _read(admin_client)
    shown = _text(admin_client.get(_url("operations"), {"q": "create TICKET"}))
    assert "1 fits." in shown
    assert "POST /tickets" in shown
    shown = _text(admin_client.get(_url("operations"), {"reads": "on"}))
    assert "POST /tickets" not in shown
    shown = _text(admin_client.get(_url("operations"), {"tag": "Tickets"}))
    assert "1 fits." in shown
    assert "Nothing fits." in _text(admin_client.get(_url("operations"), {"q": "x y"}))


def test_many_operations(
    admin_client: Client, django_assert_max_num_queries: Queries
) -> None:
    paths = {f"/p{n}": {"get": {"summary": f"<b>{n}</b>"}} for n in range(250)}
    _read(admin_client, content(paths=paths))
    keys = [f"GET /p{n}" for n in range(40)]
    admin_client.post(_url("operations"), {"key": keys})
    with django_assert_max_num_queries(8):
        shown = admin_client.get(_url("operations"), {"page": "2", "q": "p"})
    assert "Page 2 of 3" in _text(shown)
    assert "<b>150</b>" not in shown.content.decode()
    assert "?page=3&amp;q=p" in shown.content.decode()
    with django_assert_max_num_queries(8):
        admin_client.get(_url("operations"))
    with django_assert_max_num_queries(8):
        admin_client.get(_url("again"))


def test_parameters_are_chosen_by_ticks(admin_client: Client) -> None:
    many = [{"name": f"p{n}", "in": "query", "schema": {}} for n in range(60)]
    body = content(paths={p: {"get": {"parameters": many}} for p in ("/x", "/y")})
    shown = _read(admin_client, body)
    assert "60 parameters: choose at most 50, else it gets the first." in shown
    sent = {"key": ["GET /x", "GET /y"], "of GET /x": ["p7", "p58"]}
    assert shown.count('name="of GET /x"') == 60
    admin_client.post(_url("operations"), sent)
    names = {
        each.name: [*json.loads(each.input_schema)["properties"]]
        for each in Tool.objects.all()
    }
    first = [f"p{n}" for n in range(50)]
    assert names == {"get_x": ["p7", "p58"], "get_y": first}
    told = _text(admin_client.post(_url("again"), {"file": _file(body)}, follow=True))
    assert "2 tools are as they are there." in told


def test_nothing_chosen(admin_client: Client) -> None:
    _read(admin_client)
    told = _text(admin_client.post(_url("operations"), {}, follow=True))
    assert "Choose something first." in told


def test_a_document_that_shrank(admin_client: Client) -> None:
    _read(admin_client)
    admin_client.post(_url("operations"), {"key": BOTH})
    small = content(paths={"/tickets": {"get": {}}})
    told = _text(admin_client.post(_url("again"), {"file": _file(small)}, follow=True))
    assert "Gone there" in told
    assert "create_ticket" in told or "Create a ticket" in told
    bad = _text(admin_client.post(_url("again"), {"file": _file(b"{")}))
    assert "no JSON that can be read" in bad
    assert Tool.objects.count() == 2


def test_looking_again(admin_client: Client) -> None:
    _read(admin_client)
    admin_client.post(_url("operations"), {"key": BOTH})
    Tool.objects.filter(name="create_ticket").update(title="My own title")
    document = copy.deepcopy(DOCUMENT)
    with_urgency(document["paths"])
    body = json.dumps(document).encode()
    shown = _text(admin_client.post(_url("again"), {"file": _file(body)}, follow=True))
    assert "1 tool is as it is there." in shown
    assert "Title: yours stays." in shown
    assert "My own title" in shown
    assert "Open" in shown
    operation = OpenApiDocument.objects.get().imported.get(key="POST /tickets")
    sent = {"take": "1", "key": [str(operation.pk), "x"]}
    told = _text(admin_client.post(_url("again"), sent, follow=True))
    assert "1 working copy was changed." in told
    assert "Kept, because they were changed here: create_ticket: title." in told
    tool = Tool.objects.get(name="create_ticket")
    assert (tool.title, tool.description) == ("My own title", "Open a ticket")
    assert "2 tools are as they are there." in told


@pytest.mark.parametrize("key", ["²", "9" * 5000, "9" * 30, "9" * 18, "-1"])
def test_odd_keys(admin_client: Client, key: str) -> None:
    _read(admin_client)
    sent = {"take": "1", "key": key}
    told = _text(admin_client.post(_url("again"), sent, follow=True))
    assert "0 working copies were changed." in told


@pytest.mark.parametrize(
    ("name", "sent"),
    [("operations", {"key": BOTH}), ("again", {"take": "1"}), ("again", {})],
)
def test_a_document_that_somebody_deletes(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, name: str, sent: Any
) -> None:
    """After the page has read its row."""
    _read(admin_client)
    url = _url(name)

    def get(_model: Any, pk: int) -> OpenApiDocument:
        row = OpenApiDocument.objects.get(pk=pk)
        OpenApiDocument.objects.all().delete()
        return row

    pages = "mcp_app.admin.definitions.openapi_pages"
    monkeypatch.setattr(f"{pages}.get_object_or_404", get)
    file = {} if sent else {"file": _file(content())}
    response = admin_client.post(url, {**sent, **file})
    if name == "operations":
        assert response.status_code == 302
        response = admin_client.get(START)
    assert "Meanwhile, somebody has deleted this document." in _text(response)


def test_a_site_that_is_gone(admin_client: Client, settings: Settings) -> None:
    _read(admin_client)
    settings.MCP = {**settings.MCP, "HTTP": {}}
    shown = _text(admin_client.get(_url("operations")))
    assert "The settings have no site “helpdesk” any more." in shown
    assert "A developer must add one first." in _text(admin_client.get(START))


@pytest.mark.parametrize("rights", [("view_tool", "add_tool"), ("view_tool", "behind")])
def test_both_rights_are_needed(staff: Staff, rights: tuple[str, ...]) -> None:
    client = staff(*rights)
    stored()
    for url in (START, _url("operations"), _url("again")):
        assert client.get(url).status_code == 403
        assert client.post(url, {"key": BOTH}).status_code == 403
    assert not Tool.objects.exists()
    assert START not in text_of(client, page("tool"))


def test_taking_over_needs_the_right_to_change(staff: Staff) -> None:
    client = staff("view_tool", "add_tool", "behind")
    stored()
    client.post(_url("operations"), {"key": BOTH})
    assert START in text_of(client, page("tool"))
    assert client.post(_url("again"), {"take": "1", "key": "1"}).status_code == 403
