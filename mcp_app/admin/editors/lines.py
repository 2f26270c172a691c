"""Small forms of which each is a line of a page; nothing empty is among them.

A select with the suffix `-add` adds a line, and `show-remove` names one to leave out:
both come with a form that is shown again, so that it needs no script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.choices import flatten_choices

from mcp_app.admin.editors.rows import RowForm

REMOVE: Final = "show-remove"
OPEN: Final = "show-line"


class LineForm(RowForm):
    """One line; `values` are what it shows, or what was sent if that is right."""

    is_open = False
    """Whether the page shows it open: it was added just now, or asked for."""

    def inner_lines(self) -> Sequence[Lines]:
        """Return the lines inside of it."""
        return ()

    @property
    def values(self) -> Mapping[str, Any]:
        return self.cleaned_data if self.is_bound else self.initial

    @property
    def is_wrong(self) -> bool:
        return self.is_bound and bool(self.errors)

    def label(self) -> str:
        """Return what people call it."""
        return self.value_text("path")

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        """Return what a line shows that was added for this choice."""
        return {"path": path}

    def line_config(self) -> Any:
        """Return the part of the config that a line without errors makes."""
        raise NotImplementedError

    def value_text(self, name: str) -> str:
        """Return what was sent for a field, or what it shows."""
        value = self.data.get(self.add_prefix(name)) if self.is_bound else None
        return str(self.initial.get(name, "") if value is None else value)


class Lines:
    """The lines of one sort; `add` is what a select offers for one more."""

    def __init__(
        self,
        make: type[LineForm],
        data: Mapping[str, Any] | None,
        prefix: str,
        initial: Sequence[dict[str, Any]],
        add: Sequence[Any],
        most: int,
    ) -> None:
        self.prefix = prefix
        self._make = make
        self._initial = initial
        self._most = most
        if data is None:
            self.forms = [
                make(initial=each, prefix=f"{prefix}-{at}")
                for at, each in enumerate(initial)
            ]
        else:
            self.forms = list(self._submitted_forms(data))
            self.forms += self._added_forms(data, add)
        self.add = add if len(self.forms) < most else ()

    def _numbers(self, data: Mapping[str, Any]) -> list[int]:
        """Return the numbers of the lines that were sent."""
        pattern = re.compile(rf"{re.escape(self.prefix)}-(\d{{1,9}})-path")
        return [int(match[1]) for each in data if (match := pattern.fullmatch(each))]

    def _submitted_forms(self, data: Mapping[str, Any]) -> Iterator[LineForm]:
        for number in sorted(self._numbers(data)):
            prefix = f"{self.prefix}-{number}"
            if data.get(REMOVE) != prefix and data.get(f"{prefix}-path"):
                initial = dict(enumerate(self._initial)).get(number, {})
                yield self._make(data, prefix=prefix, initial=initial)

    def _added_forms(
        self, data: Mapping[str, Any], offered: Sequence[Any]
    ) -> list[LineForm]:
        """Return the line to add; none for what is not offered any more."""
        added = str(data.get(f"{self.prefix}-add") or "")
        choices: Any = flatten_choices(offered)
        if not added or added not in dict(choices) or len(self.forms) >= self._most:
            return []
        at = max(self._numbers(data), default=-1) + 1
        begun = self._make.begin_line(added)
        return [self._make(initial=begun, prefix=f"{self.prefix}-{at}")]

    def add_groups(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield what can be added in groups: a label, "" for none, and choices."""
        for value, label in self.add:
            if isinstance(label, list):
                yield value, label
            elif value:
                yield "", [(value, label)]

    def __iter__(self) -> Iterator[LineForm]:
        return iter(self.forms)

    def open_lines(self, data: Mapping[str, Any]) -> None:
        """Open the line that was added, and one that was asked for."""
        for form in self.forms:
            form.is_open = data.get(OPEN) == form.prefix
            for inner in form.inner_lines():
                inner.open_lines(data)
                form.is_open |= any(each.is_open for each in inner)
        if self.forms and data.get(f"{self.prefix}-add"):
            self.forms[-1].is_open = True

    @property
    def right(self) -> list[LineForm]:
        """The lines that `configs` are of."""
        return [form for form in self.forms if not form.is_wrong]

    @property
    def wrong(self) -> list[LineForm]:
        return [form for form in self.forms if form.is_wrong]

    def is_valid(self) -> bool:
        return not self.wrong

    def configs(self) -> list[Any]:
        """Return the parts of the config that lines without errors make."""
        return [form.line_config() for form in self.right]

    def place_problem(self, place: str, message: str) -> bool:
        """Show what is wrong with a part of `configs`, such as "0.value", at its line.

        Returns whether there is one.
        """
        number, _dot, member = place.partition(".")
        if not number.isdecimal() or int(number) >= len(self.right):
            return False
        form = self.right[int(number)]
        for inner in form.inner_lines():
            _name, _dot, rest = member.partition(".")
            if inner.place_problem(rest, message):
                return True
        if not form.is_bound:
            return False
        field = {"default": "value"}.get(member, member)
        form.add_error(field if field in form.fields else "path", message)
        return True

    def error_places(self) -> Iterator[tuple[str, BoundField, str]]:
        for at, form in enumerate(self.forms):
            if form.is_wrong:
                yield from form.error_places(str(at + 1))


def with_values(
    data: Mapping[str, Any], prefix: str, **values: str | Sequence[str]
) -> QueryDict:
    """Return what was sent with other values for the fields of a form."""
    changed = QueryDict(mutable=True)
    if isinstance(data, QueryDict):
        changed = data.copy()
    else:
        changed.update(data)
    for name, value in values.items():
        texts = [value] if isinstance(value, str) else [*value]
        changed.setlist(f"{prefix}-{name}", texts)
    return changed


def is_same(one: object, other: object) -> bool:
    """Return whether two configs are written alike: 1 is neither true nor 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
