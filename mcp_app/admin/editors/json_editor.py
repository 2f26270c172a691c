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
from mcp_app.models.fields import parse
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
    def initial(self, value: Any) -> Initial:
        """Return the rows that show a value; raise `NotRepresentable`."""

    @abstractmethod
    def value(self, rows: Iterable[RowForm], base: Any) -> Any:
        """Return the value of valid rows; `base` is the value shown before, or None."""

    def checked(self, text: str) -> Any:
        """Parse typed JSON; the ValueError says what is wrong in which line."""
        return json_texts.read(text)

    def summary(self, value: Any) -> object:
        """Return a summary of a value that rows cannot show."""
        return None

    def newer_files(self, rows: Rows, base: Any, saved: Any) -> Mapping[str, str]:
        """Return fields with new values for rows whose file was replaced meanwhile.

        `base` is the value that was shown, `saved` the one that is stored now.
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

    def _sent(self, what: str) -> str:
        return lines_from_browser(self.data.get(f"{self.name}-{what}"))

    @property
    def is_there(self) -> bool:
        return f"{self.name}-as" in self.data

    @property
    def text(self) -> str:
        """The JSON as it was sent."""
        return self._sent("json")

    @property
    def shown_text(self) -> str:
        """The JSON that rows and text area showed when the page was opened."""
        return self._sent("shown")

    @property
    def show(self) -> Way | None:
        """The way in which a script asks to render what was sent."""
        # The prefix `show-` cannot collide: other names begin with that of a field.
        asked = self.data.get(f"show-{self.name}")
        return cast("Way", asked) if asked in WAYS else None

    @property
    def origin(self) -> str:
        """What the page shows if nobody has changed anything."""
        return self.stored or self.own or ""

    @cached_property
    def base(self) -> Any:
        return value_of(self.shown_text)

    @cached_property
    def formset(self) -> Rows | None:
        """The sent rows, validated; None if the page showed no rows."""
        if f"{self.name}-TOTAL_FORMS" not in self.data:
            return None
        try:
            initial = self.sheet.initial(self.base)
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
        if not self.is_there:
            return Result("table", self.stored)
        way, is_sure = self._way()
        if not is_sure:
            return Result(way, problem=str(self.sheet.words["both"]), both=True)
        try:
            return Result(way, self._text(way))
        except ValueError as error:
            return Result(way, problem=str(error))

    def _way(self) -> tuple[Way, bool]:
        """Return the way to read, and whether that is unambiguous."""
        keep = self._sent("keep")
        if keep in WAYS:
            return cast("Way", keep), True
        chosen = cast("Way", self._sent("as") if self._sent("as") in WAYS else "table")
        changed = self._changed()
        if len(changed) == 1:
            # Only one way was changed: read that, whatever is selected.
            return changed[0], True
        return chosen, not changed

    def _changed(self) -> list[Way]:
        changed: list[Way] = []
        if self.formset is not None and self.formset.has_changed():
            changed.append("table")
        if self.text.strip() != self.shown_text.strip():
            changed.append("json")
        return changed

    def _text(self, way: Way) -> str:
        if way == "own" and self.own is not None:
            return ""
        if not self._changed():
            return self._unchanged()
        if way == "json":
            return self._as_it_was(self._typed())
        return self._as_it_was(self._from_rows())

    def with_newer_files(self) -> EditorInput:
        """Return a copy in which rows that kept their file have the file of now."""
        if self.formset is None or self._way()[0] != "table":
            return self
        newer = self.sheet.newer_files(self.formset, self.base, value_of(self.stored))
        if not newer:
            return self
        # Unpacking a QueryDict would give lists.
        data = {name: self.data[name] for name in self.data}
        return replace(self, data=data | dict(newer))

    def _unchanged(self) -> str:
        is_origin = (
            self.shown_text.strip() == json_texts.shown_text(self.origin).strip()
        )
        return self.origin if is_origin else self.shown_text

    def _as_it_was(self, text: str) -> str:
        """Return the stored text if it is the same JSON, else the new text."""
        return self.origin if json_texts.same(text, self.origin) else text

    def _typed(self) -> str:
        if self.text.strip():
            self.sheet.checked(self.text)
        return self.text.strip()

    def _from_rows(self) -> str:
        if self.formset is None:
            raise ValueError(_("There are no rows."))
        if not self.formset.is_valid():
            raise ValueError(_wrong(self.formset))
        rows = self.formset.ordered_forms
        if not rows and not self.origin:
            return ""
        return jsonrpc.write(self.sheet.value(rows, self.base)).decode()


def value_of(text: str) -> Any:
    """Parse JSON; return None if it is empty or invalid."""
    try:
        return parse(text) if text.strip() else None
    except ValueError:
        return None


def _wrong(rows: Rows) -> str:
    said = [str(error) for error in rows.non_form_errors()]
    count = len(rows.wrong)
    if count:
        sentence = ngettext(
            "%d entry below has an error.", "%d entries below have errors.", count
        )
        said.append(sentence % count)
    return " ".join(said)


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
