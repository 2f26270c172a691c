"""The formats of clients: what each is given on stdio, over HTTP, and by links."""

from __future__ import annotations

import base64
import json
import tomllib
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from mcp_app.account.client_configs import CLIENTS
from mcp_app.account.client_formats import (
    TOKEN,
    ClientProgram,
    JsonClient,
    Launch,
    NotMerged,
    cursor_link,
    merge_item,
    quoted_literal,
    vscode_link,
)
from mcp_app.protocol.json_types import JsonObject

LAUNCH = Launch(command="/venv/python", arguments=["/site/manage.py", "mcp_stdio"])
URL = "https://example.org/mcp"
COMMAND: JsonObject = {"command": LAUNCH.command, "args": [*LAUNCH.arguments]}
AUTHORIZED = {"headers": {"Authorization": "Bearer YOUR-TOKEN"}}
ASKED = {"headers": {"Authorization": "Bearer ${input:site-token}"}}
QUESTION: JsonObject = {
    "type": "promptString",
    "id": "site-token",
    "description": "Access token of site",
    "password": True,
}
HOSTILE: Final = """ö"\\]'}\n"""

STDIO: dict[str, JsonObject] = {
    "claude-desktop": {"mcpServers": {"site": COMMAND}},
    "claude-code": {"mcpServers": {"site": {"type": "stdio", **COMMAND}}},
    "cursor": {"mcpServers": {"site": COMMAND}},
    "vscode": {"servers": {"site": {"type": "stdio", **COMMAND}}},
    "gemini": {"mcpServers": {"site": COMMAND}},
    "zed": {"context_servers": {"site": COMMAND}},
    "windsurf": {"mcpServers": {"site": COMMAND}},
}
HTTP: dict[str, JsonObject] = {
    "claude-desktop": {
        "command": "npx",
        "args": [
            *("-y", "mcp-remote", URL),
            *("--header", "Authorization:${AUTH_HEADER}"),
        ],
        "env": {"AUTH_HEADER": "Bearer YOUR-TOKEN"},
    },
    "claude-code": {"type": "http", "url": URL, **AUTHORIZED},
    "cursor": {"url": URL, **AUTHORIZED},
    "vscode": {"type": "http", "url": URL, **ASKED},
    "gemini": {"httpUrl": URL, **AUTHORIZED},
    "zed": {"url": URL, **AUTHORIZED},
    "windsurf": {"serverUrl": URL, **AUTHORIZED},
}


def json_client(name: str) -> JsonClient:
    client = CLIENTS[name]
    assert isinstance(client, JsonClient)
    return client


@pytest.mark.parametrize("name", STDIO)
def test_on_stdio(name: str) -> None:
    assert json.loads(CLIENTS[name].stdio_text("site", LAUNCH)) == STDIO[name]


@pytest.mark.parametrize("name", HTTP)
def test_over_http(name: str) -> None:
    client = json_client(name)
    assert client.http_entry("site", URL, token=TOKEN) == HTTP[name]
    assert "Authorization" not in client.http_text("site", URL)
    written = json.loads(client.http_text("site", URL, token=TOKEN))
    assert written[client.root] == {"site": HTTP[name]}
    assert written.get("inputs") == ([QUESTION] if name == "vscode" else None)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://mcp.internal/mcp", True),
        ("http://127.0.0.1:8000/mcp", False),
        ("http://[::1]:8000/mcp", False),
        (URL, False),
    ],
)
def test_the_bridge_is_told_that_http_is_meant(url: str, asked: bool) -> None:
    arguments = json_client("claude-desktop").http_entry("site", url)["args"]
    assert ("--allow-http" in arguments) is asked


def test_the_tables_have_every_client_with_a_json_file() -> None:
    there = {name for name, each in CLIENTS.items() if isinstance(each, JsonClient)}
    assert there == {*STDIO} == {*HTTP}


