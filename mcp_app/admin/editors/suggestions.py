"""Suggestions as staff write them: one per line."""

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
    """A text area whose value is the list of its lines, without empty ones."""

    def __init__(self) -> None:
        super().__init__(
            rows=4,
            label=_("Suggestions"),
            help_text=format_lazy(
                _(
                    "One in each line: at most {most}, each of at most {longest}"
                    " characters. Clients offer those that match the text typed so"
                    " far. {{{{shop.Customer.email}}}} stands for the values of a field"
                    " that a developer has opened."
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
    """Return the suggestions in a text, stripped of surrounding blanks."""
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line]


def as_lines(suggestions: Sequence[str]) -> str:
    """Return suggestions as text."""
    return "\n".join(suggestions)


def fit_lines(suggestions: Sequence[str]) -> bool:
    """Return whether the text shows these suggestions without loss."""
    return of_lines(as_lines(suggestions)) == list(suggestions)
