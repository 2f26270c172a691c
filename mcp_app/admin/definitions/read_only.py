"""Definitions as shown to staff who may view but not change them."""

from __future__ import annotations

from typing import Final, cast

from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.definitions import read_tables
from mcp_app.admin.editors import annotation_choices
from mcp_app.admin.editors.file_fields import FilePartField
from mcp_app.admin.editors.hints import BOXES, EFFECTS, Answer
from mcp_app.admin.editors.json_editor_fields import SheetField, SheetWidget
from mcp_app.admin.forms import DefinitionForm, form_of
from mcp_app.admin.forms.definition import function_label
from mcp_app.admin.forms.fields import Panel
from mcp_app.interface.rules import visible
from mcp_app.kinds.registry import name_of_kind
from mcp_app.models import DefinitionRow, Prompt, ResourceTemplate, Tool
from mcp_app.models.definitions import ReadableRow


def _form(row: DefinitionRow) -> DefinitionForm[DefinitionRow]:
    return form_of(type(row), row.kind)(instance=row)


def _sheet(row: DefinitionRow, name: str) -> SheetWidget:
    return cast("SheetField", _form(row).fields[name]).sheet_widget


def _json(stored: str) -> str:
    text = read_tables.as_json(stored)
    return format_html("<pre>{}</pre>", text) if text else str(_("None"))


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

    @admin.display(description=_("Text"))
    def text(self, row: DefinitionRow) -> str:
        text = visible(str(_form(row).initial.get("text", "")), None)
        return format_html("<pre>{}</pre>", text)

    @admin.display(description=_("Image or file"))
    def file(self, row: DefinitionRow) -> str:
        form = _form(row)
        cast("FilePartField", form.fields["file"]).file_widget.is_fixed = True
        return str(form["file"])

    @admin.display(description=_("Function"))
    def function(self, row: DefinitionRow) -> str:
        return function_label(str(_form(row).initial.get("function", "")))

    @admin.display(description=_("What it changes"))
    def changes(self, row: DefinitionRow) -> str:
        answer: Answer = _form(row).initial["changes"]
        boxes = [label for box, label in BOXES.items() if getattr(answer, box)]
        said = [EFFECTS.get(answer.effect, _("Not said")), *boxes]
        return ". ".join(map(str, said))

    @admin.display(description=_("For"))
    def audience(self, row: DefinitionRow) -> str:
        return str(annotation_choices.AUDIENCES[_form(row).initial["audience"]])

    @admin.display(description=_("Importance"))
    def importance(self, row: DefinitionRow) -> str:
        given = _form(row).initial["importance"]
        return str(annotation_choices.IMPORTANCES.get(given, given))

    @admin.display(description=_("From code"))
    def from_code(self, row: DefinitionRow) -> str:
        return str(_form(row)["from_code"])

    @admin.display(description=_("What clients read now"))
    def now(self, row: DefinitionRow) -> str:
        return str(_form(row)["now"])

    def read_suggestions(self, row: ResourceTemplate) -> str:
        return read_tables.suggestions(row.suggestions, row.uri_template)

    def read_input_schema(self, row: Tool) -> str:
        own = _sheet(row, "input_schema").own
        return read_tables.parameters(row.input_schema or own or "")

    def read_arguments(self, row: Prompt) -> str:
        own = _sheet(row, "arguments").own
        return read_tables.arguments(row.arguments or own or "")

    def read_output_schema(self, row: Tool) -> str:
        return _json(row.output_schema)

    def read_kind(self, row: DefinitionRow) -> str:
        return str(name_of_kind(row.kind))

    def read_config(self, row: DefinitionRow) -> str:
        return _json(row.config)

    def read_icons(self, row: DefinitionRow) -> str:
        return _json(row.icons)

    def read_annotations(self, row: ReadableRow) -> str:
        return _json(row.annotations)

    @admin.display(description=_("Preview"))
    def preview(self, row: DefinitionRow) -> str:
        form = _form(row)
        panel = cast("Panel", form.fields["preview"].widget)
        panel.shown = {**panel.shown, "is_fixed": True}
        return str(form["preview"])
