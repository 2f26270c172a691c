"""Definitions as shown to staff who may view but not change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy

from mcp_app.admin.editors import json_texts
from mcp_app.admin.forms import DefinitionForm, form_of
from mcp_app.admin.forms.definition import function_label
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.kinds.registry import name_of_kind
from mcp_app.models import DefinitionRow
from mcp_app.publishing.differences import client_view


def _row_form(row: DefinitionRow) -> DefinitionForm[DefinitionRow]:
    return form_of(type(row), row.kind)(instance=row)


def _stored_json(column: str) -> Callable[..., str]:
    """Return a method that shows a column as it is stored."""

    def show(self: object, row: DefinitionRow) -> str:
        text = visible(json_texts.formatted_text(getattr(row, column)), None)
        return format_html("<pre>{}</pre>", text) if text else str(gettext_lazy("None"))

    return show


def _disabled_editor(name: str, label: Label = "") -> Callable[..., str]:
    """Return a method that shows the field of a form, disabled."""

    @admin.display(description=label)
    def show(self: object, row: DefinitionRow) -> str:
        html = '<fieldset class="mcp-plain mcp-fixed" disabled>{}</fieldset>'
        bound = _row_form(row)[name]
        widget = bound.as_widget(attrs={"aria-label": str(bound.label)})
        return format_html(html, widget)

    return show


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
"""Columns, and the methods of `ReadOnlyFields` that show them read-only.

A method needs a name of its own: for the name of a column, the admin shows the column.
"""


class ReadOnlyFields:
    """Read-only views of form fields that are not columns, and of JSON columns."""

    text = _disabled_editor("text", gettext_lazy("Text"))
    folder = _disabled_editor("folder", gettext_lazy("Folder"))
    file = _disabled_editor("file", gettext_lazy("Image or file"))
    changes = _disabled_editor("changes", gettext_lazy("What it changes"))
    audience = _disabled_editor("audience", gettext_lazy("For"))
    importance = _disabled_editor("importance", gettext_lazy("Importance"))
    from_code = _disabled_editor("from_code", gettext_lazy("From code"))
    now = _disabled_editor("now", gettext_lazy("What clients read now"))
    preview = _disabled_editor("preview", gettext_lazy("Preview"))
    read_suggestions = _disabled_editor("suggestions")
    read_input_schema = _disabled_editor("input_schema")
    read_arguments = _disabled_editor("arguments")
    read_output_schema = _stored_json("output_schema")
    read_icons = _stored_json("icons")
    read_annotations = _stored_json("annotations")

    def read_config(self, row: DefinitionRow) -> str:
        parts = client_view(row, row.working_content(), mcp).description or ()
        # A table with one part tells no more than the stored JSON.
        if not parts[1:]:
            return _stored_json("config")(self, row)
        line = '<tr><th scope="row">{}</th><td>{}</td></tr>'
        shown = ([visible(each, None) for each in part] for part in parts)
        table = '<table class="mcp-table mcp-facts"><tbody>{}</tbody></table>'
        return format_html(table, format_html_join("", line, shown))

    @admin.display(description=gettext_lazy("Function"))
    def function(self, row: DefinitionRow) -> str:
        # Name only this function: users who may only view get no list of them.
        return function_label(str(_row_form(row).initial.get("function", "")))

    def read_kind(self, row: DefinitionRow) -> str:
        return str(name_of_kind(row.kind))