@pytest.mark.parametrize("name", ["site", "my site", HOSTILE])
def test_a_toml_file_is_read_as_it_is_meant(name: str) -> None:
    codex = CLIENTS["codex"]
    table = {"url": URL, "http_headers": {"Authorization": "Bearer mcp_x"}}
    text = codex.http_text(name, URL, token="mcp_x")
    assert tomllib.loads(text) == {"mcp_servers": {name: table}}
    bare = {"mcp_servers": {name: {"url": URL}}}
    assert tomllib.loads(codex.http_text(name, URL)) == bare
    launch = Launch(command="/a b/python", arguments=["manage.py", HOSTILE])
    table = {"command": launch.command, "args": [*launch.arguments]}
    text = codex.stdio_text(name, launch)
    assert tomllib.loads(text) == {"mcp_servers": {name: table}}


def test_a_name_that_toml_has_bare_has_no_quotes() -> None:
    assert CLIENTS["codex"].http_text("site", URL).startswith("[mcp_servers.site]\n")


def test_a_client_that_starts_no_server_has_no_text() -> None:
    for name in ("claude", "chatgpt", "python", "typescript", "curl"):
        assert CLIENTS[name].stdio_text("site", LAUNCH) == ""


def test_a_client_without_a_format_of_its_own_gets_the_address() -> None:
    client = ClientProgram(title="A", steps=(), check="", verified=(2026, 11))
    assert client.http_text("site", URL, token=TOKEN) == f"{URL}\n"
    assert client.place_for_people == ""
    assert client.month_checked.isoformat() == "2026-11-01"


@pytest.mark.parametrize("name", ["site", "a&b=c#d ö"])
def test_a_link_for_cursor(name: str) -> None:
    link = urlsplit(cursor_link(name, URL, TOKEN))
    assert (link.scheme, link.netloc) == ("cursor", "anysphere.cursor-deeplink")
    assert link.path == "/mcp/install"
    given = parse_qs(link.query, strict_parsing=True)
    assert given.keys() == {"name", "config"}
    assert given["name"] == [name]
    assert json.loads(base64.b64decode(given["config"][0])) == HTTP["cursor"]
    config = parse_qs(urlsplit(cursor_link(name, URL, "")).query)["config"][0]
    assert json.loads(base64.b64decode(config)) == {"url": URL}


def test_a_link_for_vs_code_asks_for_the_token() -> None:
    path, _, query = vscode_link("site", URL, TOKEN).partition("?")
    assert path == "vscode:mcp/install"
    assert "%7B" in query
    about = {"name": "site", "type": "http", "url": URL}
    assert json.loads(unquote(query)) == {**about, **ASKED, "inputs": [QUESTION]}
    bare = vscode_link("site", URL, "").partition("?")[2]
    assert json.loads(unquote(bare)) == about


def test_texts_are_quoted_alike_for_three_languages() -> None:
    said = quoted_literal('\N{GRINNING FACE}"\\')
    assert json.loads(said) == tomllib.loads(f"a = {said}")["a"]


# -- json merging ----------------------------------------------------------------------


JSON_CLIENTS: Final = {
    name: client for name, client in CLIENTS.items() if isinstance(client, JsonClient)
}


@pytest.fixture(params=JSON_CLIENTS)
def client(request: pytest.FixtureRequest) -> JsonClient:
    return JSON_CLIENTS[request.param]


def test_what_else_is_in_a_file_stays_in_its_order(client: JsonClient) -> None:
    others: JsonObject = {"z": {"command": "x"}, "site": {"command": "old"}, "a": 1}
    before: JsonObject = {"theme": "dark", client.root: others, "last": ["ü", None]}
    written = json.dumps(before, ensure_ascii=False)
    merged = client.merge_entry(written, "site", {"command": "new"})
    expected = {**before, client.root: {**others, "site": {"command": "new"}}}
    assert json.loads(merged) == expected
    assert list(json.loads(merged)) == list(before)
    assert list(json.loads(merged)[client.root]) == list(others)
    assert "ü" in merged
    assert client.merge_entry(merged, "site", {"command": "new"}) == merged


ENTRY: JsonObject = {"command": "new", "args": ["a"]}
LINES = """{
\t"number": 1E5,
\t"%s": {
\t\t"o": {"x":  1.10, "y": "\\ud800"}%s
\t},
\t"z": [1,
2]
}"""
OURS = """,
\t\t"site": {
\t\t\t"command": "new",
\t\t\t"args": [
\t\t\t\t"a"
\t\t\t]
\t\t}"""


