"""A JSON column that staff edit either as rows of small forms or as JSON.

The page carries what it showed, and whatever differs from that was changed. So nothing
depends on scripts. Users who change both must choose which of the two to keep.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.rows import CompositeWidget, NotRepresentable, RowForm, Rows
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

Way: TypeAlias = Literal["own", "table", "json"]
Initial: TypeAlias = "list[dict[str, Any]]"

WAYS: Final = ("own", "table", "json")


class JsonEditor(ABC):
    """How one column is edited as rows; all texts are for staff."""

    formset: ClassVar[type[Rows]]
    row_template: ClassVar[str]
    summary_template: ClassVar[str] = ""
    multipart: ClassVar[bool] = False
    words: ClassVar[Mapping[str, Any]] = {}
    """Texts of the page; for scripts, `least` rows and `names_of` another sheet."""

    @abstractmethod
    def initial_rows(self, value: Any) -> Initial:
        """Return the rows that show a value; raise `NotRepresentable`."""

    @abstractmethod
    def value_of_rows(self, rows: Iterable[RowForm], base: Any) -> Any:
        """Return the value of valid rows; `base` is the value shown before,
        or None."""

    def parse_typed_json(self, text: str) -> Any:
        """Parse typed JSON; the ValueError says what is wrong in which line."""
        return json_texts.parse_strict_json(text)

    def summary_of_value(self, value: Any) -> object:
        """Return a summary of a value that rows cannot show."""
        return None

    def newer_files(self, rows: Rows, base: Any, saved: Any) -> Mapping[str, str]:
        """Return fields with new values for rows whose file was replaced meanwhile.

        `base` is the value that was shown, `saved` the one that is stored
        now.
        """
        return {}

    def check_rows(self, rows: Rows) -> None:
        """Add errors that concern several rows."""
        check_names(rows, str(self.words["twice"]))


def check_names(rows: Rows, twice: str) -> None:
    """Add an error to each row that repeats the name of an earlier one."""
    names: set[str] = set()
    for form in rows.ordered_forms:
        name = form.cleaned_data.get("name", "")
        if name and name in names:
            form.add_error("name", twice % {"name": name})
        names.add(name)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a form: the text to store, or the problem."""

    way: Way
    text: str = ""
    problem: str = ""
    both: bool = False
    """Whether both rows and JSON were changed, and nobody chose which to keep."""


