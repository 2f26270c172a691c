"""A JSON column that staff edit either as rows of small forms or as JSON.

The page also sends back the JSON that it showed at first. The server finds the changes
by comparison, so no script is needed. Users who change both rows and JSON must choose
which of them to keep.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_members import parts_of_json, text_on_top
from mcp_app.admin.editors.json_texts import lines_from_browser, parse_or_none
from mcp_app.admin.editors.rows import CompositeWidget, NotRepresentable, RowForm, Rows
from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

Initial: TypeAlias = "list[dict[str, Any]]"

WAYS: Final = ("own", "table", "json")
"""What to store: nothing (the function's JSON counts), the rows, or the typed JSON."""
WORDS: Final = {
    "as_json": gettext_lazy("Edit as JSON"),
    "own": gettext_lazy("The function's own"),
    "own_help": gettext_lazy("The parameters are as in the code, and change with it."),
    "json": gettext_lazy("The same as JSON"),
    "json_label": gettext_lazy("JSON"),
    "remove": gettext_lazy("Remove"),
    "keep_json": gettext_lazy("Keep the JSON"),
}
"""Texts of the page that most editors share."""


class JsonEditor(ABC):
    """How one column is edited as rows; all texts are for staff."""

    formset: ClassVar[type[Rows]]
    row_template: ClassVar[str]
    multipart: ClassVar[bool] = False
    words: ClassVar[Mapping[str, Any]]
    """Texts of the page; for scripts, also `least` (fewest rows) and `names_of`."""

    @abstractmethod
    def initial_rows(self, value: Any) -> Initial:
        """Return the rows that show a value; raise `NotRepresentable`."""

    def rows_again(self, value: Any, sent: Rows) -> Initial:
        """Return the rows that show a value, which was made from the rows `sent`."""
        return self.initial_rows(value)

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

    def unfold_rows(self, rows: Rows | None, data: Mapping[str, Any]) -> None:  # noqa: B027
        """Mark new lines as open, and the lines that the data ask to open."""

    def check_rows(self, rows: Rows) -> None:
        """Add an error to each row that repeats the name of an earlier one."""
        names: set[str] = set()
        for form in rows.ordered_forms if "twice" in self.words else ():
            name = form.cleaned_data.get("name", "")
            if name and name in names:
                form.add_error("name", str(self.words["twice"]) % {"name": name})
            names.add(name)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a form: the text to store, or the problem."""

    way: str
    text: str = ""
    problem: str = ""
    both: bool = False
    """Whether both rows and JSON were changed, and the user has not chosen one."""


@dataclass
class EditorInput:
    """What a browser sent for a column; `own` is the JSON to use if it is empty."""

    sheet: JsonEditor
    data: Mapping[str, Any]
    files: MultiValueDict[str, UploadedFile[Any]] | None
    name: str
    stored: str
    own: str | None
    is_refused: bool = False
    """Whether the form has an error at this field."""

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
    def original_text(self) -> str:
        """The JSON of the unchanged page."""
        return self.stored or self.own or ""

    def with_text(self, text: str) -> EditorInput:
        """Return the data that a page sends if it shows this JSON, unchanged."""
        name, way = self.name, self.result.way
        data = {f"{name}-as": way, f"{name}-shown": text, f"{name}-json": text}
        return replace(self, data=data)

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
            self.data, self.files, initial=initial, prefix=self.name
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

    def _choose_way(self) -> tuple[str, bool]:
        """Return which of WAYS to read, and False if the user must choose first."""
        keep, chosen = self._submitted_text("keep"), self._submitted_text("as")
        if keep in WAYS:
            return keep, True
        changed = self._changed_ways()
        if len(changed) == 1:
            # Only one way was changed: read that, whatever is selected.
            return changed[0], True
        return chosen if chosen in WAYS else "table", not changed

    def _changed_ways(self) -> list[str]:
        changed = []
        if self.submitted_rows is not None and self.submitted_rows.has_changed():
            changed.append("table")
        if self.json_text.strip() != self.displayed_text.strip():
            changed.append("json")
        return changed

    def _text_to_store(self, way: str) -> str:
        """Return the text to store: the original one if the value is the same."""
        original = self.original_text
        if way == "own" and self.own is not None:
            return ""
        if not self._changed_ways():
            # The page may show a text that is not stored yet (`with_text`): keep that.
            shown = json_texts.formatted_text(original).strip()
            is_origin = self.displayed_text.strip() == shown
            return original if is_origin else self.displayed_text
        text = self.json_text.strip() if way == "json" else self._text_of_rows()
        if way == "json" and text:
            self.sheet.parse_typed_json(self.json_text)
        return original if json_texts.is_same_json(text, original) else text

    def _text_of_rows(self) -> str:
        rows = self.submitted_rows
        if rows is None:
            raise ValueError(_("There are no rows."))
        if not rows.is_valid():
            texts = [str(error) for error in rows.non_form_errors()]
            raise ValueError(" ".join([*texts, rows.wrong_in_words()]).strip())
        forms = rows.ordered_forms
        if not forms and not self.original_text:
            return ""
        value = self.sheet.value_of_rows(forms, self.displayed_value)
        return jsonrpc.write(value).decode()

    def submitted_content(self) -> dict[str, Any]:
        """Return the template variables: of the new text if valid, else as sent."""
        result, rows = self.result, self.submitted_rows
        # A script may ask for a way. The prefix `show-` is unique: other names begin
        # with a field's name.
        way = self.data.get(f"show-{self.name}")
        # Show refused JSON as sent: rows might lose a part of it.
        is_wrong = self.is_refused and result.way == "json" and way not in WAYS
        # Other fields may have added errors to rows that were valid by themselves.
        if not (result.problem or is_wrong or (rows is not None and rows.wrong)):
            if way not in WAYS:
                way = "own" if not result.text and self.own is not None else result.way
            return self.content_of(result.text, way, rows)
        content = self.content_of(self.displayed_text, result.way)
        content |= {"text": self.json_text, "both": result.both, "way": result.way}
        return content if rows is None else {**content, "rows": rows}

    def content_of(
        self, stored: str, way: str | None, sent: Rows | None = None
    ) -> dict[str, Any]:
        """Return the template variables for a text, made from the rows `sent`."""
        text = json_texts.formatted_text(stored or self.own or "")
        value, rows, beyond = parse_or_none(text), None, ""
        try:
            if value is None and text.strip():
                raise NotRepresentable(_("it is not JSON"))
            initial = self.sheet.initial_rows(value)
            if sent is not None:
                initial = self.sheet.rows_again(value, sent)
            rows = self.sheet.formset(initial=initial, prefix=self.name)
        except NotRepresentable as error:
            beyond = str(self.sheet.words["beyond"]) % {"reason": error}
        chosen = way or ("own" if self.own is not None and not stored else "table")
        return {
            "sheet": self.sheet,
            "way": "json" if beyond and chosen == "table" else chosen,
            "text": text,
            "shown": text,
            "rows": rows,
            "own": self.own,
            "beyond": beyond,
            "both": False,
            "summary": self.sheet.summary_of_value(value) if beyond else None,
        }


class SheetWidget(CompositeWidget):
    """Rows and a text area for a column; `own` is the JSON to use if it is empty."""

    template_name = "mcp_app/widgets/sheet.html"
    there = "-as"

    def __init__(self, sheet: JsonEditor) -> None:
        super().__init__()
        self.sheet = sheet
        self.stored = ""
        self.own: str | None = None
        self._editor_input: EditorInput | None = None
        self.needs_multipart_form = sheet.multipart

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
            content = value.submitted_content()
            self.sheet.unfold_rows(content["rows"], value.data)
        else:
            stored = EditorInput(self.sheet, {}, None, name, self.stored, self.own)
            content = stored.content_of(self.stored, None)
        return {**context, "sheet": content, "words": self.sheet.words, "name": name}

    def error_places(self, editor_input: EditorInput) -> Iterator[tuple[str, str, str]]:
        """Yield the id, label and message of each error in a row."""
        rows = editor_input.submitted_rows
        if rows is None:
            return
        for form in rows.wrong:
            number = rows.forms.index(form) + 1
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
        """Return the JSON members to compare, or the whole result if it is invalid."""
        if isinstance(value, EditorInput) and value.result.problem:
            return {"": value.result}
        text = value.result.text if isinstance(value, EditorInput) else value
        return parts_of_json(str(text or ""))

    def on_top(self, mine: EditorInput, touched: set[str]) -> EditorInput:
        """Return the sent value, with the saved value in the untouched parts."""
        text = text_on_top(mine.stored, mine.result.text, touched)
        is_all_mine = json_texts.is_same_json(text, mine.result.text)
        # Keep the sent data if possible: `with_text` drops other inputs of the page.
        return mine if mine.result.problem or is_all_mine else mine.with_text(text)

    def has_changed(self, initial: Any, data: Any) -> bool:
        result: Result = data.result
        return bool(result.problem) or result.text != data.stored
