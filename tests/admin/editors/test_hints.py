from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_app.admin.editors.hints import Answer, answer_of, hints_of_answer
from mcp_app.admin.forms.resource import (
    AUDIENCES,
    IMPORTANCES,
    audience_of,
    importance_of,
    merge_annotations,
)
from mcp_app.interface.definitions import ToolHints
from mcp_app.models import Tool

THREE = (None, True, False)


def hints_of(*values: bool | None) -> ToolHints:
    return ToolHints(**dict(zip(Tool.HINTS, values, strict=False)))


def test_an_answer_that_nobody_changed_changes_nothing() -> None:
    every = [hints_of(*values) for values in product(THREE, repeat=4)]
    changed = [each for each in every if hints_of_answer(answer_of(each), each) != each]
    assert changed == []


@pytest.mark.parametrize(
    ("answer", "hints"),
    [
        (Answer("reads"), hints_of(True, None, False, False)),
        (Answer("adds", idempotent=True), hints_of(False, False, True, False)),
        (Answer("deletes", open_world=True), hints_of(False, True, False, True)),
        (Answer("", open_world=True), hints_of(None, None, None, True)),
        (Answer(), hints_of()),
    ],
)
def test_the_first_answer(answer: Answer, hints: ToolHints) -> None:
    assert hints_of_answer(answer, hints_of()) == hints
    assert answer_of(hints) == answer


def test_what_is_shown() -> None:
    assert answer_of(hints_of(True, True)).effect == "reads"
    assert answer_of(hints_of(None, False)).effect == "adds"
    assert answer_of(hints_of(None, True)).effect == "deletes"
    # The protocol's default.
    assert answer_of(hints_of(False, None)).effect == "deletes"


def test_a_new_answer_leaves_the_boxes_that_nobody_touched() -> None:
    before = hints_of(True, None, None, True)
    after = hints_of_answer(Answer("adds", open_world=True), before)
    assert after == hints_of(False, False, None, True)
    assert hints_of_answer(Answer("reads"), before) == hints_of(True, None, None, False)
    # A choice that is made cannot be taken back by sending none.
    assert hints_of_answer(Answer("", open_world=True), before) == before


# -- annotation choices ----------------------------------------------------------------


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("importance", IMPORTANCES)
def test_choices_come_back(audience: str, importance: str) -> None:
    annotations = merge_annotations({"lastModified": "x"}, audience, importance)
    assert annotations["lastModified"] == "x"
    assert audience_of(annotations) == audience
    assert importance_of(annotations) == importance


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {"audience": ["assistant", "user"], "priority": 1.0},
        {"audience": ["user", "user"], "priority": 0.8},
        {"audience": [], "priority": 0},
        {"audience": "user", "priority": "1"},
        {"audience": ["x"], "priority": True},
    ],
)
def test_what_nobody_chose_anew_stays(annotations: dict[str, Any]) -> None:
    shown = audience_of(annotations), importance_of(annotations)
    assert merge_annotations(annotations, *shown) == annotations


def test_what_is_chosen_is_written() -> None:
    assert merge_annotations({}, "user assistant", "1") == {
        "audience": ["user", "assistant"],
        "priority": 1,
    }
    assert merge_annotations({"audience": ["user"], "priority": 0.8}, "", "0.25") == {
        "priority": 0.25
    }
    assert merge_annotations({"priority": 0.8}, "", "") == {}
    assert importance_of({"priority": 0.8}) == "0.8"
