from __future__ import annotations

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.kinds.function import FunctionKind
from mcp_app.kinds.kind import KindError, Problem, only
from mcp_app.kinds.text import TextKind
from mcp_app.protocol.json_types import JsonObject


@pytest.mark.parametrize(
    ("definition", "config"),
    [
        (ToolDefinition(name="a"), {"content": [{"type": "text", "text": "a"}]}),
        (ResourceDefinition(name="a", uri="x:a"), {"text": "a"}),
        (
            ResourceTemplateDefinition(name="a", uri_template="x:{a}"),
            {"text": "{{a}}"},
        ),
        (
            PromptDefinition(name="a"),
            {"messages": [{"content": {"type": "text", "text": "a"}}]},
        ),
    ],
)
def test_problems_look_at_what_the_definition_is(
    definition: Definition, config: JsonObject
) -> None:
    assert TextKind().problems(definition, config) == []
    assert [each.field for each in TextKind().problems(definition, {})] == ["config"]


def test_only_names_the_members_that_mean_something() -> None:
    only({"a": 1}, "a", "b")
    with pytest.raises(KindError) as caught:
        only({"c": 1}, "a", "b")
    assert caught.value.message == "“c” means nothing here; there can be: a, b."


def test_problems_compare_by_value() -> None:
    assert Problem("a", "b") == Problem("a", "b")


def test_a_kind_has_nothing_to_add_by_itself() -> None:
    definition = ToolDefinition(name="t")
    assert FunctionKind(Registry()).findings(definition, {}) == []
