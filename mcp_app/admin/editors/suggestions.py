"""Arguments of prompts and variables of templates, with suggestions.

The names of variables come from the template. Suggestions for a name that the template
no longer has are shown, and kept until somebody empties them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_editor import WORDS, Initial, JsonEditor
from mcp_app.admin.editors.json_texts import filled_lines
from mcp_app.admin.editors.rows import (
    MAX_ROWS,
    CompositeWidget,
    LinesField,
    NotRepresentable,
    RowForm,
    TextsField,
    area_text,
    check_same,
    formset_class_of,
    stored_or_written,
)
from mcp_app.interface.definitions import arguments_from_json, suggestions_from_json
from mcp_app.interface.rules import (
    MAX_SUGGESTION_LENGTH,
    MAX_SUGGESTIONS,
    argument_problem,
    suggestions_problem,
    text_problem,
    variable_problem,
    visible,
)
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.uri_templates import UriTemplate


class SuggestionsField(TextsField):
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
                most=MAX_SUGGESTIONS,
                longest=MAX_SUGGESTION_LENGTH,
            ),
        )

    def clean(self, value: Any) -> Any:
        suggestions = super().clean(value)
        if problem := suggestions_problem(suggestions):
            raise ValidationError(problem)
        return suggestions


# -- arguments -------------------------------------------------------------------------

_EMPTY: JsonObject = {
    "title": "",
    "description": "",
    "required": False,
    "suggestions": [],
}
"""Members with the values that mean the same as a missing member."""


class ArgumentForm(RowForm):
    """An argument, which a person fills in before using the prompt."""

    name = forms.CharField(label=_("Name"), required=False)
    title = forms.CharField(label=_("Title"), required=False)
    required = forms.BooleanField(label=_("Required"), required=False)
    description = LinesField(label=_("Description"), rows=1)
    suggestions = SuggestionsField()

    def legend(self) -> str:
        return str(self["name"].value() or "")

    def count(self) -> int:
        """Return how many suggestions the page shows."""
        return len(filled_lines(self["suggestions"].value()))

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not name:
            raise ValidationError(_("An argument needs a name."))
        if problem := argument_problem(name):
            raise ValidationError(problem)
        return name

    def clean_title(self) -> str:
        return _check_visible(self.cleaned_data["title"], lines=False)

    def clean_description(self) -> str:
        return _check_visible(self.cleaned_data["description"], lines=True)


def _check_visible(text: str, *, lines: bool) -> str:
    if problem := text_problem(text, lines=lines):
        raise ValidationError(problem)
    return text


class ArgumentSheet(JsonEditor):
    """A list of arguments; `own` are the arguments of the prompt's function."""

    formset = formset_class_of(ArgumentForm)
    row_template = "mcp_app/widgets/argument.html"
    words = {
        **WORDS,
        "as_table": _("Edit one by one"),
        "add": _("Add an argument"),
        "new": _("New argument"),
        "beyond": _(
            "This page cannot show all of these arguments (%(reason)s). They are kept"
            " exactly as they are; edit them as JSON."
        ),
        "both": _("You changed both the arguments and the JSON. Choose which to keep."),
        "keep_table": _("Keep the arguments"),
        "empty": _("No arguments: the prompt is always the same."),
        "twice": _("The argument %(name)s is there more than once."),
    }

    def initial_rows(self, value: Any) -> Initial:
        arguments = value or []
        try:
            arguments_from_json(arguments)
        except ValueError as error:
            raise NotRepresentable(str(error)) from None
        if len(arguments) > MAX_ROWS:
            raise NotRepresentable(f"{len(arguments)} arguments")
        return [*map(_initial_row, arguments)]

    def value_of_rows(self, rows: Iterable[RowForm], base: Any) -> Any:
        arguments = {argument["name"]: argument for argument in base or []}
        return [
            stored_or_written(
                arguments.get(form.cleaned_data["was"], {}),
                _argument_json(form.cleaned_data),
                _EMPTY,
            )
            for form in rows
        ]

    def parse_typed_json(self, text: str) -> Any:
        arguments = json_texts.parse_strict_json(text)
        arguments_from_json(arguments)
        return arguments


