"""JSON columns as read-only tables that show everything an editor shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_editor import value_of
from mcp_app.admin.editors.not_representable import NotRepresentable
from mcp_app.admin.editors.parameters.parameter import Parameter
from mcp_app.admin.editors.parameters.parameter_tables import parameters_of, summaries
from mcp_app.admin.editors.parameters.parameter_values import (
    limits_in_words,
    text_of_choices,
    text_of_value,
    type_label,
)
from mcp_app.admin.editors.suggestions import as_lines
from mcp_app.admin.editors.variables import rows_of, texts_of, variables_of
from mcp_app.interface.decorations import arguments_from_json
from mcp_app.interface.rules import visible

Cells: TypeAlias = Sequence[str]


def table(headings: Cells, rows: Sequence[Cells], stored: str = "") -> SafeString:
    """Return a table with hidden characters made visible, and the stored JSON."""
    shown = [[visible(cell, None) for cell in row] for row in rows]
    return render_to_string(
        "mcp_app/widgets/read_table.html",
        {
            "rows": [list(zip(headings, row, strict=True)) for row in shown],
            "headings": headings,
            "json": as_json(stored),
        },
    )


def as_json(stored: str) -> str:
    """Return a JSON column formatted for people."""
    return visible(json_texts.shown_text(stored), None)


def parameters(stored: str) -> SafeString:
    """Return the parameters of an input schema as a table."""
    schema = value_of(stored)
    schema = schema if isinstance(schema, dict) else {}
    headings = (_("Name"), _("Type"), _("Limits"), _("If left out"), _("Description"))
    try:
        rows = [_parameter(each) for each in parameters_of(schema)]
    except NotRepresentable:
        rows = [
            [each.name, _kind(each), "", "", each.description]
            for each in summaries(schema)
        ]
    return table(headings, rows, stored)


def _kind(about: Any) -> str:
    label = type_label(about.type)
    return _("%(type)s, required") % {"type": label} if about.required else label


def _parameter(row: Parameter) -> Cells:
    example = text_of_value(row.type, row.example)
    described = [row.description]
    if example:
        described.append(_("Example: %(example)s") % {"example": example})
    limits = [limits_in_words(replace(row, choices=())), text_of_choices(row.choices)]
    return [
        row.name,
        _kind(row),
        "\n".join(filter(None, limits)),
        text_of_value(row.type, row.default),
        "\n".join(filter(None, described)),
    ]


def arguments(stored: str) -> SafeString:
    """Return the arguments of a prompt with their suggestions as a table."""
    headings = (_("Name"), _("Title"), _("Required"), _("Description"))
    found = value_of(stored) or []
    try:
        arguments_from_json(found)
    except ValueError:
        # No form can have written this: show it only as JSON.
        found = []
    rows = [_argument(each) for each in found]
    return table((*headings, _("Suggestions")), rows, stored)


def _argument(argument: Mapping[str, Any]) -> Cells:
    texts = [str(argument.get(name, "")) for name in ("name", "title")]
    required = _("yes") if argument.get("required") else _("no")
    suggestions = as_lines(argument.get("suggestions", ()))
    return [*texts, required, str(argument.get("description", "")), suggestions]


def suggestions(stored: str, uri_template: str) -> SafeString:
    """Return the variables of a URI template with their suggestions as a table."""
    return table(
        (_("Variable"), _("Suggestions"), _("Note")),
        list(_variables(stored, uri_template)),
        stored,
    )


def _variables(stored: str, uri_template: str) -> Iterator[Cells]:
    for row in rows_of(texts_of(stored), variables_of(uri_template)):
        note = ""
        if not row.is_known:
            note = _(
                "The address pattern has no %(variable)s, so these suggestions"
                " are not used."
            )
            note %= {"variable": row.name}
        yield [row.name, row.text, note]
