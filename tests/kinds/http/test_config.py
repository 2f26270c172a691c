"""What is told of a config that cannot be a call of another site."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pytest_django import Settings

from mcp_app.kinds.http.config import SCHEMA, describe_call, read_http_config
from mcp_app.kinds.kind import Incomplete
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject

TICKET: Final[JsonObject] = {
    "site": "helpdesk",
    "method": "POST",
    "path": "/tickets/{{queue}}",
    "query": [{"name": "expand", "value": "{{expand}}", "style": "commas"}],
    "headers": [{"name": "Accept-Language", "value": "{{language}}"}],
    "body": {"json": {"subject": "{{subject}}", "source": "chat"}},
    "take": "ticket",
    "keep": ["id", "url"],
    "limit": 50,
    "errors": {"404": "There is no queue {{queue}}."},
}
NAMES: Final = ["queue", "expand", "language", "subject"]


@pytest.fixture(autouse=True)
def helpdesk(settings: Settings) -> None:
    settings.MCP = {
        "HTTP": {
            "helpdesk": {
                "title": "Help desk",
                "url": "https://help.example.com/api",
                "secret_headers": {"X-Partner": "canary-in-a-header"},
                "secret_query": {"key": "canary-in-the-query"},
            }
        }
    }


def told(config: JsonObject) -> list[str]:
    assert not schemas.compile_schema(SCHEMA).violations(config)
    call, problems = read_http_config(config, NAMES, "parameter")
    assert (call is None) is bool(problems)
    return [each.message for each in problems]


def test_a_call() -> None:
    assert told(TICKET) == []
    call, _ = read_http_config(TICKET, NAMES, "parameter")
    assert call is not None
    assert call.url == "https://help.example.com/api/tickets/{{queue}}"
    assert not call.only_reads


def test_what_is_only_missing() -> None:
    missing = {"": "Choose a site.", "helpdesk": "Write the path, such as /tickets."}
    for site, sentence in missing.items():
        config: JsonObject = {"site": site} if site else {}
        _, (problem,) = read_http_config(config, NAMES, "parameter")
        assert isinstance(problem, Incomplete)
        assert problem.message == sentence


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"site": "other"}, "no site “other” that can be used. There is: helpdesk."),
        ({"path": "tickets"}, "The path must begin with “/”, such as /tickets."),
        ({"path": "/a?b=c"}, "The path has '?'. Write what follows a “?” in the rows"),
        ({"path": "/a#b"}, "The path has '#'."),
        ({"path": "/a\\b"}, "The path has"),
        ({"path": "/a\nb"}, "The path has"),
        ({"path": "/50%"}, "The path has a “%” that encodes nothing: write %25."),
        ({"path": "/../x"}, "A segment of the path is “.” or “..”."),
        ({"path": "/%2e%2e/x"}, "A segment of the path is “.” or “..”."),
        ({"path": "/{queue}"}, "“{queue}” is not replaced. Write {{queue}}."),
        ({"path": "/{{queu}}"}, "{{queu}} is not a parameter. Did you mean {{queue}}?"),
        ({"query": [{"name": "key", "value": "x"}]}, "“key” is set by the settings"),
        (
            {"headers": [{"name": "x-partner", "value": "x"}]},
            "The header x-partner cannot be set here: it belongs to the settings.",
        ),
        ({"headers": [{"name": "Cookie", "value": "x"}]}, "cannot be set here"),
        ({"headers": [{"name": "content-type", "value": "x"}]}, "cannot be set here"),
        ({"headers": [{"name": "X-Forwarded-For", "value": "x"}]}, "cannot be set"),
        ({"headers": [{"name": "X-HTTP-Method-Override", "value": "x"}]}, "cannot"),
        ({"headers": [{"name": "X-A", "value": "a\r\nb"}]}, "a line break"),
        ({"headers": [{"name": "X A", "value": "a"}]}, "is no name of a header"),
        ({"method": "GET"}, "GET has no body. Choose POST, or leave the body out."),
        ({"body": {"text": "a", "type": "a\nb"}}, "a line break"),
        ({"keep": ["a", "a.b"]}, "“a” holds “a.b” already. Leave one of them out."),
        ({"errors": {"404": "{{no}}"}}, "{{no}} is not a parameter."),
    ],
)
def test_what_is_wrong(part: JsonObject, sentence: str) -> None:
    (said,) = told({**TICKET, **part})
    assert sentence in said


def test_paths() -> None:
    for path in ("/", "/a b/é", "/a%20b", "/{{queue}}.json", "/a:b;c=d", "/a//b/"):
        assert told({**TICKET, "path": path}) == []


@pytest.mark.parametrize(
    "part",
    [
        {"method": "HEAD"},
        {"query": [{"name": "", "value": ""}]},
        {"query": [{"name": "a", "value": "", "style": "csv"}]},
        {"body": {"json": 1, "text": ""}},
        {"body": {"text": ""}},
        {"take": "a..b"},
        {"keep": [""]},
        {"limit": 0},
        {"errors": {"abc": ""}},
        {"errors": {"600": ""}},
        {"url": "https://evil.example"},
    ],
)
def test_shapes_that_no_row_can_have(part: dict[str, Any]) -> None:
    assert schemas.compile_schema(SCHEMA).violations({**TICKET, **part})


def test_a_site_that_needs_nothing(settings: Settings) -> None:
    settings.MCP = {"HTTP": {}}
    assert told(TICKET) == ["The settings have no site “helpdesk” that can be used."]


# -- description -----------------------------------------------------------------------


def test_a_call_part_by_part() -> None:
    form = {"body": {"form": [{"name": "subject", "value": "{{subject}}"}]}}
    assert list(describe_call({**TICKET, "segments": "several", **form})) == [
        ("Calls", "POST https://help.example.com/api/tickets/{{queue}}"),
        ("Reaches outside this site", "Help desk"),
        ("Last value of the path", "may have slashes in it"),
        ("Pair after the “?”", "expand: {{expand}} (commas)"),
        ("Header", "Accept-Language: {{language}}"),
        ("Body", "subject: {{subject}}"),
        ("What clients get", "ticket: id, url"),
        ("At most", "50 entries"),
        ("If the site refuses", "404: There is no queue {{queue}}."),
    ]
    gone = {"site": "gone", "path": "/a", "body": {"text": "b", "type": "text/plain"}}
    assert list(describe_call(gone)) == [
        ("Calls", "GET /a"),
        ("Reaches outside this site", "gone"),
        ("Body", "text/plain: b"),
        ("What clients get", "all of it"),
    ]