@dataclass
class EditorInput:
    """What a browser sent for a sheet."""

    sheet: JsonEditor
    data: Mapping[str, Any]
    files: MultiValueDict[str, UploadedFile[Any]] | None
    name: str
    stored: str
    own: str | None

    def _submitted_text(self, what: str) -> str:
        return lines_from_browser(self.data.get(f"{self.name}-{what}"))

    @property
    def is_submitted(self) -> bool:
        return f"{self.name}-as" in self.data

    @property
    def json_text(self) -> str:
        """The JSON as it was sent."""
        return self._submitted_text("json")

    @property
    def displayed_text(self) -> str:
        """The JSON that rows and text area showed when the page was opened."""
        return self._submitted_text("shown")

    @property
    def requested_way(self) -> Way | None:
        """The way in which a script asks to render what was sent."""
        # The prefix `show-` cannot collide: other names begin with that of a field.
        way = self.data.get(f"show-{self.name}")
        return cast("Way", way) if way in WAYS else None

    @property
    def original_text(self) -> str:
        """What the page shows if nobody has changed anything."""
        return self.stored or self.own or ""

    @cached_property
    def displayed_value(self) -> Any:
        return parse_or_none(self.displayed_text)

    @cached_property
    def submitted_rows(self) -> Rows | None:
        """The sent rows, validated; None if the page showed no rows."""
        if f"{self.name}-TOTAL_FORMS" not in self.data:
            return None
        try:
            initial = self.sheet.initial_rows(self.displayed_value)
        except NotRepresentable:
            return None
        rows = self.sheet.formset(
            self.data,
            self.files,
            initial=initial,
            prefix=self.name,
            form_kwargs={"use_required_attribute": False},
        )
        if rows.is_valid():
            self.sheet.check_rows(rows)
        return rows

    @cached_property
    def result(self) -> Result:
        """The text to store, or the problem."""
        if not self.is_submitted:
            return Result("table", self.stored)
        way, is_sure = self._choose_way()
        if not is_sure:
            return Result(way, problem=str(self.sheet.words["both"]), both=True)
        try:
            return Result(way, self._text_to_store(way))
        except ValueError as error:
            return Result(way, problem=str(error))

    def _choose_way(self) -> tuple[Way, bool]:
        """Return the way to read, and whether that is unambiguous."""
        keep = self._submitted_text("keep")
        if keep in WAYS:
            return cast("Way", keep), True
        chosen = cast(
            "Way",
            self._submitted_text("as")
            if self._submitted_text("as") in WAYS
            else "table",
        )
        changed = self._changed_ways()
        if len(changed) == 1:
            # Only one way was changed: read that, whatever is selected.
            return changed[0], True
        return chosen, not changed

    def _changed_ways(self) -> list[Way]:
        changed: list[Way] = []
        if self.submitted_rows is not None and self.submitted_rows.has_changed():
            changed.append("table")
        if self.json_text.strip() != self.displayed_text.strip():
            changed.append("json")
        return changed

    def _text_to_store(self, way: Way) -> str:
        if way == "own" and self.own is not None:
            return ""
        if not self._changed_ways():
            return self._unchanged_text()
        if way == "json":
            return self._as_it_was(self._validated_text())
        return self._as_it_was(self._from_rows())

    def with_newer_files(self) -> EditorInput:
        """Return a copy in which rows that kept their file have the file of now."""
        if self.submitted_rows is None or self._choose_way()[0] != "table":
            return self
        newer = self.sheet.newer_files(
            self.submitted_rows, self.displayed_value, parse_or_none(self.stored)
        )
        if not newer:
            return self
        # Unpacking a QueryDict would give lists.
        data = {name: self.data[name] for name in self.data}
        return replace(self, data=data | dict(newer))

    def _unchanged_text(self) -> str:
        is_origin = (
            self.displayed_text.strip()
            == json_texts.formatted_text(self.original_text).strip()
        )
        return self.original_text if is_origin else self.displayed_text

    def _as_it_was(self, text: str) -> str:
        """Return the stored text if it is the same JSON, else the new text."""
        return (
            self.original_text
            if json_texts.is_same_json(text, self.original_text)
            else text
        )

    def _validated_text(self) -> str:
        if self.json_text.strip():
            self.sheet.parse_typed_json(self.json_text)
        return self.json_text.strip()

    def _from_rows(self) -> str:
        if self.submitted_rows is None:
            raise ValueError(_("There are no rows."))
        if not self.submitted_rows.is_valid():
            raise ValueError(_error_summary(self.submitted_rows))
        rows = self.submitted_rows.ordered_forms
        if not rows and not self.original_text:
            return ""
        return jsonrpc.write(
            self.sheet.value_of_rows(rows, self.displayed_value)
        ).decode()


def parse_or_none(text: str) -> Any:
    """Parse JSON; return None if it is empty or invalid."""
    try:
        return parse_json(text) if text.strip() else None
    except ValueError:
        return None


def _error_summary(rows: Rows) -> str:
    texts = [str(error) for error in rows.non_form_errors()]
    count = len(rows.wrong)
    if count:
        sentence = ngettext(
            "%d entry below has an error.", "%d entries below have errors.", count
        )
        texts.append(sentence % count)
    return " ".join(texts)


# -- json editor fields ----------------------------------------------------------------
# The form field of a sheet: rows, a text area, and the choice between them.


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


