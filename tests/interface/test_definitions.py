"""Definitions: what a hint means, and what of it clients are told."""

from __future__ import annotations

from itertools import product

import pytest

from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.principal import Scope

SAYS = (None, False, True)


@pytest.mark.parametrize(
    ("read_only", "idempotent", "destructive"), list(product(SAYS, repeat=3))
)
def test_a_tool_only_reads_where_it_says_so_and_by_no_other_hint(
    read_only: bool | None, idempotent: bool | None, destructive: bool | None
) -> None:
    hints = ToolHints(
        read_only=read_only,
        idempotent=idempotent,
        destructive=destructive,
        open_world=False,
    )
    tool = ToolDefinition(name="tool", hints=hints)
    assert tool.only_reads is (read_only is True)
    assert Scope(read_only=True).includes(tool) is tool.only_reads
    assert hints.repeatable is (True in (read_only, idempotent))


@pytest.mark.parametrize(
    "definition",
    [
        PromptDefinition(name="prompt"),
        ResourceDefinition(name="resource", uri="a://b"),
        ResourceTemplateDefinition(name="template", uri_template="a://{b}"),
    ],
)
def test_whatever_is_no_tool_only_reads(definition: Definition) -> None:
    assert definition.only_reads


def test_only_what_is_said_is_told() -> None:
    assert ToolHints().to_wire() == {}
    assert ToolHints(destructive=False, open_world=True).to_wire() == {
        "destructiveHint": False,
        "openWorldHint": True,
    }
    assert ToolHints(read_only=True, idempotent=False).to_wire() == {
        "readOnlyHint": True,
        "idempotentHint": False,
    }


def test_tools_do_not_share_what_one_may_change() -> None:
    first, second = ToolDefinition(name="a"), ToolDefinition(name="b")
    assert first.meta is not second.meta
    assert first.input_schema == {"type": "object", "properties": {}}
    assert first.output_schema is None
