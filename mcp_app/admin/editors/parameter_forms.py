"""The parameters of a tool as rows of forms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors import json_texts, parameter_values
from mcp_app.admin.editors.json_editor import WORDS, Initial, JsonEditor
from mcp_app.admin.editors.parameter import (
    CHOOSING,
    LISTS,
    MISSING,
    PATTERNED,
    TYPES,
    Parameter,
    limit_keywords,
)
from mcp_app.admin.editors.parameter_tables import (
    MAX_PARAMETERS,
    parameters_of,
    schema_of,
    summaries,
)
from mcp_app.admin.editors.parameter_values import LABELS, choices_of_text
from mcp_app.admin.editors.rows import (
    LinesField,
    NotRepresentable,
    RowForm,
    formset_class_of,
)
from mcp_app.interface.rules import PARAMETER, text_problem, visible


class ParameterForm(RowForm):
    """One parameter; fields that its type does not have are ignored."""

    name = forms.CharField(label=_("Name"), required=False)
    type = forms.ChoiceField(
        label=_("Type"),
        choices=[(kind, LABELS[kind]) for kind in TYPES],
        initial="text",
        required=False,
    )
    required = forms.BooleanField(label=_("Required"), required=False)
    default = forms.CharField(
        label=_("Value if left out"),
        required=False,
        help_text=_("Empty: none."),
    )
    description = LinesField(label=_("Description for the model"), rows=1)
    choices = LinesField(
        label=_("Choices"),
        rows=4,
        help_text=_("One in each line, perhaps with “= shown text”: c = Celsius."),
    )
    least = forms.CharField(label=_("At least"), required=False)
    most = forms.CharField(label=_("At most"), required=False)
    pattern = forms.CharField(
        label=_("Pattern"),
        required=False,
        strip=False,
        help_text=_("A pattern is for exceptions; prefer “One of a list”."),
    )
    unique = forms.BooleanField(label=_("Each entry only once"), required=False)
    example = forms.CharField(
        label=_("Example"),
        required=False,
        help_text=_("Clients see it in the schema."),
    )

    parameter: Parameter

    def legend(self) -> str:
        return str(self["name"].value() or "")

    def limits(self) -> str:
        """Return the limits of the parameter in words, as the page showed them."""
        row = self.initial.get("row")
        return parameter_values.limits_in_words(row) if row else ""

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not name:
            raise ValidationError(_("A parameter needs a name."))
        if name == self.data.get(self.add_prefix("was")):
            return name
        if problem := text_problem(name):
            raise ValidationError(problem)
        if not PARAMETER.fullmatch(name):
            raise ValidationError(
                _(
                    "“%(name)s” cannot name a parameter: only letters, digits and "
                    "_ - . are allowed, at most 64."
                ),
                params={"name": visible(name)},
            )
        return name

    def clean_type(self) -> str:
        return self.cleaned_data["type"] or "text"

    def clean_description(self) -> str:
        description = str(self.cleaned_data["description"])
        if problem := text_problem(description, lines=True):
            raise ValidationError(problem)
        return description

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if not self.errors:
            self.parameter = self._parameter()
        if not self.errors:
            for field, sentence in parameter_values.problems_of_row(self.parameter):
                self.add_error(field, sentence)
        return cleaned

    def _parameter(self) -> Parameter:
        values, kind = self.cleaned_data, self.cleaned_data["type"]
        limited = limit_keywords(kind) is not None
        return Parameter(
            name=values["name"],
            type=kind,
            required=values["required"],
            description=values["description"],
            default=self._parse_field("default", kind),
            example=self._parse_field("example", kind),
            least=self._parse_limit("least") if limited else None,
            most=self._parse_limit("most") if limited else None,
            pattern=values["pattern"] if kind in PATTERNED else "",
            choices=choices_of_text(values["choices"]) if kind in CHOOSING else (),
            unique=values["unique"] and kind in LISTS,
            was=values["was"],
        )

    def _parse_field(self, field: str, kind: str) -> object:
        try:
            return parameter_values.value_of_text(kind, self.cleaned_data[field])
        except ValueError as error:
            self.add_error(field, str(error))
            return None

    def _parse_limit(self, field: str) -> Any:
        number = self._parse_field(field, "number")
        return None if number is MISSING else number


class ParameterSheet(JsonEditor):
    """An input schema; `own` is that of the tool's function."""

    formset = formset_class_of(ParameterForm, MAX_PARAMETERS)
    row_template = "mcp_app/widgets/parameter.html"
    words = {
        **WORDS,
        "as_table": _("Edit as a table"),
        "as_json": _("Edit as JSON Schema"),
        "json": _("The same as JSON Schema"),
        "json_label": _("JSON Schema"),
        "add": _("Add a parameter"),
        "new": _("New parameter"),
        "beyond": _(
            "The table cannot show all of this schema (%(reason)s). The schema is"
            " kept exactly as it is; edit it as JSON."
        ),
        "both": _("You changed both the table and the JSON. Choose which to keep."),
        "keep_table": _("Keep the table"),
        "empty": _("No parameters: the tool is called without any."),
        "twice": _("The parameter %(name)s is there more than once."),
    }

    def initial_rows(self, value: Any) -> Initial:
        if not isinstance(value or {}, dict):
            raise NotRepresentable(gettext("it is not a JSON object"))
        return [_initial_row(row) for row in parameters_of(value or {})]

    def value_of_rows(self, rows: Iterable[RowForm], base: Any) -> Any:
        forms = (form for form in rows if isinstance(form, ParameterForm))
        return schema_of([form.parameter for form in forms], base)

    def parse_typed_json(self, text: str) -> Any:
        return json_texts.check_schema_text(text)

    def summary_of_value(self, value: Any) -> object:
        rows = summaries(value if isinstance(value, dict) else {})
        return [
            replace(row, type=parameter_values.type_label(row.type)) for row in rows
        ]


def _initial_row(row: Parameter) -> dict[str, Any]:
    return {
        "row": row,
        "was": row.name,
        "name": row.name,
        "type": row.type,
        "required": row.required,
        "default": parameter_values.text_of_value(row.type, row.default),
        "description": row.description,
        "choices": parameter_values.text_of_choices(row.choices),
        "least": "" if row.least is None else str(row.least),
        "most": "" if row.most is None else str(row.most),
        "pattern": row.pattern,
        "unique": row.unique,
        "example": parameter_values.text_of_value(row.type, row.example),
    }
