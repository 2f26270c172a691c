"""Calls of another site as staff describe them, without scripts and without JSON."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from mcp_app.admin.editors.site_call.paste import call_from_text
from mcp_app.kinds.http.config import read_http_config
from mcp_app.kinds.http.request import FORM
from mcp_app.models import Resource, ResourceTemplate, Tool
from tests.admin.pages import (
    Queries,
    add,
    errors,
    fill_in,
    fill_in_again,
    form_page,
    page_of,
    save,
    shown_values,
    text_of,
    words_of,
)

pytestmark = [pytest.mark.django_db]

ROW = "config-0"
TEXT = {"type": "string", "description": "What it is."}
PARAMETERS = json.dumps(
    {
        "type": "object",
        "properties": {"queue": TEXT, "subject": TEXT},
        "required": ["queue"],
    }
)
TICKET = {
    "site": "helpdesk",
    "method": "POST",
    "path": "/tickets/{{queue}}",
    "query": [{"name": "expand", "value": "user", "style": "commas"}],
    "headers": [{"name": "Accept-Language", "value": "de"}],
    "body": {"json": {"subject": "{{subject}}", "source": ["chat", 5]}},
    "take": "ticket",
    "keep": ["id", "user.name"],
    "limit": 5,
    "errors": {"404": "There is no queue {{queue}}."},
}


def _rows(**typed: Any) -> dict[str, Any]:
    return {f"{ROW}-{name.replace('__', '-')}": value for name, value in typed.items()}


def _tool(config: Any) -> Tool:
    return Tool.objects.create(
        name="ticket",
        kind="http",
        config=json.dumps(config),
        input_schema=PARAMETERS,
        read_only=False,
    )


def test_a_tool_is_made(admin_client: Client) -> None:
    typed = _rows(
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
        errorss__0__name="404",
        errorss__0__value="There is no queue.",
    )
    tool = add(admin_client, Tool, "http", name="ticket", title="Ticket", **typed)
    assert tool.json("config") == {
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
    tool = _tool(TICKET)
    before = tool.config
    save(admin_client, tool, title="Ticket")
    assert tool.config == before


@pytest.mark.parametrize("effect", ["reads", "adds"])
def test_it_always_reaches_outside(admin_client: Client, effect: str) -> None:
    """As clients are told, and as the page *Publish* says."""
    tool = _tool(TICKET)
    assert 'name="changes-open_world" checked disabled' in text_of(admin_client, tool)
    save(admin_client, tool, changes=effect)
    assert tool.open_world is True


def test_parts_are_changed_and_removed(admin_client: Client) -> None:
    tool = _tool(TICKET)
    path = "/new/{{queue}}/{{subject}}"
    save(admin_client, tool, **_rows(path=path, querys__0__value="all", several="on"))
    query = {"name": "expand", "value": "all", "style": "commas"}
    changed = {**TICKET, "path": path, "query": [query]}
    # The last value may have several segments.
    assert tool.json("config") == {**changed, "segments": "several"}
    save(admin_client, tool, **_rows(several=None))
    assert tool.json("config") == changed
    removed = _rows(querys__0__DELETE="on", errorss__0__DELETE="on")
    save(admin_client, tool, **removed)
    assert tool.json("config").keys().isdisjoint({"query", "errors"})


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
    tool = _tool(TICKET)
    save(admin_client, tool, **_rows(**typed))
    assert tool.json("config").get("body") == body


AT = "https://help.example.com/api/tickets/5?lang=en"
KEY = "(the site's key is in the settings)"
DOUBT = "(this looks like a key: write it below if it is none)"
HERE = "help.example.com/api/tickets/5"
JSON = {"type": "application/json"}
VERBOSE = "application/json;odata=verbose"
SENT: list[tuple[str, Any, str]] = [
    (r"""--json $'{"n": "\x21\xc3\xa9 \u00e9\'"}'""", {"json": {"n": "!é é'"}}, ""),
    (
        r'''--json "{\"a\": \"\$5\", \
  \"b\": \"\\\\\"}"''',
        {"json": {"a": "$5", "b": "\\"}},
        "",
    ),
    (
        '^\n -H ^"A: ^" --json ^"^{^\\^"n^\\^":^\\^"a ^& b^\\^"^}^"',
        {"json": {"n": "a & b"}},
        "Left out: the header A.",
    ),
    (
        "--json '{\"a\":' --json ' <price>}'",
        {"text": '{"a": <price>}', **JSON},
        "sent as this text.",
    ),
    (
        """--json '{"sig": "x", "a": {"appid": "y", "code": 5}}'""",
        {"json": {"a": {"code": 5}}},
        f"Left out: appid {DOUBT}, sig {DOUBT}.",
    ),
    ("--data-raw @a -d b", {"text": "@a&b", "type": FORM}, "sent as this text."),
    ("--data-urlencode =a=b", {"text": "a%3Db", "type": FORM}, "sent as this text."),
    ("--data-urlencode a@b -d c=d", {"form": [{"name": "c", "value": "d"}]}, "files."),
    ("-d a=b -o x -x http://p | jq", {"form": [{"name": "a", "value": "b"}]}, "“|”."),
    ("-d a=b; echo", {"form": [{"name": "a", "value": "b"}]}, "“;”."),
    ("`\n -d a=b| jq", {"form": [{"name": "a", "value": "b"}]}, "“|”."),
    (r"""--json $'{"n": "caf\xe9"}'""", {"json": {"n": "café"}}, ""),
    ("-d []", {"json": []}, "The body is JSON, so it is sent as application/json."),
    (f"-d [] -H 'Content-Type: {VERBOSE}'", {"json": [], "type": VERBOSE}, ""),
    (
        """-d "$A \\$B "'$C'"$(date)" -H "A: $D" -o $E""",
        {"text": "$A $B $C$(date)", "type": FORM},
        "place of $A, what a shell puts in place of $(date, what a shell puts in place"
        " of $D.",
    ),
]
"""What follows an address in a command, which body that is, and what is said."""


@pytest.mark.parametrize(("words", "body", "told"), SENT)
def test_bodies_of_curl(words: str, body: Any, told: str) -> None:
    call = call_from_text(f"$ curl --url {HERE} {words}")
    assert (call.config["method"], call.config["body"]) == ("POST", body)
    assert call.sentence.endswith(told)


@pytest.mark.parametrize(
    ("pasted", "config", "told"),
    [
        (AT, {"query": [{"name": "lang", "value": "en"}]}, "GET at Help desk."),
        ("help.example.com:443/api/tickets/5", {}, "GET at Help desk."),
        (
            f"curl '{AT}&api_key=s3cret' -H 'Authorization: Bearer s3cret' -b s3cret"
            " -kLu a:s3cret -H 'X-Partner: s3cret' --weird s3cret -d @s3cret",
            {"query": [{"name": "lang", "value": "en"}], "method": "POST"},
            f"Left out: ?api_key {KEY}, -u {KEY}, cookies, --weird,"
            f" the header Authorization {KEY}, the header X-Partner {KEY}, files.",
        ),
        (
            'curl help.example.com/api/tickets/5 -XPUT -d $\'{"n": "\\u0021"}\'',
            {"method": "PUT", "body": {"json": {"n": "!"}}},
            "PUT at Help desk.",
        ),
        (
            "curl help.example.com/api/tickets/5 -d a=b --data-urlencode 'c=d e'",
            {
                "method": "POST",
                "body": {
                    "form": [{"name": "a", "value": "b"}, {"name": "c", "value": "d e"}]
                },
            },
            "POST at Help desk.",
        ),
        (
            "curl help.example.com/api/tickets/5"
            """ -d '{"user": {"password": "s3cret"}, "max_tokens": 5}'""",
            {"method": "POST", "body": {"json": {"user": {}, "max_tokens": 5}}},
            f"Left out: password {KEY}.",
        ),
        (
            "curl help.example.com/api/tickets/5 -d 'password=s3cret&a=b'",
            {"method": "POST", "body": {"form": [{"name": "a", "value": "b"}]}},
            f"Left out: password {KEY}.",
        ),
        (
            f"curl {AT} -H 'Content-Type: text/x' --data-raw '--a=1' -XPUT -H -b",
            {
                "method": "PUT",
                "query": [{"name": "lang", "value": "en"}],
                "body": {"text": "--a=1", "type": "text/x"},
            },
            "PUT at Help desk.",
        ),
        (
            r"curl 'help.example.com/api/tickets/5?a\[\]=1'",
            {"query": [{"name": "a[]", "value": "1"}]},
            "GET at Help desk.",
        ),
        (
            f"curl '{AT}$' -X 'PUT'",
            {"method": "PUT", "query": [{"name": "lang", "value": "en$"}]},
            "PUT at Help desk.",
        ),
        ("https://kim:s3cret@[/a", None, "“https://[/a” is no address"),
        (f"curl {AT} " + "-d a " * 9_000, None, "at most 1000 words"),
        (f"{AT}&" + "a=b&" * 50, None, "at most 50 pairs of one sort"),
        (
            f"curl help.example.com/api/tickets/5 --json '{'[' * 60_000}'",
            {"method": "POST", "body": {"text": "[" * 60_000, **JSON}},
            "POST at Help desk. The body is no JSON and no form, so it is sent as",
        ),
        (
            AT.replace(".com", ".com.evil.org"),
            None,
            "begins with https://help.example.",
        ),
        (AT.replace("/api/", "/apis/"), None, "Ask a developer to add it."),
        ("<html>\n<p>A page</p>", None, "perhaps the content of a page."),
        ("curl 'https://help", None, "a quote is not closed"),
        ("curl -X", None, "This curl command cannot be read"),
        ("https://[", None, "is no address"),
        (f"curl -X HEAD {AT}", None, "HEAD cannot be called"),
        (f"curl -I {AT}", None, "HEAD cannot be called"),
        (f"curl {AT} -F a=b", None, "-F and -T send files or multipart/form-data"),
        (f"curl {AT} {AT}", None, "several addresses"),
        (f"curl {AT} --json '{{\"pin\": 5, <a>'", None, "is no JSON, and has “pin”"),
        (
            f"curl {AT.replace('?', '?sig=s3cret&')} -H 'X-Signature: s3cret'",
            {"query": [{"name": "lang", "value": "en"}]},
            f"Left out: ?sig {DOUBT}, the header X-Signature {DOUBT}.",
        ),
    ],
)
def test_what_is_pasted_is_taken_apart(
    admin_client: Client, pasted: str, config: Any, told: str
) -> None:
    """And shown, before anything is saved; what is secret is not said again."""
    typed = _rows(paste=pasted) | {"show-config": "paste", "title": "Mine"}
    page = fill_in(admin_client, form_page("tool", "http"), **typed)
    assert told in " ".join(unescape(page.content.decode()).split())
    sent = shown_values(page)
    assert sent["title"] == "Mine"
    assert not Tool.objects.exists()
    if config is None:
        assert sent[f"{ROW}-paste"].split() == pasted.split()
        return
    assert "s3cret" not in page.content.decode()
    shown = json.loads(sent["config-shown"])
    assert shown == {"site": "helpdesk", "path": "/tickets/5", **config}


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        ("bot123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11", True),
        ("a1B2c3D4e5F6g7H8i9J0k1L2", True),
        ("59f3a1c2b7d84e6f90a1b2c3d4e5f607", True),
        ("550e8400-e29b-41d4-a716-446655440000", False),
        ("my-10-best-posts-on-python-3-in-2024", False),
        ("getOrdersOfThisCustomerByName2", False),
        ("2026-01-31T12:00:00.123Z", False),
    ],
)
def test_keys_in_an_address(text: str, is_key: bool) -> None:
    call = call_from_text(f"{HERE}/{text}?a={text}")
    _read, problems = read_http_config(call.config, (), "parameter")
    assert call.left_out == [f"a part of the path {DOUBT}", f"?a {DOUBT}"] * is_key
    assert (text in str(call.config)) is not is_key
    assert [each.message[:20] for each in problems] == ["“•••” stands in the "] * is_key


def test_what_changes_becomes_a_parameter(admin_client: Client) -> None:
    body = {"json": {"n": 5, "open": True, "who": {"name": "Ann"}}}
    tool = _tool({**TICKET, "path": "/tickets/7", "body": body, "errors": {}})
    named = {"1": "number", "4": "n", "6": "who"}
    typed = {f"parts__{at}__name": name for at, name in named.items()}
    typed |= {"parts__1__description": "Which ticket.", "parts__6__optional": "on"}
    save(admin_client, tool, **_rows(**typed))
    config, schema = tool.json("config"), tool.json("input_schema")
    assert config["path"] == "/tickets/{{number}}"
    body["json"] |= {"n": "{{n}}", "who": {"name": "{{who}}"}}
    assert config["body"] == body
    about = {"type": "string", "examples": ["7"], "description": "Which ticket."}
    assert schema["properties"]["number"] == about
    assert schema["properties"]["n"] == {"type": "number", "examples": [5]}
    assert schema["required"] == ["queue", "number", "n"]
    # What stands in the path is never left out.
    ticks = _rows(parts__1__optional="on", parts__4__optional="on")
    save(admin_client, tool, **ticks, **_rows(parts__6__optional=None))
    assert tool.json("input_schema")["required"] == ["queue", "number", "who"]
    # A name that is taken away leaves the example, and one that changes its schema.
    save(admin_client, tool, **_rows(parts__1__name="id", parts__4__name=""))
    assert tool.json("config")["body"]["json"]["n"] == 5
    assert tool.json("input_schema")["properties"]["id"] == about
    assert "n" not in tool.json("input_schema")["properties"]
    typed = _rows(parts__0__name="a b", parts__5__description="x")
    wrong = fill_in(admin_client, page_of(tool), **typed)
    assert "“a b” cannot name a parameter" in errors(wrong)["config"]
    assert "Name it, or leave the rest of the line" in errors(wrong)["config"]
    told = wrong.content.decode().partition("mcp-errors")[2]
    assert "entry" not in told.partition("What changes")[0]


def test_a_wrong_name_in_own_words_opens_them(admin_client: Client) -> None:
    tool = _tool(TICKET)
    typed = {"errorss__0__name": "404", "errorss__0__value": "No {{sampel}}."}
    told = fill_in(admin_client, page_of(tool), **_rows(**typed)).content.decode()
    assert f'href="#id_{ROW}-errorss-0-value"' in told
    assert '<details class="mcp-filter wrong" open' in told


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
    tool = _tool(TICKET)
    before = tool.config
    answer = fill_in(admin_client, page_of(tool), **_rows(**typed))
    assert sentence in answer.content.decode()
    assert errors(answer)
    tool.refresh_from_db()
    assert tool.config == before


def test_a_name_that_no_parameter_has_is_added(admin_client: Client) -> None:
    url = page_of(_tool(TICKET))
    named = fill_in(admin_client, url, **_rows(path="/tickets/{{number}}"))
    assert "{{number}} is not a parameter." in errors(named)["config"]
    assert 'value="add number"' in named.content.decode()
    adding = {"show-config": "add number"}
    added = fill_in_again(admin_client, url, named, **adding)
    assert 'value="add number"' not in added.content.decode()
    assert (
        "number" in json.loads(shown_values(added)["input_schema-json"])["properties"]
    )


def test_what_it_calls_is_told(admin_client: Client) -> None:
    shown = words_of(admin_client, _tool(TICKET))
    called = "It calls <strong>POST https://help.example.com/api/tickets/{{queue}}"
    assert called in shown
    # The page says whose key is sent, and does not show it.
    assert "This site's key is sent, whoever calls." in shown
    assert "Ask for a permission or a group if not everybody may." in shown
    assert "a-key-of-the-help-desk" not in shown
    url = f"{form_page('tool', 'http')}&site=helpdesk"
    assert "Choose a site." not in admin_client.get(url).content.decode()


def test_a_site_that_is_gone_stays_chosen(
    admin_client: Client, settings: Settings
) -> None:
    tool = _tool(TICKET)
    settings.MCP = {"HTTP": {"other": {"url": "https://other.example"}}}
    shown = admin_client.get(page_of(tool))
    assert shown_values(shown)[f"{ROW}-site"] == "helpdesk"
    assert "The settings have no site “helpdesk”" in shown.content.decode()


def test_a_config_that_the_page_cannot_show(admin_client: Client) -> None:
    """Such as a resource that sends."""
    sends = Resource.objects.create(
        name="r", uri="rates://today", kind="http", config=json.dumps(TICKET)
    )
    for row in (_tool({**TICKET, "timeout": 5}), sends):
        assert "This page cannot show all of it" in text_of(admin_client, row)


def test_a_resource_and_a_template(admin_client: Client) -> None:
    typed = {"name": "rates", "uri": "rates://today"}
    sent = _rows(site="helpdesk", path="/rates")
    resource = add(admin_client, Resource, "http", **typed, **sent)
    assert resource.json("config") == {"site": "helpdesk", "path": "/rates"}
    typed = {"name": "ticket", "uri_template": "ticket://{id}"}
    sent = _rows(site="helpdesk", path="/tickets/{{id}}")
    template = add(admin_client, ResourceTemplate, "http", **typed, **sent)
    assert template.json("config")["path"] == "/tickets/{{id}}"


@pytest.mark.parametrize("rows", [0, 40])
def test_queries_of_the_page(
    admin_client: Client, django_assert_max_num_queries: Queries, rows: int
) -> None:
    """At any number of rows."""
    for number in range(rows):
        Tool.objects.create(name=f"t{number}", title="T", kind="http")
    url = page_of(_tool(TICKET))
    admin_client.get(url)
    with django_assert_max_num_queries(10):
        admin_client.get(url)
