"""Definitions as shown to staff who may view but not change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.editors import hints, json_texts
from mcp_app.admin.editors.files import FilePartField
from mcp_app.admin.editors.hints import BOXES, EFFECTS, Answer
from mcp_app.admin.editors.json_editor import SheetField, SheetWidget, parse_or_none
from mcp_app.admin.editors.parameter import Parameter
from mcp_app.admin.editors.parameter_tables import parameters_of, summaries
from mcp_app.admin.editors.parameter_values import (
    limits_in_words,
    text_of_choices,
    text_of_value,
    type_label,
)
from mcp_app.admin.editors.rows import NotRepresentable
from mcp_app.admin.editors.text_answer import text_of_suggestions
from mcp_app.admin.editors.variables import texts_by_name, variable_rows, variables_of
from mcp_app.admin.forms import DefinitionForm, form_of
from mcp_app.admin.forms.definition import function_label
from mcp_app.admin.forms.fields import Panel
from mcp_app.interface.definitions import arguments_from_json
from mcp_app.interface.rules import visible
from mcp_app.kinds.registry import name_of_kind
from mcp_app.models import DefinitionRow, Prompt, ResourceTemplate, Tool
from mcp_app.models.definitions import ReadableRow

# -- read tables -----------------------------------------------------------------------
# JSON columns as read-only tables that show everything an editor shows.

Cells: TypeAlias = Sequence[str]


def render_table(
    headings: Cells, rows: Sequence[Cells], stored: str = ""
) -> SafeString:
    """Return a table with hidden characters made visible, and the stored JSON."""
    cells = [[visible(cell, None) for cell in row] for row in rows]
    context = {
        "rows": [list(zip(headings, row, strict=True)) for row in cells],
        "headings": headings,
        "json": formatted_json(stored),
    }
    return render_to_string("mcp_app/widgets/read_table.html", context)


def formatted_json(stored: str) -> str:
    """Return a JSON column formatted for people."""
    return visible(json_texts.formatted_text(stored), None)


def parameters(stored: str) -> SafeString:
    """Return the parameters of an input schema as a table."""
    schema = parse_or_none(stored)
    schema = schema if isinstance(schema, dict) else {}
    headings = (_("Name"), _("Type"), _("Limits"), _("If left out"), _("Description"))
    try:
        rows = [_parameter(each) for each in parameters_of(schema)]
    except NotRepresentable:
        rows = [
            [each.name, _type_text(each), "", "", each.description]
            for each in summaries(schema)
        ]
    return render_table(headings, rows, stored)


def _type_text(about: Any) -> str:
    label = type_label(about.type)
    return _("%(type)s, required") % {"type": label} if about.required else label


def _parameter(row: Parameter) -> Cells:
    example = text_of_value(row.type, row.example)
    example = _("Example: %(example)s") % {"example": example} if example else ""
    limits = [limits_in_words(replace(row, choices=())), text_of_choices(row.choices)]
    return [
        row.name,
        _type_text(row),
        "\n".join(filter(None, limits)),
        text_of_value(row.type, row.default),
        "\n".join(filter(None, (row.description, example))),
    ]


def arguments(stored: str) -> SafeString:
    """Return the arguments of a prompt with their suggestions as a table."""
    headings = (_("Name"), _("Title"), _("Required"), _("Description"))
    items = parse_or_none(stored) or []
    try:
        arguments_from_json(items)
    except ValueError:
        # No form can have written this: show it only as JSON.
        items = []
    rows = [_argument_row(each) for each in items]
    return render_table((*headings, _("Suggestions")), rows, stored)


def _argument_row(argument: Mapping[str, Any]) -> Cells:
    texts = [str(argument.get(name, "")) for name in ("name", "title")]
    required = _("yes") if argument.get("required") else _("no")
    suggestions = text_of_suggestions(argument.get("suggestions", ()))
    return [*texts, required, str(argument.get("description", "")), suggestions]


def suggestions(stored: str, uri_template: str) -> SafeString:
    """Return the variables of a URI template with their suggestions as a table."""
    unknown = _(
        "The address pattern has no %(variable)s, so these suggestions are not used."
    )
    rows = [
        [row.name, row.text, "" if row.is_known else unknown % {"variable": row.name}]
        for row in variable_rows(texts_by_name(stored), variables_of(uri_template))
    ]
    return render_table((_("Variable"), _("Suggestions"), _("Note")), rows, stored)


# -- read only -------------------------------------------------------------------------


def _row_form(row: DefinitionRow) -> DefinitionForm[DefinitionRow]:
    return form_of(type(row), row.kind)(instance=row)


def _sheet_widget(row: DefinitionRow, name: str) -> SheetWidget:
    return cast("SheetField", _row_form(row).fields[name]).sheet_widget


def _json_html(stored: str) -> str:
    text = formatted_json(stored)
    return format_html("<pre>{}</pre>", text) if text else str(gettext_lazy("None"))


READ: Final = {
    column: f"read_{column}"
    for column in (
        "annotations",
        "arguments",
        "config",
        "icons",
        "input_schema",
        "kind",
        "output_schema",
        "suggestions",
    )
}
"""Columns, and the methods that show them read-only.

