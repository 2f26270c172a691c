"""Messages under the requests in which a client of each revision sends them."""

from __future__ import annotations

import ast
import json
import shlex
from typing import Any, Final

import pytest

from mcp_app.admin.trying.answers import LONGEST, MOST, Address, curl, exchanges, python
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.revisions import LATEST, REVISIONS
from mcp_app.transports.in_process import Message

URL: Final = "https://example.org/mcp"
OPEN: Final = Address(URL, needs_token=False)
CLOSED: Final = Address(URL, needs_token=True)
SESSION: Final = "Mcp-Session-Id: the one that initialize returned"


def sent(method: str, **params: Any) -> Message:
    value = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Message(True, json.dumps(value, ensure_ascii=False).encode())


def head(message: Message, version: str, address: Address = OPEN) -> list[str]:
    [shown] = exchanges([message], address, REVISIONS[version])
    assert shown.title == "From the client"
    head, _, body = shown.text.partition("\n\n")
    assert json.loads(body) == json.loads(message.text)
    return head.splitlines()


@pytest.mark.parametrize(
    ("version", "opening", "calling"),
    [
        ("2024-11-05", [], [SESSION]),
        ("2025-03-26", [], [SESSION]),
        ("2025-06-18", [], ["MCP-Protocol-Version: 2025-06-18", SESSION]),
        ("2025-11-25", [], ["MCP-Protocol-Version: 2025-11-25", SESSION]),
        (
            "2026-07-28",
            ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: initialize"],
            [
                "MCP-Protocol-Version: 2026-07-28",
                "Mcp-Method: tools/call",
                "Mcp-Name: add",
            ],
        ),
    ],
)
def test_the_headers_of_each_revision(
    version: str, opening: list[str], calling: list[str]
) -> None:
    both = [
        f"POST {URL}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ]
    assert head(sent("initialize"), version) == [*both, *opening]
    assert head(sent("tools/call", name="add"), version) == [*both, *calling]


def test_a_token_is_asked_for_and_not_shown() -> None:
    for version in REVISIONS:
        assert "Authorization: Bearer YOUR-TOKEN" in head(sent("ping"), version, CLOSED)
        assert not any("Auth" in each for each in head(sent("ping"), version))


def test_parameters_that_headers_repeat() -> None:
    schema = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "on": {"type": "boolean", "x-mcp-header": "On"},
            "no": {"type": "string", "x-mcp-header": "No"},
        }
    }
    address = Address(URL, False, mirrored_parameters(schema))
    arguments = {"region": "São Paulo", "count": 5, "on": True, "no": None}
    message = sent("tools/call", name="a", arguments=arguments)
    assert head(message, LATEST.version, address)[-3:] == [
        "Mcp-Param-Region: =?base64?U8OjbyBQYXVsbw==?=",
        "Mcp-Param-Count: 5",
        "Mcp-Param-On: true",
    ]
    assert not any("Param" in each for each in head(message, "2025-11-25", address))


def test_an_address_is_repeated_so_that_no_header_breaks() -> None:
    message = sent("resources/read", uri="x:é\r\nX-Evil: 1")
    [*_, name] = head(message, LATEST.version)
    assert name == "Mcp-Name: =?base64?eDrDqQ0KWC1FdmlsOiAx?="


def test_what_comes_back_is_shown_as_text() -> None:
    long = Message(False, b'"' + b"a" * LONGEST * 2)
    broken = Message(False, b"\xff\x1b[31m \xe2\x80\xae")
    shown = [*exchanges([long, broken], OPEN, LATEST)]
    assert {each.title for each in shown} == {"From the server"}
    assert len(shown[0].text) == LONGEST
    assert shown[1].text == "�⟦U+001B⟧[31m ⟦U+202E⟧"
    assert len([*exchanges([long] * 1_000, OPEN, LATEST)]) == MOST


def test_curl_sends_the_same() -> None:
    text = 'it\'s "$(id)" `id` \\ \n ä \u202e'
    message = sent("tools/call", name="add", arguments={"a": text})
    line = curl([message, Message(False, b"{}")], CLOSED, LATEST)
    assert line.isascii()
    words = [each for each in shlex.split(line) if each != "\n"]
    assert words[:3] == ["curl", "-sS", URL]
    assert json.loads(words[words.index("--data") + 1]) == json.loads(message.text)
    headers = [words[at + 1] for at, each in enumerate(words) if each == "-H"]
    assert "Mcp-Name: add" in headers
    assert "Authorization: Bearer YOUR-TOKEN" in headers


def test_python_sends_the_same() -> None:
    """Also for a session: its client opens one by itself."""
    arguments = {"a": [True, None, 'it\'s "\u202e"', 10**30]}
    called = sent("tools/call", name="add", arguments=arguments, _meta={})
    program = python([sent("initialize"), called], CLOSED)
    assert f"URL = {json.dumps(URL)}" in program
    assert '"Bearer YOUR-TOKEN"' in program
    assert program.isascii()
    [call] = [
        node
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "client.call_tool"
    ]
    assert [ast.literal_eval(each) for each in call.args] == ["add", arguments]
    assert "read_resource('a:b')" in python([sent("resources/read", uri="a:b")], OPEN)
    assert not python([sent("completion/complete")], OPEN)


def test_of_a_session_there_is_no_one_line() -> None:
    for version in REVISIONS.keys() - {LATEST.version}:
        assert curl([sent("ping")], OPEN, REVISIONS[version]) == ""
    assert curl([], OPEN, LATEST) == ""
