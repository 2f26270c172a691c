"""The table of clients: what each is told, and what stays of its file."""

from __future__ import annotations

import json
import shlex

import pytest

from mcp_app.account.client_configs import (
    CLIENTS,
    TOKEN,
    ClientProgram,
    Launch,
    NotMerged,
    command_line,
)
from mcp_app.protocol.json_types import JsonObject

LAUNCH = Launch(command="/venv/python", arguments=["/site/manage.py", "mcp_stdio"])
URL = "https://example.org/mcp"
COMMAND: JsonObject = {
    "command": "/venv/python",
    "args": ["/site/manage.py", "mcp_stdio"],
}
AUTHORIZED = {"headers": {"Authorization": "Bearer YOUR-TOKEN"}}

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
            *("--header", "Authorization: Bearer YOUR-TOKEN"),
        ],
    },
    "claude-code": {"type": "http", "url": URL, **AUTHORIZED},
    "cursor": {"url": URL, **AUTHORIZED},
    "vscode": {"type": "http", "url": URL, **AUTHORIZED},
    "gemini": {"httpUrl": URL, **AUTHORIZED},
    "zed": {"url": URL, **AUTHORIZED},
    "windsurf": {"serverUrl": URL, **AUTHORIZED},
}


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(name: str) -> ClientProgram:
    return CLIENTS[name]


def test_on_stdio(name: str, client: ClientProgram) -> None:
    written = client.document("site", client.on_stdio(LAUNCH))
    assert json.loads(written) == STDIO[name]


def test_over_http(name: str, client: ClientProgram) -> None:
    assert client.over_http(URL, token=TOKEN) == HTTP[name]
    assert "YOUR-TOKEN" not in str(client.over_http(URL))


def test_each_is_told_where(client: ClientProgram) -> None:
    assert client.title
    assert bool(client.file) != bool(client.elsewhere)
    assert not client.file.startswith(("/", "~", ".."))


def test_what_else_is_in_a_file_stays_in_its_order(client: ClientProgram) -> None:
    others: JsonObject = {"z": {"command": "x"}, "site": {"command": "old"}, "a": 1}
    before: JsonObject = {"theme": "dark", client.root: others, "last": ["ü", None]}
    merged = client.merged(_compact(before), "site", {"command": "new"})
    expected = {**before, client.root: {**others, "site": {"command": "new"}}}
    assert json.loads(merged) == expected
    assert list(json.loads(merged)) == list(before)
    assert list(json.loads(merged)[client.root]) == list(others)
    assert "ü" in merged
    assert client.merged(merged, "site", {"command": "new"}) == merged


def _compact(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False)


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
def test_what_else_is_in_a_file_stays_to_the_byte(
    client: ClientProgram, before: str
) -> None:
    merged = client.merged(LINES % (client.root, before), "site", ENTRY)
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
    client = CLIENTS["cursor"]
    assert client.merged(before, "site", {"command": "new"}) == after
    assert client.merged(after, "site", {"command": "new"}) == after


@pytest.mark.parametrize("empty", ["", " \n", "{}"])
def test_a_file_that_is_empty(client: ClientProgram, empty: str) -> None:
    merged = client.merged(empty, "site", {"command": "new"})
    assert merged == client.document("site", {"command": "new"})


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
        CLIENTS["cursor"].merged(text, "site", {})


def test_a_line_for_a_terminal() -> None:
    line = command_line("my site", URL, "mcp_x")
    assert shlex.split(line) == [
        *("claude", "mcp", "add", "--transport", "http", "my site", URL),
        *("--header", "Authorization: Bearer mcp_x"),
    ]
    assert "--header" not in command_line("site", URL, "")