def _initial_row(argument: JsonObject) -> JsonObject:
    texts = {
        name: area_text(argument.get(name, ""))
        for name in ("name", "title", "description")
    }
    texts["title"] = texts["title"].replace("\n", " ")
    suggestions = filled_lines("\n".join(argument.get("suggestions", ())))
    row = {**_EMPTY, **argument, **texts, "suggestions": suggestions}
    check_same(argument, _argument_json(row), _EMPTY, argument["name"])
    return {**row, "was": argument["name"]}


def _argument_json(row: JsonObject) -> JsonObject:
    """Return the JSON that a row writes."""
    return {name: row[name] for name in ("name", *_EMPTY) if row[name]}


# -- variables -------------------------------------------------------------------------


class VariablesWidget(CompositeWidget):
    """A text area for each variable; the value is None if the page had no widget."""

    template_name = "mcp_app/widgets/variables.html"

    def __init__(self) -> None:
        super().__init__()
        self.stored = ""
        self.variables: Sequence[str] = ()

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> dict[str, list[str]] | None:
        """Return the sent suggestions by variable, without empty lists."""
        if name not in data:
            return None
        prefix = f"{name}-"
        return {
            key.removeprefix(prefix): texts
            for key in data
            if key.startswith(prefix) and (texts := filled_lines(data[key]))
        }

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        by_name = (
            value if isinstance(value, dict) else _suggestions_by_name(self.stored)
        )
        return {
            **super().get_context(name, value, attrs),
            "name": name,
            "rows": list(self._rows(by_name)),
            "help": SuggestionsField().help_text,
        }

    def _rows(self, by_name: Mapping[str, list[str]]) -> Iterator[dict[str, Any]]:
        """Yield the variables of the template, then others that have suggestions."""
        for name in dict.fromkeys((*self.variables, *by_name)):
            suggestions = by_name.get(name, [])
            yield {
                "name": name,
                "text": "\n".join(suggestions),
                "count": len(suggestions),
                # An unfinished template has no variables: then accept every name.
                "is_known": name in self.variables or not self.variables,
                "problem": problem_of(name, suggestions),
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

    def clean(self, value: dict[str, list[str]] | None) -> str:
        problems = filter(None, starmap(problem_of, (value or {}).items()))
        if messages := [*problems]:
            raise ValidationError(messages)
        stored = self.variables_widget.stored
        if value is None or value == _suggestions_by_name(stored):
            return stored
        return jsonrpc.write(value).decode() if value else ""

    def has_changed(self, initial: Any, data: Any) -> bool:
        stored = self.variables_widget.stored
        return data is not None and data != _suggestions_by_name(stored)

    def parts(self, value: Any) -> Mapping[str, object]:
        """Return the suggestions to compare, from sent data or stored JSON."""
        if not isinstance(value, dict):
            value = _suggestions_by_name(str(value or ""))
        return {"": sorted(value.items())}


def variables_of(uri_template: str) -> tuple[str, ...]:
    """Return the variables of a URI template; () if it is invalid."""
    try:
        return tuple(UriTemplate.parse(uri_template).variables)
    except ValueError:
        return ()


def problem_of(name: str, suggestions: Sequence[str]) -> str:
    """Say what is wrong with a variable's suggestions; "" if they are valid."""
    if not suggestions:
        return ""
    if problem := variable_problem(name):
        return problem
    problem = suggestions_problem(suggestions)
    values = {"name": visible(name), "problem": problem}
    return gettext("%(name)s: %(problem)s") % values if problem else ""


def _suggestions_by_name(stored: str) -> dict[str, list[str]]:
    """Return the stored suggestions as the page shows them, without empty lists.

    Return {} if the stored JSON has another shape.
    """
    try:
        by_name = suggestions_from_json(parse_json(stored or "{}"))
    except ValueError:
        return {}
    filled = {name: filled_lines("\n".join(texts)) for name, texts in by_name.items()}
    return {name: texts for name, texts in filled.items() if texts}
