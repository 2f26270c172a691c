from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_app.admin.editors.hints import (
    AUDIENCES,
    IMPORTANCES,
    Answer,
    Hints,
    answer_of,
    audience_of,
    hints_of_answer,
    importance_of,
    merge_annotations,
)

THREE = (None, True, False)


def test_an_answer_that_nobody_changed_changes_nothing() -> None:
    every = [Hints(*values) for values in product(THREE, repeat=4)]
    changed = [each for each in every if hints_of_answer(answer_of(each), each) != each]
    assert changed == []


@pytest.mark.parametrize(
    ("answer", "hints"),
    [
        (Answer("reads"), Hints(True, None, False, False)),
        (Answer("adds", idempotent=True), Hints(False, False, True, False)),
        (Answer("deletes", open_world=True), Hints(False, True, False, True)),
        (Answer("", open_world=True), Hints(None, None, None, True)),
        (Answer(), Hints()),
    ],
)
def test_the_first_answer(answer: Answer, hints: Hints) -> None:
    assert hints_of_answer(answer, Hints()) == hints
    assert answer_of(hints) == answer


def test_what_is_shown() -> None:
    assert answer_of(Hints(True, True)).effect == "reads"
    assert answer_of(Hints(None, False)).effect == "adds"
    assert answer_of(Hints(None, True)).effect == "deletes"
    # The protocol's default.
    assert answer_of(Hints(False, None)).effect == "deletes"


def test_a_new_answer_leaves_the_boxes_that_nobody_touched() -> None:
    before = Hints(True, None, None, True)
    after = hints_of_answer(Answer("adds", open_world=True), before)
    assert after == Hints(False, False, None, True)
    assert hints_of_answer(Answer("reads"), before) == Hints(True, None, None, False)
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
