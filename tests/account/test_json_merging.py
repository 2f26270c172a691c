"""Adding a server to somebody's file: what else is in it stays."""

from __future__ import annotations

import json
from typing import Final

import pytest

from mcp_app.account.client_configs import CLIENTS
from mcp_app.account.client_formats import TOKEN, JsonClient, NotMerged, merge_item
from mcp_app.protocol.json_types import JsonObject

JSON_CLIENTS: Final = {
    name: client for name, client in CLIENTS.items() if isinstance(client, JsonClient)
}
URL: Final = "https://example.org/mcp"


@pytest.fixture(params=JSON_CLIENTS)
def client(request: pytest.FixtureRequest) -> JsonClient:
    return JSON_CLIENTS[request.param]


def test_what_else_is_in_a_file_stays_in_its_order(client: JsonClient) -> None:
    others: JsonObject = {"z": {"command": "x"}, "site": {"command": "old"}, "a": 1}
    before: JsonObject = {"theme": "dark", client.root: others, "last": ["ü", None]}
    merged = client.merge(_compact(before), "site", {"command": "new"})
    expected = {**before, client.root: {**others, "site": {"command": "new"}}}
    assert json.loads(merged) == expected
    assert list(json.loads(merged)) == list(before)
    assert list(json.loads(merged)[client.root]) == list(others)
    assert "ü" in merged
    assert client.merge(merged, "site", {"command": "new"}) == merged


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
    client: JsonClient, before: str
) -> None:
    merged = client.merge(LINES % (client.root, before), "site", ENTRY)
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
    assert client.merge(before, "site", {"command": "new"}) == after
    assert client.merge(after, "site", {"command": "new"}) == after


@pytest.mark.parametrize("empty", ["", " \n", "{}"])
def test_a_file_that_is_empty(client: JsonClient, empty: str) -> None:
    merged = client.merge(empty, "site", {"command": "new"})
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
        JSON_CLIENTS["cursor"].merge(text, "site", {})


# -- what VS Code asks for ----------------------------------------------------------


def with_token(text: str, name: str = "site") -> str:
    """Return the file of VS Code with a server that needs a token."""
    client = JSON_CLIENTS["vscode"]
    return client.merge(text, name, client.over_http(name, URL, token=TOKEN))


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
    assert (
        merge_item(text, "inputs", {"id": "x"}) == '{"inputs": [1, "x", {"id": "x"}]}'
    )


def test_without_a_token_nothing_is_asked() -> None:
    client = JSON_CLIENTS["vscode"]
    merged = client.merge("{}", "site", client.over_http("site", URL))
    assert json.loads(merged) == {"servers": {"site": {"type": "http", "url": URL}}}
