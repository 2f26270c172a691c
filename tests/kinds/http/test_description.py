"""A call of another site in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.interface.definitions import (
    Definition,
    ResourceDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.kinds.http.config import HttpCall, sentence
from tests.kinds.http.test_request import SITE

TOOL = ToolDefinition(name="a")
READS = ToolDefinition(name="a", hints=ToolHints(read_only=True))
RESOURCE = ResourceDefinition(name="r", uri="rates://today")
URL = "https://peer.example/a/{{b}} of Peer"


@pytest.mark.parametrize(
    ("definition", "parts", "said"),
    [
        (
            TOOL,
            {},
            f"This tool calls GET {URL} and gives what it answers. It only reads.",
        ),
        (
            TOOL,
            {"method": "POST", "take": "c"},
            f"This tool calls POST {URL} and gives “c”. It adds or changes things.",
        ),
        (
            READS,
            {"method": "POST", "keep": ("c", "d")},
            f"This tool calls POST {URL} and gives c, d. It only reads.",
        ),
        (
            TOOL,
            {"method": "DELETE", "take": "c", "keep": ("d",)},
            f"This tool calls DELETE {URL} and gives d of “c”. It deletes things.",
        ),
        (RESOURCE, {}, f"This reads {URL} and gives what it answers."),
    ],
)
def test_sentences(definition: Definition, parts: dict[str, Any], said: str) -> None:
    call = HttpCall(site=SITE, path="/a/{{b}}", **{"method": "GET", **parts})
    assert sentence(call, definition) == said
