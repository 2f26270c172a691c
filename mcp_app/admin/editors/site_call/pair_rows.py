"""Names and values of a call as rows: after the “?”, headers, a form, own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup.choices import NONE
from mcp_app.admin.editors.rows import LinesField, RowForm, Rows, rows_of
from mcp_app.kinds.http.schema import (
    BRACKETS,
    COMMAS,
    MOST_PAIRS,
    PIPES,
    REPEAT,
    SPACES,
)
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
    """A row that stays as it was if nobody changed it."""

    named: ClassVar[str] = "name"

    def legend(self) -> str:
        return str(self[self.named].value() or "")

    def member(self) -> JsonObject:
        """Return the member of the config that the valid row makes."""
        if not self.has_changed():
            return dict(self.initial["member"])
        return self.new_member()

    def new_member(self) -> JsonObject:
        """Return a changed row's member."""
        given = self.cleaned_data
        return {"name": given["name"], "value": given["value"]}

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        missing = self.has_changed() and not self.cleaned_data.get(self.named)
        if missing and self.named not in self.errors:
            self.add_error(self.named, _("Write it, or remove this row."))
        return cleaned


class PairForm(MemberForm):
    """A pair of a query or of a form."""

    name = forms.CharField(label=_("Name"), required=False, max_length=200)
    value = forms.CharField(label=_("Value"), required=False, strip=False)
    style = forms.ChoiceField(
        label=_("Lists and objects as"),
        choices=[*STYLES.items()],
        initial=REPEAT,
        required=False,
    )

    def new_member(self) -> JsonObject:
        style = self.cleaned_data["style"] or REPEAT
        return {**super().new_member(), **({} if style == REPEAT else {"as": style})}


class HeaderForm(MemberForm):
    """A header."""

    name = forms.CharField(label=_("Name"), required=False, max_length=200)
    value = forms.CharField(label=_("Value"), required=False)


class ErrorForm(MemberForm):
    """What clients read if the other site answers with a status."""

    named = "status"

    status = forms.TypedChoiceField(
        label=_("Status"),
        choices=[NONE]
        + [
            (str(each.value), f"{each.value} {each.phrase}")
            for each in HTTPStatus
            if each.value >= HTTPStatus.MULTIPLE_CHOICES
        ],
        required=False,
    )
    value = LinesField(label=_("What clients read"), rows=2)

    def new_member(self) -> JsonObject:
        given = self.cleaned_data
        return {"name": given["status"], "value": given["value"]}


def initial_pairs(members: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """Return the rows that show the pairs of a config."""
    return [
        {
            "name": each["name"],
            "status": each["name"],
            "value": each["value"],
            "style": each.get("as", REPEAT),
            "was": str(at),
            "member": each,
        }
        for at, each in enumerate(members)
    ]


def members_of(rows: Rows) -> list[JsonObject]:
    """Return what valid rows make, in their order."""
    return [
        form.member() for form in rows.ordered_forms if isinstance(form, MemberForm)
    ]


ROWS: Final[Mapping[str, type[Rows]]] = {
    "query": rows_of(PairForm, MOST_PAIRS),
    "headers": rows_of(HeaderForm, MOST_PAIRS),
    "form": rows_of(PairForm, MOST_PAIRS),
    "errors": rows_of(ErrorForm, MOST_PAIRS),
}
"""The rows inside the form, by what they are."""
