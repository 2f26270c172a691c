"""The form field of a sheet: rows, a text area, and the choice between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.composite import CompositeWidget
from mcp_app.admin.editors.json_editor import (
    EditorInput,
    JsonEditor,
    Result,
    Way,
    value_of,
)
from mcp_app.admin.editors.not_representable import NotRepresentable
from mcp_app.admin.editors.rows import Rows

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict


@dataclass
class EditorContent:
    """What a page shows of a sheet."""

    sheet: JsonEditor
    way: Way
    text: str
    shown: str
    rows: Rows | None
    own: str | None
    beyond: str = ""
    both: bool = False
    summary: object = None


def _shown_text(
    sheet: JsonEditor, name: str, stored: str, own: str | None, way: Way | None
) -> EditorContent:
    origin = stored or own or ""
    text = json_texts.shown_text(origin)
    value, beyond = value_of(text), ""
    rows: Rows | None = None
    try:
        if value is None and text.strip():
            raise NotRepresentable(_("it is not JSON"))
        rows = sheet.formset(
            initial=sheet.initial(value),
            prefix=name,
            form_kwargs={"use_required_attribute": False},
        )
    except NotRepresentable as error:
        beyond = str(sheet.words["beyond"]) % {"reason": error}
    usual: Way = "own" if own is not None and not stored else "table"
    chosen = way or usual
    return EditorContent(
        sheet=sheet,
        way="json" if beyond and chosen == "table" else chosen,
        text=text,
        shown=text,
        rows=rows,
        own=own,
        beyond=beyond,
        summary=sheet.summary(value) if beyond else None,
    )


def _shown_given(given: EditorInput) -> EditorContent:
    """Show sent data again: rows and JSON alike if it is valid, else as it was sent."""
    result = given.result
    # Other fields may have added errors to rows that were valid by themselves.
    wrong = given.formset.wrong if given.formset is not None else []
    if not result.problem and not wrong:
        return _shown_text(
            given.sheet, given.name, result.text, given.own, _stays(given, result)
        )
    as_it_was = _shown_text(
        given.sheet, given.name, given.shown_text, given.own, result.way
    )
    as_it_was.text, as_it_was.both = given.text, result.both
    as_it_was.way = result.way
    if given.formset is not None:
        as_it_was.rows = given.formset
    return as_it_was


def _stays(given: EditorInput, result: Result) -> Way:
    """Return the way to show: the one that a script asked for, or else the one read."""
    if given.show is not None:
        return given.show
    return "own" if not result.text and given.own is not None else result.way


class SheetWidget(CompositeWidget):
    """Rows and a text area; `own` is the JSON to use if the column is empty."""

    template_name = "mcp_app/widgets/sheet.html"
    there = "-as"

    def __init__(self, sheet: JsonEditor) -> None:
        super().__init__()
        self.sheet = sheet
        self.stored = ""
        self.own: str | None = None
        self._given: EditorInput | None = None

    @property
    def needs_multipart_form(self) -> bool:  # type: ignore[override]
        return self.sheet.multipart

    def value_from_datadict(
        self,
        data: Mapping[str, Any],
        files: MultiValueDict[str, UploadedFile[Any]] | None,
        name: str,
    ) -> EditorInput:
        """Return the same object for the same data, because its rows are validated."""
        if self._given is None or self._given.data is not data:
            self._given = EditorInput(
                self.sheet, data, files, name, self.stored, self.own
            )
        return self._given

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        if isinstance(value, EditorInput) and value.is_there:
            shown = _shown_given(value)
        else:
            shown = _shown_text(self.sheet, name, self.stored, self.own, None)
        words = self.sheet.words
        return {**context, "sheet": shown, "words": words, "name": name}

    def places(self, given: EditorInput) -> Iterator[tuple[str, str, str]]:
        """Yield the id, label and message of each error in a row."""
        if given.formset is None:
            return
        for form in given.formset.wrong:
            number = given.formset.forms.index(form) + 1
            for row, bound, message in form.places(str(number)):
                label = f"{row}: {bound.label}" if row else str(bound.label)
                yield bound.auto_id, label, message


class SheetField(forms.Field):
    """The JSON text of a column; "" if it is empty."""

    def __init__(self, sheet: JsonEditor) -> None:
        super().__init__(required=False, widget=SheetWidget(sheet))

    @property
    def sheet_widget(self) -> SheetWidget:
        return cast("SheetWidget", self.widget)

    def shows(self, stored: str, own: str | None = None) -> None:
        """Set the column's text, and the JSON to use if it is empty."""
        self.sheet_widget.stored, self.sheet_widget.own = stored, own

    def clean(self, value: EditorInput) -> str:
        result = value.result
        if result.problem:
            raise ValidationError(result.problem, code="both" if result.both else None)
        return result.text

    def parts(self, value: Any) -> Mapping[str, object]:
        """Return the JSON to compare, or the whole result if it is invalid."""
        if not isinstance(value, EditorInput):
            return {"": json_texts.shown_text(str(value or ""))}
        if value.result.problem:
            return {"": value.result}
        return {"": json_texts.shown_text(value.result.text)}

    def on_top(self, mine: EditorInput, touched: set[str]) -> EditorInput:
        """Return what was sent, with files that somebody else replaced meanwhile."""
        return mine.with_newer_files()

    def has_changed(self, initial: Any, data: Any) -> bool:
        result: Result = data.result
        return bool(result.problem) or result.text != data.stored
