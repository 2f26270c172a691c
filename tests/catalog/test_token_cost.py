from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_app.catalog.definition_texts import tokens
from mcp_app.interface.definitions import Definition
from mcp_app.protocol import jsonrpc, listing
from mcp_app.protocol.revisions import LATEST
from tests.catalog.lint_cases import CITY, CLEAN, TOOL, taking, tool


def test_the_tokens_of_a_tool_are_those_of_its_entry() -> None:
    definition = taking({**CITY, "description": "Zürich"})
    entry = jsonrpc.write(listing.tool(definition, LATEST)).decode()
    assert tokens(definition) == -(-len(entry) // 4)
    assert tokens(TOOL) < tokens(replace(TOOL, title="A title of some length"))


@pytest.mark.parametrize("definition", CLEAN)
def test_every_definition_takes_tokens(definition: Definition) -> None:
    assert tokens(definition) > 5


def test_what_has_no_json_form_takes_no_tokens() -> None:
    assert tokens(tool(input_schema={"type": object()})) == 0