def _stored_content(
    sheet: JsonEditor, name: str, stored: str, own: str | None, way: Way | None
) -> EditorContent:
    origin = stored or own or ""
    text = json_texts.formatted_text(origin)
    value, beyond = parse_or_none(text), ""
    rows: Rows | None = None
    try:
        if value is None and text.strip():
            raise NotRepresentable(_("it is not JSON"))
        rows = sheet.formset(
            initial=sheet.initial_rows(value),
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
        summary=sheet.summary_of_value(value) if beyond else None,
    )


def _submitted_content(editor_input: EditorInput) -> EditorContent:
    """Show sent data again: rows and JSON alike if it is valid, else as it was sent."""
    result = editor_input.result
    # Other fields may have added errors to rows that were valid by themselves.
    wrong = (
        editor_input.submitted_rows.wrong
        if editor_input.submitted_rows is not None
        else []
    )
    if not result.problem and not wrong:
        return _stored_content(
            editor_input.sheet,
            editor_input.name,
            result.text,
            editor_input.own,
            _way_to_show(editor_input, result),
        )
    as_it_was = _stored_content(
        editor_input.sheet,
        editor_input.name,
        editor_input.displayed_text,
        editor_input.own,
        result.way,
    )
    as_it_was.text, as_it_was.both = editor_input.json_text, result.both
    as_it_was.way = result.way
    if editor_input.submitted_rows is not None:
        as_it_was.rows = editor_input.submitted_rows
    return as_it_was


def _way_to_show(editor_input: EditorInput, result: Result) -> Way:
    """Return the way to show: the one that a script asked for, or else the one read."""
    if editor_input.requested_way is not None:
        return editor_input.requested_way
    return "own" if not result.text and editor_input.own is not None else result.way


class SheetWidget(CompositeWidget):
    """Rows and a text area; `own` is the JSON to use if the column is empty."""

    template_name = "mcp_app/widgets/sheet.html"
    there = "-as"

    def __init__(self, sheet: JsonEditor) -> None:
        super().__init__()
        self.sheet = sheet
        self.stored = ""
        self.own: str | None = None
        self._editor_input: EditorInput | None = None

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
        if self._editor_input is None or self._editor_input.data is not data:
            self._editor_input = EditorInput(
                self.sheet, data, files, name, self.stored, self.own
            )
        return self._editor_input

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        if isinstance(value, EditorInput) and value.is_submitted:
            content = _submitted_content(value)
        else:
            content = _stored_content(self.sheet, name, self.stored, self.own, None)
        words = self.sheet.words
        return {**context, "sheet": content, "words": words, "name": name}

    def error_places(self, editor_input: EditorInput) -> Iterator[tuple[str, str, str]]:
        """Yield the id, label and message of each error in a row."""
        if editor_input.submitted_rows is None:
            return
        for form in editor_input.submitted_rows.wrong:
            number = editor_input.submitted_rows.forms.index(form) + 1
            for row, bound, message in form.error_places(str(number)):
                label = f"{row}: {bound.label}" if row else str(bound.label)
                yield bound.auto_id, label, message


class SheetField(forms.Field):
    """The JSON text of a column; "" if it is empty."""

    def __init__(self, sheet: JsonEditor) -> None:
        super().__init__(required=False, widget=SheetWidget(sheet))

    @property
    def sheet_widget(self) -> SheetWidget:
        return cast("SheetWidget", self.widget)

    def set_stored_value(self, stored: str, own: str | None = None) -> None:
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
            return {"": json_texts.formatted_text(str(value or ""))}
        if value.result.problem:
            return {"": value.result}
        return {"": json_texts.formatted_text(value.result.text)}

    def on_top(self, mine: EditorInput, touched: set[str]) -> EditorInput:
        """Return what was sent, with files that somebody else replaced meanwhile."""
        return mine.with_newer_files()

    def has_changed(self, initial: Any, data: Any) -> bool:
        result: Result = data.result
        return bool(result.problem) or result.text != data.stored
