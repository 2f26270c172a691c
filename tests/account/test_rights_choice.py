"""What a program may: only what it asked for, and groups that a row can have."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.account.forms import MAX_TAGS, RightsChoice

FEW = Counter({"orders": 12, "refunds": 3})
MANY = Counter(f"tag{number}" for number in range(MAX_TAGS + 1))


def choice(known: Counter[str] = FEW, may_ask: str = "change", **typed: Any) -> Any:
    usual = {"may": "read", "which": "all", "ends": "30"}
    return RightsChoice({**usual, **typed}, may_ask=may_ask, tags=known)


@pytest.mark.parametrize(
    ("may_ask", "may", "is_valid"),
    [
        ("read", "read", True),
        ("read", "change", False),
        ("change", "change", True),
        ("change", "everything", False),
    ],
)
def test_no_more_than_was_asked_for(may_ask: str, may: str, is_valid: bool) -> None:
    form = choice(may_ask=may_ask, may=may)
    assert form.is_valid() is is_valid
    assert ("also change things" in str(form["may"])) is (may_ask == "change")


@pytest.mark.parametrize(
    ("known", "typed", "chosen"),
    [
        (FEW, {}, ""),
        (FEW, {"tags": ["orders"]}, ""),
        (FEW, {"which": "some", "tags": ["refunds", "orders"]}, "refunds orders"),
        (MANY, {"which": "some", "tags": "tag1, tag2 tag1"}, "tag1 tag2"),
        (Counter[str](), {}, ""),
    ],
)
def test_which_groups(known: Counter[str], typed: Any, chosen: str) -> None:
    form = choice(known, **typed)
    assert form.is_valid(), form.errors
    assert form.chosen_tags() == chosen


@pytest.mark.parametrize(
    ("known", "typed", "said"),
    [
        (FEW, [], "Choose at least one group, or all."),
        (FEW, ["secret"], "Select a valid choice"),
        (Counter[str](), ["orders"], "Select a valid choice"),
        (Counter[str](), [], "Choose at least one group, or all."),
        (MANY, " , ", "Choose at least one group, or all."),
        (MANY, "a " * 20 + "b" * 500, "These are too many groups."),
        (MANY, "a\u202eb", "U+202E"),
    ],
)
def test_what_no_row_can_have(known: Counter[str], typed: Any, said: str) -> None:
    form = choice(known, which="some", tags=typed)
    assert not form.is_valid()
    assert said in str(form.errors["tags"])


def test_no_program_is_let_in_for_ever(settings: Settings) -> None:
    settings.MCP = {**settings.MCP, "ENDLESS_TOKENS": True}
    assert not choice(ends="never").is_valid()
    for until in ("", "2020-01-01", "2999-01-01"):
        assert choice(ends="date", until=until).errors.keys() == {"until"}
    fresh = RightsChoice(may_ask="read", tags=FEW)
    assert 'value="90" selected' in str(fresh["ends"])


def test_groups_say_how_many_tools_they_have() -> None:
    labels = choice().fields["tags"].choices
    assert labels == [("orders", "orders (12)"), ("refunds", "refunds (3)")]
