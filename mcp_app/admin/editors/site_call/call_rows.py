"""The rows of a call of another site: pairs, headers, error texts, and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup_choices import NONE
from mcp_app.admin.editors.one_form import OneRow
from mcp_app.admin.editors.rows import LinesField, RowForm, Rows, formset_class_of
from mcp_app.admin.editors.site_call.parameters import (
    MAX_PARTS,
    NAME,
    CallPart,
    NamedPart,
)
from mcp_app.interface.rules import visible
from mcp_app.kinds.http.config import BRACKETS, COMMAS, MAX_PAIRS, PIPES, REPEAT, SPACES
from mcp_app.protocol.json_types import JsonObject

STYLES: Final = {
    REPEAT: _("name=a&name=b"),
    COMMAS: _("name=a,b"),
    SPACES: _("name=a b"),
    PIPES: _("name=a|b"),
    BRACKETS: _("name[a]=b"),
}
"""How lists and objects are written."""


class MemberForm(RowForm):
    """A row for a name and its value; an unchanged row keeps its stored JSON."""

    name = forms.CharField(label=_("Name"), required=False, max_length=200)

    def legend(self) -> str:
        return str(self["name"].value() or "")

    def config_member(self) -> JsonObject:
        """Return the member of the config that the valid row makes."""
        if not self.has_changed():
            return dict(self.initial["member"])
        values = self.cleaned_data
        member = {"name": values["name"], "value": values["value"]}
        if values.get("style", "") not in ("", REPEAT):
            member["style"] = values["style"]
        return member

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.has_changed() and not (self.cleaned_data.get("name") or self.errors):
            self.add_error("name", _("Write it, or remove this row."))
        return cleaned


class PairForm(MemberForm):
    """A pair of a query or of a form."""

    value = forms.CharField(label=_("Value"), required=False, strip=False)
    style = forms.ChoiceField(
        label=_("Lists and objects as"),
        choices=[*STYLES.items()],
        initial=REPEAT,
        required=False,
    )


class HeaderForm(MemberForm):
    """A header."""

    value = forms.CharField(label=_("Value"), required=False)


class ErrorForm(MemberForm):
    """The text that clients read if the other site answers with this status."""

    name = forms.ChoiceField(  # type: ignore[assignment]
        label=_("Status"),
        choices=[
            NONE,
            *(
                (str(each.value), f"{each.value} {each.phrase}")
                for each in HTTPStatus
                if each >= HTTPStatus.MULTIPLE_CHOICES
            ),
        ],
        required=False,
    )
    value = LinesField(label=_("What clients read"), rows=2)


def initial_pairs(members: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """Return the rows that show the pairs of a config."""
    return [
        {"style": REPEAT, **each, "was": str(at), "member": each}
        for at, each in enumerate(members)
    ]


class PartForm(RowForm):
    """A value of the call, which may become a parameter."""

    name = forms.CharField(required=False)
    optional = forms.BooleanField(label=_("may be left out"), required=False)
    description = forms.CharField(required=False, max_length=1_000)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.part: CallPart = self.initial.get("part", CallPart((), "", ""))
        # A placeholder for which there is no parameter yet.
        self.is_new = bool(self.part.name) and not self.initial.get("is_known")
        self.shown = shown = visible(str(self.part.value))
        for field, label, size in (
            ("name", _("Parameter for %(value)s"), 10),
            ("description", _("What %(value)s means"), 22),
        ):
            widget, values = self.fields[field].widget, {"value": shown[:40]}
            widget.attrs |= {"aria-label": label % values, "size": size}
            if field == "name" and self.is_new and not self.part.place:
                widget.attrs["readonly"] = True
            self.fields[field].label = label % values
        always = _("always %(value)s") % {"value": shown[:20]}
        self.fields["name"].widget.attrs["placeholder"] = always
        if self.part.is_in_path:
            del self.fields["optional"]

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"]).strip("{} ")
        if name and not NAME.fullmatch(name):
            message = _(
                "“%(name)s” cannot name a parameter: it begins with a letter, and has"
                " only letters of a to z, digits, _ and -."
            )
            raise ValidationError(message, params={"name": visible(name)[:80]})
        if not (name or self.part.name) and self.has_changed():
            raise ValidationError(_("Name it, or leave the rest of the line empty."))
        return name

    def part_name(self) -> NamedPart:
        """Return the part with the name and description from the valid row."""
        values, has_description = self.cleaned_data, "description" in self.changed_data
        description = values["description"] if has_description else ""
        optional = values.get("optional", False)
        return NamedPart(self.part, values["name"], description, optional)


class PairRows(Rows):
    """Rows of pairs, which can be shown as one line of text."""

    def in_words(self) -> str:
        """Return the names and values, "" if there is none."""
        members = (form.initial.get("member") for form in self.initial_forms)
        pairs = [f"{each['name']}={each['value']}" for each in members if each]
        return visible(", ".join(pairs))


def _rows_of(form: type[RowForm]) -> type[Rows]:
    formset = formset_class_of(form, MAX_PAIRS)
    return type(formset.__name__, (PairRows, formset), {"extra": 1})


ROWS: Final[Mapping[str, type[Rows]]] = {
    "query": _rows_of(PairForm),
    "headers": _rows_of(HeaderForm),
    "form": _rows_of(PairForm),
    "errors": _rows_of(ErrorForm),
}
"""The formsets inside the form, by the name of the part."""
PART_ROWS: Final[type[Rows]] = forms.formset_factory(  # type: ignore[assignment]
    PartForm, formset=OneRow, extra=0, max_num=2 * MAX_PARTS, absolute_max=2 * MAX_PARTS
)
