"""What people see who may look at a definition and not change it."""

from __future__ import annotations

from typing import cast

from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from mcp_app.admin import reading
from mcp_app.admin.file_parts import FilePartField
from mcp_app.admin.forms import FORMS, DefinitionForm
from mcp_app.admin.forms.definition import function_label
from mcp_app.admin.forms.fields import Panel
from mcp_app.admin.hints import BOXES, EFFECTS, Answer
from mcp_app.models import DefinitionRow


def _form(row: DefinitionRow) -> DefinitionForm[DefinitionRow]:
    forms = FORMS[type(row)]
    return forms.get(row.kind, forms["text"])(instance=row)


class ReadOnlyFields:
    """Fields of the forms that are no columns, as the admin shows them read-only."""

    @admin.display(description=_("Text"))
    def text(self, row: DefinitionRow) -> str:
        return format_html("<pre>{}</pre>", _form(row).initial.get("text", ""))

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
        return str(reading.AUDIENCES[_form(row).initial["audience"]])

    @admin.display(description=_("Importance"))
    def importance(self, row: DefinitionRow) -> str:
        given = _form(row).initial["importance"]
        return str(reading.IMPORTANCES.get(given, given))

    @admin.display(description=_("From code"))
    def from_code(self, row: DefinitionRow) -> str:
        return str(_form(row)["from_code"])

    @admin.display(description=_("What clients read now"))
    def now(self, row: DefinitionRow) -> str:
        return str(_form(row)["now"])

    @admin.display(description=_("Preview"))
    def preview(self, row: DefinitionRow) -> str:
        form = _form(row)
        panel = cast("Panel", form.fields["preview"].widget)
        panel.shown = {**panel.shown, "is_fixed": True}
        return str(form["preview"])
