"""Rows of small forms inside a form: each has a place and can be removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.forms.formsets import DELETION_FIELD_NAME, ORDERING_FIELD_NAME, BaseFormSet
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_texts import lines_from_browser

SPARE: Final = 2
"""Empty rows at the end, for browsers without JavaScript."""
MOST_ROWS: Final = 40


class LinesField(forms.CharField):
    """A text of lines, which browsers send with CR LF."""

    def __init__(self, *, rows: int = 2, **options: Any) -> None:
        options.setdefault("widget", forms.Textarea({"rows": rows, "cols": 40}))
        super().__init__(required=False, **options)

    def to_python(self, value: Any) -> str:
        return lines_from_browser(super().to_python(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return lines_from_browser(initial) != self.to_python(data)


class RowForm(forms.Form):
    """One row; `was` says which of the rows that were shown it is."""

    use_required_attribute = False

    was = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    def legend(self) -> str:
        """Return what the row is called beside its number; "" where it is new."""
        return ""


if TYPE_CHECKING:

    class TypedFormSet(BaseFormSet[RowForm]): ...

else:
    # Django's class takes no type arguments when it runs.
    TypedFormSet = BaseFormSet


class Rows(TypedFormSet):
    """Rows in the order that people gave them."""

    def add_fields(self, form: RowForm, index: int | None) -> None:
        super().add_fields(form, index)
        form.fields[DELETION_FIELD_NAME].label = _("Remove")
        place = form.fields[ORDERING_FIELD_NAME]
        place.label = _("Place")
        place.widget.attrs.update({"class": "mcp-place", "min": 1})

    @property
    def wrong(self) -> list[RowForm]:
        """The rows that stay and have errors."""
        # Where one row is wrong, Django names none of those that go.
        return [
            form
            for form in self.forms
            if form.errors and not form.cleaned_data.get(DELETION_FIELD_NAME)
        ]


def rows_of(form: type[RowForm], most: int = MOST_ROWS) -> type[Rows]:
    """Return the formset for rows of a form."""
    formset: type[Rows] = forms.formset_factory(  # type: ignore[assignment]
        form,
        formset=Rows,
        extra=SPARE,
        can_order=True,
        can_delete=True,
        max_num=most,
        absolute_max=most + SPARE,
        validate_max=True,
    )
    return formset
