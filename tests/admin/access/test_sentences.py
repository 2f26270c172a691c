"""The sentences of the page *Who can see it*: numbers, names, and who is meant."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.translation import override

from mcp_app.admin.access.sentences import (
    ANYONE,
    NOBODY_CAN,
    ONE_CAN,
    ONE_CANNOT,
    USES,
    and_superusers,
    anonymous,
    counted_text,
    describe_people,
    join_alternatives,
)
from mcp_app.catalog.row_loader import MODELS

MARKS = "a\u202eb"


@pytest.mark.parametrize(
    ("number", "at_most", "text"),
    [
        (0, True, "Nobody can list and call this tool."),
        (1, True, "At most 1 person can list and call this tool: ana."),
        (1234, True, "At most 1,234 people can list and call this tool: ana."),
    ],
)
def test_how_many_can(number: int, at_most: bool, text: str) -> None:
    with override("en"):
        assert counted_text("tool", number, "ana", at_most=at_most) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["b", "a"], "a or b"), ({"c", "b", "a"}, "a, b or c")],
)
def test_one_is_enough(names: Any, text: str) -> None:
    assert join_alternatives(names) == text


def test_what_hides_in_a_name_is_seen() -> None:
    assert "\u202e" not in join_alternatives([MARKS])
    assert "\u202e" not in describe_people([MARKS], [[MARKS]])


@pytest.mark.parametrize(
    ("permissions", "groups", "text"),
    [
        ([], [], "everyone who may log in at this site"),
        (["a.b", "a.c"], [], "everyone with a.b and a.c"),
        ([], [["B", "A"], ["C"]], "everyone in A or B and C"),
        (["a.b"], [["A"]], "everyone in A with a.b"),
    ],
)
def test_of_whom_it_is_true(permissions: Any, groups: Any, text: str) -> None:
    assert describe_people(permissions, groups) == text


def test_superusers_need_nothing() -> None:
    with override("en"):
        assert and_superusers("all", 0) == "all"
        assert and_superusers("all", 1000) == "all, and 1,000 superusers"


@pytest.mark.parametrize(
    ("access", "text"),
    [
        (("token",), "requires a token."),
        (("session", "token"), "requires authentication (session or token)."),
        (("session",), "requires authentication (session)."),
    ],
)
def test_what_anonymous_callers_are_told(access: tuple[str, ...], text: str) -> None:
    assert anonymous(access).startswith("Anonymous callers cannot: the server ")
    assert anonymous(access).endswith(text)


def test_each_kind_has_each_sentence() -> None:
    kinds = {*MODELS, "server"}
    assert kinds == USES.keys() == NOBODY_CAN.keys() == ANYONE.keys()
    assert kinds == ONE_CAN.keys() == ONE_CANNOT.keys()
