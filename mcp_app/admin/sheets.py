"""A JSON column that people edit as rows of small forms, or as JSON.

The page carries what it showed.  What differs from that was changed, so that nothing
depends on scripts: whoever changes both ways is asked which one stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin import json_texts
from mcp_app.admin.json_texts import lines_from_browser
from mcp_app.admin.parameters import Beyond
from mcp_app.admin.rows import RowForm, Rows
from mcp_app.models.fields import parsed
from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

Way: TypeAlias = Literal["own", "table", "json"]
Initial: TypeAlias = "list[dict[str, Any]]"

WAYS: Final = ("own", "table", "json")


class Sheet(ABC):
    """What one column is as rows; each text is for people."""

    formset: ClassVar[type[Rows]]
    row_template: ClassVar[str]
    summary_template: ClassVar[str] = ""
    multipart: ClassVar[bool] = False
    words: ClassVar[Mapping[str, Any]] = {}
    """What the page says, and for scripts: `least` rows, `names_of` another sheet."""

    @abstractmethod
    def initial(self, value: Any) -> Initial:
        """Return the rows that show a value; raises `Beyond`."""

    @abstractmethod
    def value(self, rows: Iterable[RowForm], base: Any) -> Any:
        """Return the value of valid rows; `base` is what was shown, or None."""

    def checked(self, text: str) -> Any:
        """Read JSON that was typed; ValueError says what is wrong in which line."""
        return json_texts.read(text)

    def summary(self, value: Any) -> object:
        """Return what is said about a value that rows cannot show."""
        return None

    def check_rows(self, rows: Rows) -> None:
        """Add the errors that only rows together can have."""
        check_names(rows, str(self.words["twice"]))


def check_names(rows: Rows, twice: str) -> None:
    """Add an error to each row that has the name of one before it."""
    names: set[str] = set()
    for form in rows.ordered_forms:
        name = form.cleaned_data.get("name", "")
        if name and name in names:
            form.add_error("name", twice % {"name": name})
        names.add(name)


@dataclass(frozen=True, slots=True)
class Result:
    """What a form gives: the text to store, or why there is none."""

    way: Way
    text: str = ""
    problem: str = ""
    both: bool = False
    """Whether two ways were changed, and nobody said which one stays."""


@dataclass
class Given:
    """What a browser sent for a sheet."""

    sheet: Sheet
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
    def shown(self) -> str:
        """What both ways showed when the page was opened."""
        return self._sent("shown")

    @property
    def show(self) -> Way | None:
        """The way in which a script wants to see what was sent."""
        asked = self._sent("show")
        return cast("Way", asked) if asked in WAYS else None

    @property
    def origin(self) -> str:
        """What the page shows where nobody has changed anything."""
        return self.stored or self.own or ""

    @cached_property
    def base(self) -> Any:
        return _value(self.shown)

    @cached_property
    def formset(self) -> Rows | None:
        """The rows that were sent, checked; None where no rows were shown."""
        if f"{self.name}-TOTAL_FORMS" not in self.data:
            return None
        try:
            initial = self.sheet.initial(self.base)
        except Beyond:
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
        """What is to be stored."""
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
        """Return the way that is read, and whether that is beyond doubt."""
        keep = self._sent("keep")
        if keep in WAYS:
            return cast("Way", keep), True
        chosen = cast("Way", self._sent("as") if self._sent("as") in WAYS else "table")
        changed = self._changed()
        if len(changed) == 1:
            # One way was changed: that is what the person wants, whatever is chosen.
            return changed[0], True
        return chosen, not changed

    def _changed(self) -> list[Way]:
        changed: list[Way] = []
        if self.formset is not None and self.formset.has_changed():
            changed.append("table")
        if self.text.strip() != self.shown.strip():
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

    def _unchanged(self) -> str:
        is_origin = self.shown.strip() == json_texts.shown(self.origin).strip()
        return self.origin if is_origin else self.shown

    def _as_it_was(self, text: str) -> str:
        """Return the text that is stored already where it says the same."""
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


def _value(text: str) -> Any:
    """Return the value of JSON; None for nothing, and for what is no JSON."""
    try:
        return parsed(text) if text.strip() else None
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


@dataclass
class Shown:
    """What a page shows of a sheet."""

    sheet: Sheet
    way: Way
    text: str
    shown: str
    rows: Rows | None
    own: str | None
    beyond: str = ""
    both: bool = False
    summary: object = field(default=None)


def _shown_text(
    sheet: Sheet, name: str, stored: str, own: str | None, way: Way | None
) -> Shown:
    origin = stored or own or ""
    text = json_texts.shown(origin)
    value, beyond = _value(text), ""
    rows: Rows | None = None
    try:
        if value is None and text.strip():
            raise Beyond(_("it is no JSON"))
        rows = sheet.formset(
            initial=sheet.initial(value),
            prefix=name,
            form_kwargs={"use_required_attribute": False},
        )
    except Beyond as error:
        beyond = str(sheet.words["beyond"]) % {"reason": error}
    usual: Way = "own" if own is not None and not stored else "table"
    chosen = way or usual
    return Shown(
        sheet=sheet,
        way="json" if beyond and chosen == "table" else chosen,
        text=text,
        shown=text,
        rows=rows,
        own=own,
        beyond=beyond,
        summary=sheet.summary(value) if beyond else None,
    )


def _shown_given(given: Given) -> Shown:
    """Show what was sent again: in both ways where it can be stored, else as it was."""
    result = given.result
    # Other fields may have found errors in rows that were right for themselves.
    wrong = given.formset.wrong if given.formset is not None else []
    if not result.problem and not wrong:
        return _shown_text(
            given.sheet, given.name, result.text, given.own, _stays(given, result)
        )
    as_it_was = _shown_text(given.sheet, given.name, given.shown, given.own, result.way)
    as_it_was.text, as_it_was.both = given.text, result.both
    as_it_was.way = result.way
    if given.formset is not None:
        as_it_was.rows = given.formset
    return as_it_was


def _stays(given: Given, result: Result) -> Way:
    """Return the way that the page shows: the one that was asked for, if any."""
    if given.show is not None:
        return given.show
    return "own" if not result.text and given.own is not None else result.way


class SheetWidget(forms.Widget):
    """Rows and a text area; `own` is the JSON that stands where the column is empty."""

    template_name = "mcp_app/widgets/sheet.html"
    use_fieldset = True

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self.sheet = sheet
        self.stored = ""
        self.own: str | None = None
        self._given: Given | None = None

    @property
    def needs_multipart_form(self) -> bool:  # type: ignore[override]
        return self.sheet.multipart

    def value_from_datadict(
        self,
        data: Mapping[str, Any],
        files: MultiValueDict[str, UploadedFile[Any]] | None,
        name: str,
    ) -> Given:
        """Return the same object for the same data: its rows have been checked."""
        if self._given is None or self._given.data is not data:
            self._given = Given(self.sheet, data, files, name, self.stored, self.own)
        return self._given

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-as" not in data

    def id_for_label(self, id_: str | None) -> str:
        return ""

    def format_value(self, value: Any) -> Any:
        return value

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        if isinstance(value, Given) and value.is_there:
            shown = _shown_given(value)
        else:
            shown = _shown_text(self.sheet, name, self.stored, self.own, None)
        words = self.sheet.words
        return {**context, "sheet": shown, "words": words, "name": name}

    def places(self, given: Given) -> Iterator[tuple[str, str, str]]:
        """Yield the id, the label and the sentence of each error in a row."""
        if given.formset is None:
            return
        for form in given.formset.wrong:
            number = given.formset.forms.index(form) + 1
            for field_name, sentences in form.errors.items():
                bound = form[field_name] if field_name in form.fields else form["was"]
                row = form.legend() or str(number)
                label = f"{row}: {bound.label}"
                yield bound.auto_id, label, " ".join(map(str, sentences))


class SheetField(forms.Field):
    """The JSON text of a column; "" where it is empty."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__(required=False, widget=SheetWidget(sheet))

    @property
    def sheet_widget(self) -> SheetWidget:
        return cast("SheetWidget", self.widget)

    def shows(self, stored: str, own: str | None = None) -> None:
        """Say what the column has, and what stands in its place where it is empty."""
        self.sheet_widget.stored, self.sheet_widget.own = stored, own

    def clean(self, value: Given) -> str:
        result = value.result
        if result.problem:
            raise ValidationError(result.problem, code="both" if result.both else None)
        return result.text

    def has_changed(self, initial: Any, data: Any) -> bool:
        result: Result = data.result
        return bool(result.problem) or result.text != data.stored
