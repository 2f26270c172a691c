"""Suggestions as people write them: one in each line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.rows import LinesField
from mcp_app.interface.rules import (
    LONGEST_SUGGESTION,
    MOST_SUGGESTIONS,
    suggestions_problem,
)


class SuggestionsField(LinesField):
    """A text area that gives the list of its lines; empty ones say nothing."""

    def __init__(self) -> None:
        super().__init__(
            rows=4,
            label=_("Suggestions"),
            help_text=format_lazy(
                _(
                    "One in each line: at most {most}, each of at most {longest} "
                    "characters. Clients offer those that fit what was typed so far."
                ),
                most=MOST_SUGGESTIONS,
                longest=LONGEST_SUGGESTION,
            ),
        )

    def clean(self, value: Any) -> Any:
        suggestions = of_lines(super().clean(value))
        if problem := suggestions_problem(suggestions):
            raise ValidationError(problem)
        return suggestions


def of_lines(text: str) -> list[str]:
    """Return the suggestions in a text, without the blanks around them."""
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line]


def as_lines(suggestions: Sequence[str]) -> str:
    """Return the text that shows suggestions."""
    return "\n".join(suggestions)


def fit_lines(suggestions: Sequence[str]) -> bool:
    """Whether lines can show them without losing anything."""
    return of_lines(as_lines(suggestions)) == list(suggestions)
