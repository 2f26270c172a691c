"""Calls of another site as staff describe them, without scripts and without JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import pytest
from django.test import Client
from pytest_django import Settings

from mcp_app.models import Resource, ResourceTemplate, Tool
from tests.admin.pages import errors, fill_in, form_page, page, saved, shown_values

pytestmark = [pytest.mark.django_db]

ROW = "config-0"
Queries: TypeAlias = Callable[[int], AbstractContextManager[object]]
PARAMETERS = json.dumps(
    {
        "type": "object",
        "properties": {
            "queue": {"type": "string", "description": "Which queue."},
            "subject": {"type": "string", "description": "What it is about."},
        },
        "required": ["queue"],
    }
)
TICKET = {
    "site": "helpdesk",
    "method": "POST",
    "path": "/tickets/{{queue}}",
    "query": [{"name": "expand", "value": "user", "as": "commas"}],
    "headers": [{"name": "Accept-Language", "value": "de"}],
    "body": {"json": {"subject": "{{subject}}", "source": ["chat", 5]}},
    "take": "ticket",
    "keep": ["id", "user.name"],
    "most": 5,
    "errors": {"404": "There is no queue {{queue}}."},
}


def _rows(**typed: Any) -> dict[str, Any]:
    return {f"{ROW}-{name.replace('__', '-')}": value for name, value in typed.items()}


def _config(model: Any = Tool) -> Any:
    return model.objects.get().json("config")


def _tool(config: Any) -> str:
    row = Tool.objects.create(
        name="ticket",
        kind="http",
        config=json.dumps(config),
        input_schema=PARAMETERS,
        read_only=False,
    )
    return page("tool", "change", row.pk)


def test_a_tool_is_made(admin_client: Client) -> None:
    made = fill_in(
        admin_client,
        form_page("tool", "http"),
        name="ticket",
        title="Ticket",
        **_rows(
            site="helpdesk",
            method="POST",
            path="/tickets",
            sends="json",
            body='{"subject": "Cake", "n": 5}',
            take="ticket",
            keep="id, url",
            querys__0__name="expand",
            querys__0__value="user",
            headerss__0__name="Accept-Language",
            headerss__0__value="de",
            errorss__0__status="404",
            errorss__0__value="There is no queue.",
        ),
    )
    assert saved(made)
    assert _config() == {
        "site": "helpdesk",
        "path": "/tickets",
        "method": "POST",
        "body": {"json": {"subject": "Cake", "n": 5}},
        "query": [{"name": "expand", "value": "user"}],
        "headers": [{"name": "Accept-Language", "value": "de"}],
        "take": "ticket",
        "keep": ["id", "url"],
        "errors": {"404": "There is no queue."},
    }


def test_what_nobody_touches_stays(admin_client: Client) -> None:
    url = _tool(TICKET)
    before = Tool.objects.get().config
    assert saved(fill_in(admin_client, url, title="Ticket"))
    assert Tool.objects.get().config == before


@pytest.mark.parametrize("effect", ["reads", "adds"])
def test_it_always_reaches_outside(admin_client: Client, effect: str) -> None:
    """As clients are told, and as the page *Publish* says."""
    url = _tool(TICKET)
    box = 'name="changes-open_world" checked disabled'
    assert box in admin_client.get(url).content.decode()
    assert saved(fill_in(admin_client, url, changes=effect))
    assert Tool.objects.get().open_world is True


def test_one_part_is_changed(admin_client: Client) -> None:
    url = _tool(TICKET)
    typed = _rows(path="/new/{{queue}}/{{subject}}", querys__0__value="all")
    assert saved(fill_in(admin_client, url, **typed))
    assert _config() == {
        **TICKET,
        "path": "/new/{{queue}}/{{subject}}",
        "query": [{"name": "expand", "value": "all", "as": "commas"}],
    }


def test_the_last_value_may_have_several_segments(admin_client: Client) -> None:
    url = _tool(TICKET)
    assert saved(fill_in(admin_client, url, **_rows(several="on")))
    assert _config() == {**TICKET, "segments": "several"}
    assert saved(fill_in(admin_client, url, **_rows(several=None)))
    assert _config() == TICKET


def test_rows_are_removed(admin_client: Client) -> None:
    url = _tool(TICKET)
    typed = _rows(querys__0__DELETE="on", errorss__0__DELETE="on")
    assert saved(fill_in(admin_client, url, **typed))
    assert "query" not in _config()
    assert "errors" not in _config()


@pytest.mark.parametrize(
    ("typed", "body"),
    [
        ({"sends": ""}, None),
        (
            {"sends": "text", "body": "Hello {{subject}}"},
            {"text": "Hello {{subject}}", "type": "text/plain; charset=utf-8"},
        ),
        (
            {"sends": "text", "body": "<a/>", "media_type": "application/xml"},
            {"text": "<a/>", "type": "application/xml"},
        ),
        (
            {"sends": "form", "forms__0__name": "a", "forms__0__value": "{{subject}}"},
            {"form": [{"name": "a", "value": "{{subject}}"}]},
        ),
        ({"sends": "json", "body": '"{{subject}}"'}, {"json": "{{subject}}"}),
    ],
)
def test_bodies(admin_client: Client, typed: dict[str, str], body: Any) -> None:
    url = _tool(TICKET)
    assert saved(fill_in(admin_client, url, **_rows(**typed)))
    assert _config().get("body") == body


def test_a_pasted_address_is_taken_apart(admin_client: Client) -> None:
    url = _tool({**TICKET, "query": []})
    path = "/tickets/{{queue}}?a=b%20c&d={{subject}}"
    assert saved(fill_in(admin_client, url, **_rows(path=path)))
    assert _config()["path"] == "/tickets/{{queue}}"
    assert _config()["query"] == [
        {"name": "a", "value": "b c"},
        {"name": "d", "value": "{{subject}}"},
    ]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"body": "{"}, "JSON"),
        ({"path": "tickets"}, "The path must begin with “/”, such as /tickets."),
        ({"path": "/{queue}"}, "“{queue}” is not replaced. Write {{queue}}."),
        ({"path": "/{{queu}}"}, "{{queu}} is not a parameter."),
        ({"headerss__0__name": "Cookie"}, "The header Cookie cannot be set here"),
        ({"querys__1__value": "x"}, "Write it, or remove this row."),
        ({"method": "GET"}, "GET has no body."),
    ],
)
def test_what_is_wrong_is_told(
    admin_client: Client, typed: dict[str, str], sentence: str
) -> None:
    url = _tool(TICKET)
    before = Tool.objects.get().config
    answer = fill_in(admin_client, url, **_rows(**typed))
    assert sentence in answer.content.decode()
    assert errors(answer)
    assert Tool.objects.get().config == before


def test_the_sentence(admin_client: Client) -> None:
    shown = admin_client.get(_tool(TICKET)).content.decode()
    assert (
        "This tool calls POST https://help.example.com/api/tickets/{{queue}} of Help"
        " desk and gives id, user.name of “ticket”. It adds or changes things." in shown
    )
    # The page says whose key is sent, and does not show it.
    assert "This site&#x27;s key is sent" in shown or "This site's key is sent" in shown
    assert "a-key-of-the-help-desk" not in shown


def test_a_site_that_is_gone_stays_chosen(
    admin_client: Client, settings: Settings
) -> None:
    url = _tool(TICKET)
    settings.MCP = {"HTTP": {"other": {"url": "https://other.example"}}}
    shown = admin_client.get(url)
    assert shown_values(shown)[f"{ROW}-site"] == "helpdesk"
    assert "The settings have no site “helpdesk”" in shown.content.decode()


def test_a_config_that_the_page_cannot_show(admin_client: Client) -> None:
    url = _tool({**TICKET, "timeout": 5})
    shown = admin_client.get(url).content.decode()
    assert "This page cannot show all of it" in shown


def test_a_resource(admin_client: Client) -> None:
    made = fill_in(
        admin_client,
        form_page("resource", "http"),
        name="rates",
        uri="rates://today",
        **_rows(site="helpdesk", path="/rates"),
    )
    assert saved(made)
    assert _config(Resource) == {"site": "helpdesk", "path": "/rates"}


def test_a_template(admin_client: Client) -> None:
    made = fill_in(
        admin_client,
        form_page("resourcetemplate", "http"),
        name="ticket",
        uri_template="ticket://{id}",
        **_rows(site="helpdesk", path="/tickets/{{id}}"),
    )
    assert saved(made)
    assert _config(ResourceTemplate)["path"] == "/tickets/{{id}}"


def test_a_resource_that_sends(admin_client: Client) -> None:
    row = Resource.objects.create(
        name="r", uri="rates://today", kind="http", config=json.dumps(TICKET)
    )
    shown = admin_client.get(page("resource", "change", row.pk)).content.decode()
    assert "This page cannot show all of it" in shown


@pytest.mark.parametrize("rows", [0, 40])
def test_queries_of_the_page(
    admin_client: Client, django_assert_max_num_queries: Queries, rows: int
) -> None:
    """At any number of rows."""
    for number in range(rows):
        Tool.objects.create(name=f"t{number}", title="T", kind="http")
    url = _tool(TICKET)
    admin_client.get(url)
    with django_assert_max_num_queries(10):
        admin_client.get(url)
