"""What staff may change of what code declares, beside what the code says."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.forms.overlay import from_code
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.rules import AccessRequirements
from mcp_app.models import Prompt, Tool
from mcp_app.models.definitions import Source

HINTS = ("read_only", "destructive", "idempotent", "open_world")
TEXTS = ("title", "description", "tags", "permission", "groups", "rule")
BARE = dict.fromkeys((*TEXTS, "timeout", "position"), "")
RIGHTS = AccessRequirements(permissions=("a.b", "a.c"))
GROUPS = AccessRequirements(groups=(frozenset({"B", "A"}), frozenset({"C"})))


def test_of_what_says_nothing_there_is_nothing_to_show() -> None:
    assert from_code(PromptDefinition(name="p")) == BARE
    of_tools = dict.fromkeys(
        (*HINTS, "app", "calls_per_minute", "task", "approval"), ""
    )
    assert from_code(ToolDefinition(name="t")) == {**BARE, **of_tools}


@pytest.mark.parametrize(
    ("definition", "column", "text"),
    [
        (PromptDefinition(name="p", timeout=5.0), "timeout", "5"),
        (PromptDefinition(name="p", timeout=0.25), "timeout", "0.25"),
        (PromptDefinition(name="p", position=-3), "position", "-3"),
        (PromptDefinition(name="p", tags=frozenset({"b", "a"})), "tags", "a b"),
        (PromptDefinition(name="p", demands=RIGHTS), "permission", "a.b, a.c"),
        # One of the first, and one of the second.
        (PromptDefinition(name="p", demands=GROUPS), "groups", "A or B; C"),
        (ToolDefinition(name="t", hints=ToolHints(read_only=True)), "read_only", "yes"),
        (ToolDefinition(name="t", hints=ToolHints(read_only=False)), "read_only", "no"),
    ],
)
def test_what_the_code_says(definition: Definition, column: str, text: str) -> None:
    assert from_code(definition)[column] == text


@pytest.mark.parametrize("model", [Tool, Prompt])
def test_each_column_of_an_overlay_can_be_said(model: Any) -> None:
    definition = {Tool: ToolDefinition, Prompt: PromptDefinition}[model](name="x")
    row = model(name="x", source=Source.CODE, kind="function")
    # Code keeps no values.
    kept = {"keeps_values", "hidden_values"}
    assert from_code(definition).keys() == {*row.content_columns()} - kept
