"""A JSON column that people edit as rows of small forms, or as JSON.

The page carries what it showed.  What differs from that was changed, so that nothing
depends on scripts: whoever changes both ways is asked which one stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, cast

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.not_representable import Beyond
from mcp_app.admin.editors.rows import RowForm, Rows
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

    def newer_files(self, rows: Rows, base: Any, saved: Any) -> Mapping[str, str]:
        """Return the fields of rows whose file was replaced since `base` was shown.

        `saved` is the value that is stored now.
        """
        return {}

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
        # A name of its own, beside which people's names begin with that of a field.
        asked = self.data.get(f"show-{self.name}")
        return cast("Way", asked) if asked in WAYS else None

    @property
    def origin(self) -> str:
        """What the page shows where nobody has changed anything."""
        return self.stored or self.own or ""

    @cached_property
    def base(self) -> Any:
        return value_of(self.shown)

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

    def with_newer_files(self) -> Given:
        """Return the same with the files of now in rows that only kept theirs."""
        if self.formset is None or self._way()[0] != "table":
            return self
        newer = self.sheet.newer_files(self.formset, self.base, value_of(self.stored))
        if not newer:
            return self
        # A QueryDict that is unpacked gives lists.
        data = {name: self.data[name] for name in self.data}
        return replace(self, data=data | dict(newer))

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


def value_of(text: str) -> Any:
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
