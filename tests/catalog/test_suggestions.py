from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_app.catalog.stops import fitting, suggestions_of
from mcp_app.interface.definitions import PromptArgument, ToolDefinition
from tests.catalog.lint_cases import TEMPLATE, asking

COLOURS = ("Red", "dark red", "green", "Infrared", "REDDISH")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", list(COLOURS)),
        ("red", ["Red", "REDDISH", "dark red", "Infrared"]),
        ("RED", ["Red", "REDDISH", "dark red", "Infrared"]),
        ("g", ["green"]),
        ("blue", []),
    ],
)
def test_what_begins_so_comes_before_what_holds_it(
    typed: str, found: list[str]
) -> None:
    assert fitting(COLOURS, typed).values == found


def test_case_is_that_of_all_languages() -> None:
    assert fitting(["Straße"], "STRASSE").values == ["Straße"]


def test_what_is_suggested_by_name() -> None:
    tone = PromptArgument(name="tone", suggestions=("kind",))
    assert suggestions_of(asking(tone, PromptArgument(name="a"))) == {"tone": ("kind",)}
    assert suggestions_of(ToolDefinition(name="a")) == {}
    suggested = {"id": ("7",)}
    assert suggestions_of(replace(TEMPLATE, suggestions=suggested)) == suggested
