"""A form that detects concurrent edits and keeps what was typed when shown again.

The page carries the row's version number and digests of the values that it showed. The
second user to save gets an error, and sees both values of each field that differs. A
field has one digest. If it has a method `parts`, it has a digest for each part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.forms.utils import ErrorDict
from django.forms.widgets import Script
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from mcp_app.admin.editors.json_editor import SheetWidget
from mcp_app.admin.editors.json_members import SEPARATOR
from mcp_app.admin.editors.json_texts import (
    formatted_text,
    lines_from_browser,
    parse_or_none,
)
from mcp_app.admin.forms.fields import FIELDS, JsonField
from mcp_app.admin.page.wording import EVERY, Words
from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import visible
from mcp_app.models.changes import WatchedRow
from mcp_app.models.fields import JSONTextField, digest
from mcp_app.publishing.differences import CHANGES, client_view, differences
from mcp_app.site_time import time_text

if TYPE_CHECKING:
    from django.db.models import Field

Row = TypeVar("Row", bound=WatchedRow)

if TYPE_CHECKING:

    class TypedForm(forms.ModelForm[Row]): ...

else:
    # Django's class takes no type arguments at run time.
    class TypedForm(forms.ModelForm, Generic[Row]): ...


MINE: Final = "_mine"
"""The button that applies my changes to the version that somebody else saved."""
_OF_THE_PAGE: Final = {"kind", "opened_fields", "opened_version"}
"""Hidden fields that no user fills in."""
_DIGITS: Final = 16
"""How many digits of a digest a page carries."""
_NEVER_COMPARED: Final = {"id", "lock_version", "created", "updated", "updated_by"}


Triple: TypeAlias = tuple[str, str, str]


class WatchedForm(TypedForm[Row]):
    """Refuses to overwrite what somebody else saved after the form was opened."""

    WORDS: ClassVar[Words] = {}

    opened_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    opened_fields = forms.CharField(required=False, widget=forms.HiddenInput)

    differences: Sequence[Triple] = ()
    """The differences from the version that somebody else saved meanwhile.

    Each is the label of a field, and the values of both users as a page shows them.
    """
    is_conflict = False
    """Whether somebody else saved the row, so this form did not."""
    left_out: Sequence[str] = ()
    """The files of an upload that were ignored."""
    note: str = ""
    """A message above a form that is shown again, unsaved and without errors."""

    class Media:
        css = {"all": ["mcp_app/admin.css"]}
        js = [Script("mcp_app/admin.js", defer=True)]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        words = {**EVERY, **self.WORDS}
        for name in self.fields.keys() & words.keys():
            self.fields[name].label, self.fields[name].help_text = words[name]
        for name in self.fields.keys() & FIELDS.keys():
            field: Any = self.fields[name]
            field.offer_stored(str(getattr(self.instance, name)))
        self._saved = _editable_values(self.instance)
        self.initial["opened_version"] = self.instance.lock_version

    def get_initial_for_field(self, field: forms.Field, field_name: str) -> Any:
        if field_name == "opened_fields" and field_name not in self.initial:
            # Compute it late: subclasses set initial values in their constructors.
            return self._digests_now()
        return super().get_initial_for_field(field, field_name)

    def is_valid(self) -> bool:
        # Cleaning may have made the form unbound, to show it again.
        return super().is_valid() and self.is_bound

    def _clean_fields(self) -> None:
        for name, field in self.fields.items():
            if isinstance(field, JsonField):
                field.stored = str(self.get_initial_for_field(field, name) or "")
        super()._clean_fields()  # type: ignore[misc]

    def full_clean(self) -> None:
        super().full_clean()
        for name in self._errors.keys() & self.fields.keys():
            if isinstance(self[name].field.widget, SheetWidget):
                self[name].data.is_refused = True
        if self.is_bound and self.is_conflict and MINE in self.data:
            self._put_mine_on_top()

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        opened_version = self.cleaned_data.get("opened_version")
        if self.instance.pk and opened_version != self.instance.lock_version:
            self.add_error(
                None, ValidationError(self._conflict_message(), code="conflict")
            )
        return cleaned

    def _post_clean(self) -> None:
        self.is_conflict = self.has_error(NON_FIELD_ERRORS, "conflict")
        super()._post_clean()  # type: ignore[misc]
        if self.is_conflict:
            self.differences = [*self._differences()]

    def _conflict_message(self) -> str:
        by = getattr(self.instance, "updated_by", None) or _("Someone")
        at = getattr(self.instance, "updated", None) or timezone.now()
        what = self.instance._meta.verbose_name
        return _(
            "%(by)s saved this %(what)s at %(at)s, after you opened it. Nothing was "
            "overwritten; your text is still in the form below."
        ) % {"by": by, "what": what, "at": time_text(at)}

    def _differences(self) -> Iterator[Triple]:
        """Yield the differences: JSON and hints in the words of the page *Publish*."""
        row: Any = self.instance
        mine, saved = _editable_values(row), copy(row)
        vars(saved).update(self._saved)
        views = (
            client_view(each, each.working_content(), mcp) for each in (saved, row)
        )
        in_words = {
            field: [(each.part, each.before, each.after) for each in entries]
            for field, entries in groupby(differences(*views), attrgetter("field"))
        }
        for name, theirs in self._saved.items():
            field, column = self.field_of_column(name), row._meta.get_field(name)
            if mine[name] == theirs or field not in self.fields:
                continue
            lines: Any = [("", theirs, mine[name])]
            if isinstance(column, JSONTextField):
                lines = in_words.pop(name, lines)
            elif field == CHANGES:
                # The hints are several columns, but one field: yield them once.
                lines = in_words.pop(field, [])
            for part, before, after in lines:
                label = capfirst(part) or str(self.fields[field].label)
                yield label, _value_text(column, before), _value_text(column, after)

    def field_of_column(self, column: str) -> str:
        """Return the name of the form field that edits a column."""
        return column

    def _digests_now(self) -> str:
        """Return the digests of the fields' values in the saved row."""
        digests = {}
        for name, field in self._fillable_fields():
            shown = field.prepare_value(self.get_initial_for_field(field, name))
            for part, part_digest in field_digests(field, shown).items():
                digests[f"{name}{part}"] = part_digest
        return json.dumps(digests)

    def _fillable_fields(self) -> Iterator[tuple[str, forms.Field]]:
        """Yield the fields that users fill in."""
        for name, field in self.fields.items():
            if name not in _OF_THE_PAGE:
                yield name, field

    def _touched_fields(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields that the user changed, with their values.

        In such a field, untouched parts get the saved value.
        """
        digests = parse_or_none(str(self.cleaned_data.get("opened_fields") or ""))
        digests = digests if isinstance(digests, dict) else {}
        for name, field in self._fillable_fields():
            data = self[name].data
            sent = field_digests(field, data)
            keys = [e for e in digests if e.startswith(f"{name}{SEPARATOR}")]
            parts = {*sent, *(each.removeprefix(name) for each in keys)}
            touched = {e for e in parts if digests.get(f"{name}{e}") != sent.get(e)}
            if touched:
                merge = getattr(field, "on_top", None)
                yield name, data if merge is None else merge(data, touched)

    def _put_mine_on_top(self) -> None:
        """Show the fields that I changed as sent, and the others as saved."""
        mine, digests = dict(self._touched_fields()), self._digests_now()
        self.show_again(mine)
        self.is_conflict = False
        self.initial["opened_version"] = self.instance.lock_version
        self.initial["opened_fields"] = digests
        self.note = self._with_files(
            _(
                "The form shows the saved version with your changes in it."
                " Nothing is saved yet: check the form, then press Save."
            )
        )

    def _with_files(self, note: str) -> str:
        """Add that the file must be chosen again: browsers do not send it twice."""
        again = _("Choose the file again.")
        return f"{note} {again}".strip() if self.files else note

    def show_again(self, typed: Mapping[str, Any]) -> None:
        """Show the form again without errors, with these values in its fields."""
        self.initial.update(typed)
        self.is_bound = False
        self._errors = ErrorDict()
        self._bound_fields_cache: dict[str, forms.BoundField] = {}

    def places(self) -> list[Triple]:
        """Return the HTML id and label of each wrong field, and the message.

        The summary at the top of the page shows them.
        """
        names = [name for name in self.errors if name != NON_FIELD_ERRORS]
        return [place for name in names for place in self._places_of(name)]

    def _places_of(self, name: str) -> list[Triple]:
        bound = self[name]
        widget = bound.field.widget
        id_ = bound.id_for_label or bound.auto_id
        if isinstance(widget, SheetWidget):
            if bound.data.result.way == "json":
                id_ = f"{id_}-json"
            elif inner := [*widget.error_places(bound.data)]:
                return inner
        return [(id_, str(bound.label), " ".join(map(str, bound.errors)))]


def _editable_values(row: WatchedRow) -> dict[str, Any]:
    return {
        field.name: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.name not in _NEVER_COMPARED and field.editable
    }


def _value_text(field: Field[Any, Any], value: Any) -> str:
    if value in (None, ""):
        return _("(empty)")
    text = formatted_text(value) if isinstance(field, JSONTextField) else str(value)
    return visible(text, None)


def field_digests(field: forms.Field, value: Any) -> dict[str, str]:
    """Return the digest of each part of a field's value, shown or sent."""
    parts_of = getattr(field, "parts", None)
    parts: Mapping[str, object] = {}
    if parts_of is not None:
        parts = parts_of(value)
    elif not isinstance(field, forms.FileField):
        # A file has no parts: browsers send it only if it is new.
        parts = {"": _plain_value(field, value)}
    return {part: digest(repr(content))[:_DIGITS] for part, content in parts.items()}


def _plain_value(field: forms.Field, value: Any) -> object:
    """Normalize a value, so that a shown value equals the same value when sent."""
    if isinstance(value, list | tuple):
        return sorted(map(str, value))
    try:
        read = field.to_python(value)
    except ValidationError:
        read = value
    return lines_from_browser(read) if isinstance(read, str) else read
