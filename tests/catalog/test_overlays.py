"""What staff changed, laid over what code declares."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from mcp_app import Approval
from mcp_app.catalog.row_loader import apply_overlay
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


def test_a_column_that_is_named_is_replaced() -> None:
    assert apply_overlay(CODE, {}) == CODE
    columns: JsonObject = {
        **{"title": "Pay back", "description": "", "timeout": 9.0, "position": 0},
        "calls_per_minute": 5,
    }
    for name, value in columns.items():
        assert apply_overlay(CODE, {name: value}) == replace(CODE, **{name: value})
    for tags in ("a b", ""):
        assert apply_overlay(CODE, {"tags": tags}).tags == {*tags.split()}


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


def test_the_stricter_approval_holds() -> None:
    levels: Any = ("", "self", "other")
    functions: Any = {"when": min, "describe": max, "permission": "shop.approve"}
    for code, staff in product(levels, repeat=2):
        declared = Approval(by=code, **functions) if code else None
        made = apply_overlay(replace(CODE, approval=declared), {"approval": staff})
        expected = declared
        if levels.index(staff) > levels.index(code):
            # Who asks for more than the code means every call.
            expected = replace(declared or Approval(by=staff), by=staff, when=None)
        assert (made.approval, made.can_be_task) == (expected, bool(code or staff))
    # A level of another release.
    stored = apply_overlay(CODE, {"approval": "three"})
    assert stored.approval == Approval(by="other")


def test_what_is_no_tool_has_no_hints() -> None:
    prompt = PromptDefinition(name="write")
    made = apply_overlay(prompt, {"title": "Write", "read_only": True})
    assert made == PromptDefinition(name="write", title="Write")