@pytest.mark.parametrize("before", ["", OURS, ',\n\t\t"site": null'])
def test_the_rest_of_a_file_stays_to_the_byte(client: JsonClient, before: str) -> None:
    merged = client.merge_entry(LINES % (client.root, before), "site", ENTRY)
    assert merged == LINES % (client.root, OURS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a":1}', '{"a":1, "mcpServers": {"site": {"command": "new"}}}'),
        ('{"mcpServers":{ }}', '{"mcpServers":{"site": {"command": "new"}}}'),
        ('{"mcpServers":{"site":0}}', '{"mcpServers":{"site":{"command": "new"}}}'),
        (
            '\n{\n "mcpServers": {}\n}\n',
            '\n{\n "mcpServers": {\n  "site": {\n   "command": "new"\n  }\n }\n}\n',
        ),
    ],
)
def test_a_file_is_as_spread_as_it_was(before: str, after: str) -> None:
    client = JSON_CLIENTS["cursor"]
    assert client.merge_entry(before, "site", {"command": "new"}) == after
    assert client.merge_entry(after, "site", {"command": "new"}) == after


@pytest.mark.parametrize("empty", ["", " \n", "{}"])
def test_a_file_that_is_empty(client: JsonClient, empty: str) -> None:
    merged = client.merge_entry(empty, "site", {"command": "new"})
    assert json.loads(merged) == {client.root: {"site": {"command": "new"}}}


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "7", '{"mcpServers": []}', '// mine\n{"a": 1}', "{", "[" * 100_000),
        '{"mcpServers": {}, "mcpServers": {}}',
        '{"mcpServers": {"a": 1, "a": 2}}',
        '{"a": ' + "1" * 5_000 + "}",
    ],
)
def test_what_is_not_understood_is_not_merged(text: str) -> None:
    with pytest.raises(NotMerged):
        JSON_CLIENTS["cursor"].merge_entry(text, "site", {})


# -- what VS Code asks for ----------------------------------------------------------


def with_token(text: str, name: str = "site") -> str:
    client = JSON_CLIENTS["vscode"]
    return client.merge_entry(text, name, client.http_entry(name, URL, token=TOKEN))


@pytest.mark.parametrize("before", ["", "{}", '{"a": 1}', '{"inputs": []}'])
def test_a_server_brings_its_question_along(before: str) -> None:
    merged = json.loads(with_token(before))
    [asked] = merged["inputs"]
    header = merged["servers"]["site"]["headers"]["Authorization"]
    assert (asked["id"], asked["password"]) == ("site-token", True)
    assert header == "Bearer ${input:site-token}"


def test_other_questions_stay_to_the_byte() -> None:
    mine = '{\n "inputs": [\n  {"id": "x",  "n": 1E5}\n ],\n "z": 0\n}'
    merged = with_token(mine)
    begin, _, end = mine.partition("\n ],")
    assert merged.startswith(f'{begin},\n  {{\n   "type": "promptString",')
    assert "\n ]," + end.partition("\n}")[0] in merged
    assert [each["id"] for each in json.loads(merged)["inputs"]] == ["x", "site-token"]
    assert with_token(merged) == merged
    both = json.loads(with_token(merged, "shop"))
    assert len(both["inputs"]) == 3


@pytest.mark.parametrize("inputs", ["7", '{"a": 1}', "null", '"site-token"'])
def test_questions_that_are_no_list_are_not_merged(inputs: str) -> None:
    with pytest.raises(NotMerged):
        with_token(f'{{"inputs": {inputs}}}')


def test_items_that_are_no_objects_stay() -> None:
    text = '{"inputs": [1, "x"]}'
    merged = merge_item(text, "inputs", {"id": "x"})
    assert merged == '{"inputs": [1, "x", {"id": "x"}]}'


def test_without_a_token_nothing_is_asked() -> None:
    client = JSON_CLIENTS["vscode"]
    merged = client.merge_entry("{}", "site", client.http_entry("site", URL))
    assert json.loads(merged) == {"servers": {"site": {"type": "http", "url": URL}}}