They need other names because the admin prefers a column to a method of its name.
"""


class ReadOnlyFields:
    """Read-only views of form fields that are not columns, and of JSON columns."""

    @admin.display(description=gettext_lazy("Text"))
    def text(self, row: DefinitionRow) -> str:
        text = visible(str(_row_form(row).initial.get("text", "")), None)
        return format_html("<pre>{}</pre>", text)

    @admin.display(description=gettext_lazy("Image or file"))
    def file(self, row: DefinitionRow) -> str:
        form = _row_form(row)
        cast("FilePartField", form.fields["file"]).file_widget.is_fixed = True
        return str(form["file"])

    @admin.display(description=gettext_lazy("Function"))
    def function(self, row: DefinitionRow) -> str:
        return function_label(str(_row_form(row).initial.get("function", "")))

    @admin.display(description=gettext_lazy("What it changes"))
    def changes(self, row: DefinitionRow) -> str:
        answer: Answer = _row_form(row).initial["changes"]
        boxes = [label for box, label in BOXES.items() if getattr(answer, box)]
        texts = [EFFECTS.get(answer.effect, gettext_lazy("Not said")), *boxes]
        return ". ".join(map(str, texts))

    @admin.display(description=gettext_lazy("For"))
    def audience(self, row: DefinitionRow) -> str:
        return str(hints.AUDIENCES[_row_form(row).initial["audience"]])

    @admin.display(description=gettext_lazy("Importance"))
    def importance(self, row: DefinitionRow) -> str:
        value = _row_form(row).initial["importance"]
        return str(hints.IMPORTANCES.get(value, value))

    @admin.display(description=gettext_lazy("From code"))
    def from_code(self, row: DefinitionRow) -> str:
        return str(_row_form(row)["from_code"])

    @admin.display(description=gettext_lazy("What clients read now"))
    def now(self, row: DefinitionRow) -> str:
        return str(_row_form(row)["now"])

    def read_suggestions(self, row: ResourceTemplate) -> str:
        return suggestions(row.suggestions, row.uri_template)

    def read_input_schema(self, row: Tool) -> str:
        own = _sheet_widget(row, "input_schema").own
        return parameters(row.input_schema or own or "")

    def read_arguments(self, row: Prompt) -> str:
        own = _sheet_widget(row, "arguments").own
        return arguments(row.arguments or own or "")

    def read_output_schema(self, row: Tool) -> str:
        return _json_html(row.output_schema)

    def read_kind(self, row: DefinitionRow) -> str:
        return str(name_of_kind(row.kind))

    def read_config(self, row: DefinitionRow) -> str:
        return _json_html(row.config)

    def read_icons(self, row: DefinitionRow) -> str:
        return _json_html(row.icons)

    def read_annotations(self, row: ReadableRow) -> str:
        return _json_html(row.annotations)

    @admin.display(description=gettext_lazy("Preview"))
    def preview(self, row: DefinitionRow) -> str:
        form = _row_form(row)
        panel = cast("Panel", form.fields["preview"].widget)
        panel.panel_context = {**panel.panel_context, "is_fixed": True}
        return str(form["preview"])
