"""Sheets as a page shows them and as a browser without scripts sends them back."""

from __future__ import annotations

from django.http import QueryDict

from mcp_app.admin.editors.json_editor import EditorInput, JsonEditor, SheetField
from mcp_app.admin.editors.suggestions import ArgumentSheet
from tests.admin.pages import Fields


def html_of(sheet: JsonEditor, stored: str, own: str | None = None) -> str:
    """Return what a page shows of a column."""
    field = SheetField(sheet)
    field.set_stored_value(stored, own)
    name = name_of(sheet)
    return str(field.widget.render(name, stored, {"id": f"id_{name}"}))


def name_of(sheet: JsonEditor) -> str:
    """Return the name of the field in these tests."""
    return "arguments" if isinstance(sheet, ArgumentSheet) else "sheet"


def given(
    sheet: JsonEditor, stored: str, own: str | None = None, **typed: str | None
) -> EditorInput:
    """Open a page, type into it and send it; None clears a field."""
    return given_again(sheet, html_of(sheet, stored, own), stored, own, **typed)


def given_again(
    sheet: JsonEditor,
    shown: str,
    stored: str,
    own: str | None = None,
    **typed: str | None,
) -> EditorInput:
    """Type into a page that was shown before."""
    fields = Fields()
    fields.feed(shown)
    data = QueryDict(mutable=True)
    for name, value in {**fields.values, **typed}.items():
        if value is not None:
            data[name] = value
    field = SheetField(sheet)
    field.set_stored_value(stored, own)
    sent: EditorInput = field.widget.value_from_datadict(data, None, name_of(sheet))
    return sent
