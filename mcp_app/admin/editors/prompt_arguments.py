"""The arguments of a prompt as rows of forms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_editor import WORDS, Initial, JsonEditor
from mcp_app.admin.editors.rows import (
    MAX_ROWS,
    LinesField,
    NotRepresentable,
    RowForm,
    area_text,
    check_same,
    formset_class_of,
    stored_or_written,
)
from mcp_app.admin.editors.text_answer import (
    SuggestionsField,
    suggestions_of_text,
    text_of_suggestions,
)
from mcp_app.interface.definitions import arguments_from_json
from mcp_app.interface.rules import argument_problem, text_problem
from mcp_app.protocol.json_types import JsonObject

_EMPTY: JsonObject = {
    "title": "",
    "description": "",
    "required": False,
    "suggestions": [],
}
"""Members that say nothing."""


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
        return len(suggestions_of_text(str(self["suggestions"].value() or "")))

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
    """A list of arguments; `own` are those of the prompt's function."""

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
        known = {argument["name"]: argument for argument in base or []}
        return [
            stored_or_written(
                known.get(form.cleaned_data["was"], {}),
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
    suggestions = text_of_suggestions(argument.get("suggestions", ()))
    row = {**_EMPTY, **argument, **texts}
    row["suggestions"] = suggestions_of_text(suggestions)
    check_same(argument, _argument_json(row), _EMPTY, argument["name"])
    return {**row, "suggestions": suggestions, "was": argument["name"]}


def _argument_json(row: JsonObject) -> JsonObject:
    """Return what the values of a row write."""
    return {name: row[name] for name in ("name", *_EMPTY) if row[name]}
