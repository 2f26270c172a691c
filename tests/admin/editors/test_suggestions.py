from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mcp_app.admin.editors.text_answer import (
    SuggestionsField,
    as_lines,
    fit_lines,
    of_lines,
)


@pytest.mark.parametrize(
    ("text", "suggestions"),
    [("", []), (" \n\t\n", []), (" a b \n\nc", ["a b", "c"])],
)
def test_each_line_is_a_suggestion(text: str, suggestions: list[str]) -> None:
    assert of_lines(text) == suggestions
    assert of_lines(as_lines(suggestions)) == suggestions


@pytest.mark.parametrize(
    ("suggestions", "fits"),
    [([], True), (["a", "b c"], True), ([" a"], False), (["a\nb"], False)],
)
def test_what_lines_can_show(suggestions: list[str], fits: bool) -> None:
    assert fit_lines(suggestions) is fits


def test_a_field_takes_what_browsers_send() -> None:
    assert SuggestionsField().clean("a\r\n b\r\n") == ["a", "b"]
    with pytest.raises(ValidationError, match=r"There are 101 suggestions"):
        SuggestionsField().clean("\r\n".join(map(str, range(101))))
