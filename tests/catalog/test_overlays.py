"""What staff changed, laid over what code declares."""

from __future__ import annotations

import pytest

from mcp_app.catalog.overlays import apply_overlay
from mcp_app.interface.definitions import PromptDefinition, ToolDefinition, ToolHints
from mcp_app.interface.rules import AccessRequirements
from mcp_app.protocol.json_types import JsonObject

CODE = ToolDefinition(
    name="refund",
    title="Refund",
    description="Pays back.",
    timeout=5.0,
    position=3,
    tags=frozenset({"shop"}),
    demands=AccessRequirements(
        permissions=("shop.refund",), groups=(frozenset({"Support"}),)
    ),
    hints=ToolHints(read_only=False, destructive=True),
)


def test_what_is_not_named_is_as_in_code() -> None:
    assert apply_overlay(CODE, {}) == CODE


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("title", "Pay back"),
        ("description", ""),
        ("timeout", 9.0),
        ("position", 0),
        ("calls_per_minute", 5),
    ],
)
def test_a_column_is_replaced(column: str, value: object) -> None:
    made = apply_overlay(CODE, {column: value})
    assert getattr(made, column) == value
    assert made.name == "refund"
    assert made.demands == CODE.demands


@pytest.mark.parametrize(
    ("tags", "result"), [("a b", {"a", "b"}), ("", set()), (None, {"shop"})]
)
def test_tags_are_replaced_if_they_are_named(
    tags: str | None, result: set[str]
) -> None:
    content: JsonObject = {} if tags is None else {"tags": tags}
    assert apply_overlay(CODE, content).tags == result


def test_demands_are_added_and_none_goes() -> None:
    made = apply_overlay(CODE, {"permission": "shop.audit", "groups": "Night\nDay"})
    assert made.demands.permissions == ("shop.refund", "shop.audit")
    assert made.demands.groups == (frozenset({"Support"}), frozenset({"Night", "Day"}))


def test_the_same_demand_stands_once() -> None:
    made = apply_overlay(CODE, {"permission": "shop.refund", "groups": "Support"})
    assert made.demands == CODE.demands


def test_a_hint_that_is_named_stands_in_place_of_the_codes() -> None:
    made = apply_overlay(CODE, {"destructive": False})
    assert made.hints == ToolHints(read_only=False, destructive=False)
    assert apply_overlay(CODE, {"title": "x"}).hints == CODE.hints


def test_what_is_no_tool_has_no_hints() -> None:
    prompt = PromptDefinition(name="write")
    made = apply_overlay(prompt, {"title": "Write", "read_only": True})
    assert made == PromptDefinition(name="write", title="Write")
