from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_app.catalog.findings import Level
from mcp_app.catalog.server_lint import server_findings
from mcp_app.interface.definitions import Definition
from mcp_app.interface.server import ServerDefinition
from tests.catalog.lint_cases import FOUND_OF_SERVERS, SERVER, TOOL, many, tool


@pytest.mark.parametrize(("server", "definitions", "rules"), FOUND_OF_SERVERS)
def test_rules_of_servers(
    server: ServerDefinition, definitions: list[Definition], rules: list[str]
) -> None:
    found = server_findings(server, definitions)
    assert [each.rule for each in found] == rules


SENTENCES_OF_SERVERS: list[tuple[list[Definition], str, str]] = [
    (
        many(41),
        "",
        "Support desk offers 41 tools. Cursor shows at most 40, and models choose"
        " worse if there are many. Use tags to split the server, let its clients"
        " search, or name fewer in code (only=[…]).",
    ),
    (
        many(1, meta={"a": "a" * 50_000}),
        "",
        "The tools of Support desk take ≈ 12,552 tokens of the model's memory on"
        " every request; more than 10,000 is a lot. Shorten descriptions, or use tags"
        " to split the server.",
    ),
    (
        [TOOL, TOOL],
        "name",
        "Another tool of the server Support desk is called weather.",
    ),
    (
        [TOOL, tool(name="other")],
        "description",
        "The tools weather, other have the same description, so models cannot tell "
        "which one to use.",
    ),
]


@pytest.mark.parametrize(("definitions", "field", "sentence"), SENTENCES_OF_SERVERS)
def test_sentences_of_servers(
    definitions: list[Definition], field: str, sentence: str
) -> None:
    [found] = server_findings(SERVER, definitions)
    assert (found.field, found.message) == (field, sentence)


def test_a_server_without_a_title_has_its_address() -> None:
    [found] = server_findings(replace(SERVER, title=""), [TOOL, TOOL])
    assert found.level is Level.MUST_FIX
    assert found.message == "Another tool of the server support is called weather."
