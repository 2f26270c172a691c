"""Rows of small forms inside a form, which users can order and remove."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.forms.boundfield import BoundField
from django.forms.formsets import DELETION_FIELD_NAME, ORDERING_FIELD_NAME, BaseFormSet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from mcp_app.admin.editors.json_texts import filled_lines, lines_from_browser
from mcp_app.protocol.json_types import JsonObject

# -- composite -------------------------------------------------------------------------
# The base class of widgets with several inputs under one name, or without any.


class CompositeWidget(forms.Widget):
    """Passes its value to the template unchanged; the label belongs to no single input.

    `there` is the suffix of an input that a page always sends if it has the widget.
    """

    use_fieldset = True
    there: ClassVar[str] = ""

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}{self.there}" not in data

    def id_for_label(self, id_: str | None) -> str:
        return ""

    def format_value(self, value: Any) -> Any:
        return value


# -- not representable -----------------------------------------------------------------
# The error for values that rows of forms cannot show.


class NotRepresentable(Exception):
    """A table cannot show a value without loss; the message names the member."""


def area_text(text: object) -> str:
    """Return a text as a browser's text area sends it back."""
    return str(text).strip().replace("\r", "")


def check_same(
    stored: JsonObject, written: JsonObject, empty: JsonObject, where: str
) -> None:
    """Raise `NotRepresentable` if a row would write another value than the stored one.

    `empty` has, for each optional member, the value that means the same as no member.
    """
    member = _differing_member(stored, written, empty)
    if member is not None:
        raise NotRepresentable(f"{member} in {where}")


def stored_or_written(
    stored: JsonObject, written: JsonObject, empty: JsonObject
) -> JsonObject:
    """Return the stored value if the row means the same, else the written one."""
    member = _differing_member(stored, written, empty)
    return stored if member is None else written


def _differing_member(
    stored: JsonObject, written: JsonObject, empty: JsonObject
) -> str | None:
    """Return the name of a member with another meaning; None if there is none."""
    one, other = (
        {name: json.dumps(value, sort_keys=True) for name, value in each.items()}
        for each in ({**empty, **stored}, {**empty, **written})
    )
    for name in {**one, **other}:
        if one.get(name) != other.get(name):
            before, after = stored.get(name), written.get(name)
            if isinstance(before, dict) and isinstance(after, dict):
                return _differing_member(before, after, {})
            return name
    return None


# -- rows ------------------------------------------------------------------------------

SHOW: Final = "show-"
"""Prefix of inputs that show the form again without saving it."""
SPARE: Final = 2
"""Empty rows at the end, for browsers without JavaScript."""
MAX_ROWS: Final = 40


class LinesField(forms.CharField):
    """A text of several lines; accepts the CR LF of browsers."""

    def __init__(self, *, rows: int = 2, **options: Any) -> None:
        options.setdefault("widget", forms.Textarea({"rows": rows, "cols": 40}))
        super().__init__(required=False, **options)

    def to_python(self, value: Any) -> str:
        return lines_from_browser(super().to_python(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return lines_from_browser(initial) != self.to_python(data)


class TextsField(LinesField):
    """A text area whose value is the list of its lines, without empty ones."""

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return filled_lines(super().to_python(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return filled_lines(self.prepare_value(initial)) != filled_lines(data)


class RowForm(forms.Form):
    """One row; `was` is the stored name or index of what it shows, "" if it is new."""

    use_required_attribute = False

    was = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    def legend(self) -> str:
        """Return the name of the row to show beside its number; "" for a new row."""
        return ""

    def offer_choices(self, name: str, choices: Sequence[Any]) -> None:
        """Set the choices of a field."""
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    def error_places(self, number: str) -> Iterator[tuple[str, BoundField, str]]:
        """Yield the row's name or number, the field and the message of each error."""
        for name, sentences in self.errors.items():
            bound = self[name] if name in self.fields else self["was"]
            yield self.legend() or number, bound, " ".join(map(str, sentences))


if TYPE_CHECKING:

    class TypedFormSet(BaseFormSet[RowForm]): ...

else:
    # Django's class takes no type arguments at run time.
    TypedFormSet = BaseFormSet


class Rows(TypedFormSet):
    """Rows in the order that the user gave them."""

    def add_fields(self, form: RowForm, index: int | None) -> None:
        super().add_fields(form, index)
        form.fields[DELETION_FIELD_NAME].label = _("Remove")
        field = form.fields[ORDERING_FIELD_NAME]
        field.label = _("Place")
        field.widget.attrs.update({"class": "mcp-place", "min": 1})

    @property
    def wrong(self) -> list[RowForm]:
        """The rows with errors that are not being removed."""
        # Django's `deleted_forms` is empty if any row is invalid.
        return [
            form
            for form in self.forms
            if form.errors and not form.cleaned_data.get(DELETION_FIELD_NAME)
        ]

    def wrong_in_words(self) -> str:
        """Return a sentence about the rows with errors, "" if there is none."""
        count = len(self.wrong)
        sentence = ngettext(
            "%d entry below has an error.", "%d entries below have errors.", count
        )
        return sentence % count if count else ""


def formset_class_of(form: type[RowForm], max_rows: int = MAX_ROWS) -> type[Rows]:
    """Return the formset class for rows of a form."""
    formset: type[Rows] = forms.formset_factory(  # type: ignore[assignment]
        form,
        formset=Rows,
        extra=SPARE,
        can_order=True,
        can_delete=True,
        max_num=max_rows,
        absolute_max=max_rows + SPARE,
        validate_max=True,
    )
    return formset
