"""The variables of a URI template, each with its suggestions.

The names come from the template. Suggestions for a name that the template no longer has
are shown, and kept until somebody empties them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.rows import CompositeWidget
from mcp_app.admin.editors.text_answer import (
    SuggestionsField,
    suggestions_of_text,
    text_of_suggestions,
)
from mcp_app.interface.definitions import suggestions_from_json
from mcp_app.interface.rules import suggestions_problem, variable_problem, visible
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.uri_templates import UriTemplate


@dataclass(frozen=True, slots=True)
class SentVariables:
    """The texts that a browser sent, by variable."""

    texts: Mapping[str, str] = field(default_factory=dict)
    is_there: bool = False
    """Whether the page had this field."""


@dataclass(frozen=True, slots=True)
class Row:
    """One variable; `is_known` says whether the template has it."""

    name: str
    text: str
    is_known: bool
    problem: str = ""

    def count(self) -> int:
        """Return the number of suggestions."""
        return len(suggestions_of_text(self.text))


class VariablesWidget(CompositeWidget):
    """A text area for each variable, in the order of the template."""

    template_name = "mcp_app/widgets/variables.html"

    def __init__(self) -> None:
        super().__init__()
        self.stored = ""
        self.variables: Sequence[str] = ()

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> SentVariables:
        prefix = f"{name}-"
        texts = {
            each.removeprefix(prefix): lines_from_browser(data[each])
            for each in data
            if each.startswith(prefix)
        }
        return SentVariables(texts, is_there=name in data)

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        is_submission = isinstance(value, SentVariables)
        texts = value.texts if is_submission else texts_by_name(self.stored)
        return {
            **super().get_context(name, value, attrs),
            "name": name,
            "rows": list(variable_rows(texts, self.variables)),
            "help": SuggestionsField().help_text,
        }


class VariablesField(forms.Field):
    """The JSON text of the column: lists of texts by name, "" for none."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=VariablesWidget())

    @property
    def variables_widget(self) -> VariablesWidget:
        return cast("VariablesWidget", self.widget)

    def set_stored_value(self, stored: str, uri_template: str) -> None:
        """Set the column's text and the URI template of the page."""
        self.variables_widget.stored = stored
        self.variables_widget.variables = variables_of(uri_template)

    def clean(self, value: SentVariables) -> str:
        if problems := _problems(value):
            raise ValidationError(problems)
        return self._text_to_store(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        text = self._text_to_store(data)
        return text != self.variables_widget.stored or bool(_problems(data))

    def parts(self, value: Any) -> Mapping[str, object]:
        """Return the suggestions to compare, from sent data or stored JSON."""
        is_submission = isinstance(value, SentVariables)
        texts = value.texts if is_submission else texts_by_name(str(value or ""))
        return {"": sorted(_lines_by_name(texts).items())}

    def _text_to_store(self, value: SentVariables) -> str:
        """Return the text to store: the stored one if no suggestion changed."""
        stored = self.variables_widget.stored
        shown, lines = (
            _lines_by_name(texts_by_name(stored)),
            _lines_by_name(value.texts),
        )
        if not value.is_there or lines == shown:
            return stored
        before = _suggestions_by_name(stored)
        after = {
            name: before[name] if each == shown.get(name) else each
            for name, each in lines.items()
        }
        return jsonrpc.write(after).decode() if after else ""


def variable_rows(texts: Mapping[str, str], variables: Sequence[str]) -> Iterator[Row]:
    """Yield the variables of the template, then others that have a text."""
    for name in dict.fromkeys((*variables, *texts)):
        text = texts.get(name, "")
        # An unfinished template has no variables: do not call any name unknown.
        is_known = name in variables or not variables
        if name in variables or text.strip():
            yield Row(name, text, is_known, problem_of(name, text))


def variables_of(uri_template: str) -> tuple[str, ...]:
    """Return the variables of a URI template; () if it is invalid."""
    try:
        return tuple(UriTemplate.parse(uri_template).variables)
    except ValueError:
        return ()


def texts_by_name(stored: str) -> dict[str, str]:
    """Return the suggestions of each name as text."""
    return {
        name: text_of_suggestions(texts)
        for name, texts in _suggestions_by_name(stored).items()
    }


def problem_of(name: str, text: str) -> str:
    """Say what is wrong with a variable's suggestions; "" if they are valid."""
    suggestions = suggestions_of_text(text)
    if not suggestions:
        return ""
    if problem := variable_problem(name):
        return problem
    problem = suggestions_problem(suggestions)
    values = {"name": visible(name), "problem": problem}
    return _("%(name)s: %(problem)s") % values if problem else ""


def _problems(sent: SentVariables) -> list[str]:
    return [*filter(None, starmap(problem_of, sent.texts.items()))]


def _suggestions_by_name(stored: str) -> Mapping[str, Sequence[str]]:
    """Parse the stored JSON; return {} if no form can have written it."""
    try:
        return suggestions_from_json(parse_json(stored or "{}"))
    except ValueError:
        return {}


def _lines_by_name(texts: Mapping[str, str]) -> dict[str, list[str]]:
    lines = {name: suggestions_of_text(text) for name, text in texts.items()}
    return {name: each for name, each in lines.items() if each}
