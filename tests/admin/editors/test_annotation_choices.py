from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.hints import (
    AUDIENCES,
    IMPORTANCES,
    audience_of,
    importance_of,
    merge,
)


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("importance", IMPORTANCES)
def test_choices_come_back(audience: str, importance: str) -> None:
    annotations = merge({"lastModified": "x"}, audience, importance)
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
    assert merge(annotations, *shown) == annotations


def test_what_is_chosen_is_written() -> None:
    assert merge({}, "user assistant", "1") == {
        "audience": ["user", "assistant"],
        "priority": 1,
    }
    assert merge({"audience": ["user"], "priority": 0.8}, "", "0.25") == {
        "priority": 0.25
    }
    assert merge({"priority": 0.8}, "", "") == {}
    assert importance_of({"priority": 0.8}) == "0.8"
