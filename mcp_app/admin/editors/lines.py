"""Small forms, each of which is a line of a page; there are no empty lines.

A select with the suffix `-add` adds a line, and `show-remove` names lines to remove.
Both make the server show the form again, so that no script is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from django import forms
from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.choices import flatten_choices

from mcp_app.admin.editors.lookup_choices import Choices
from mcp_app.admin.editors.lookup_values import REDRAW, RowTexts, Select
from mcp_app.admin.editors.rows import RowForm
from mcp_app.catalog.open_models import OpenModel, OpenModels
from mcp_app.interface.definitions import Label

REMOVE: Final = "show-remove"
OPEN: Final = "show-line"


class LineForm(RowForm):
    """One line; the class is made for one model and one user.

    The field `path` has the choice that added the line.
    """

    model: ClassVar[OpenModel]
    opened: ClassVar[OpenModels]
    texts: ClassVar[RowTexts]
    used_names: ClassVar[set[str]]
    """The names of parameters that other lines have."""
    max_lines: ClassVar[int]
    """The greatest number of lines in one `Lines`."""
    number = 1
    """The position among the lines, counted from 1."""
    is_open = False
    """Whether the page shows the line open: it is new, or the user asked for it."""
    inner: Sequence[Lines] = ()

    @classmethod
    def make_lines(
        cls,
        data: Mapping[str, Any] | None,
        prefix: str,
        configs: Iterable[Any],
        **members: object,
    ) -> Lines:
        """Return lines of a subclass that has these class members."""
        make = type(cls.__name__, (cls,), members)
        return Lines(make, data, prefix, configs)

    @classmethod
    def choices_to_add(cls) -> Choices:
        raise NotImplementedError

    @classmethod
    def initial_line(cls, config: Any) -> dict[str, Any]:
        """Return the initial values of a line that shows a part of a config."""
        raise NotImplementedError

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        """Return the initial values of a new line for this choice."""
        return {"path": path}

    def line_config(self) -> Any:
        """Return the part of the config that a line without errors makes."""
        raise NotImplementedError

    @property
    def values(self) -> Mapping[str, Any]:
        """The valid data that were sent, or else the initial values."""
        return self.cleaned_data if self.is_bound else self.initial

    @property
    def is_wrong(self) -> bool:
        is_inner_valid = all(lines.is_valid() for lines in self.inner)
        return (self.is_bound and bool(self.errors)) or not is_inner_valid

    def label(self) -> str:
        """Return the label of the line for people."""
        raise NotImplementedError

    def legend(self) -> str:
        return self.label()

    def value_text(self, name: str) -> str:
        """Return the sent text of a field, or else its initial value."""
        value = self.data.get(self.add_prefix(name))
        return str(self.initial.get(name, "") if value is None else value)

    def error_places(self, number: str) -> Iterator[tuple[str, BoundField, str]]:
        yield from super().error_places(number)
        for lines in self.inner:
            for form in lines.wrong:
                yield from form.error_places(number)


class Lines:
    """The lines of one sort; `add` has the choices for a new line."""

    def __init__(
        self,
        make: type[LineForm],
        data: Mapping[str, Any] | None,
        prefix: str,
        configs: Iterable[Any],
    ) -> None:
        self.prefix = prefix
        lines = dict(enumerate(map(make.initial_line, configs)))
        self.add: Choices = make.choices_to_add()
        if data is None:
            self.forms = [
                make(initial=initial, prefix=f"{prefix}-{at}")
                for at, initial in lines.items()
            ]
        else:
            self.forms = [*self._submitted_forms(make, data, lines)]
        for number, form in enumerate(self.forms, start=1):
            form.number = number
        if len(self.forms) >= make.max_lines:
            self.add = []

    def _submitted_forms(
        self, make: type[LineForm], data: Mapping[str, Any], lines: Mapping[int, Any]
    ) -> Iterator[LineForm]:
        pattern = re.compile(rf"{re.escape(self.prefix)}-(\d{{1,9}})-path")
        numbers = [int(match[1]) for each in data if (match := pattern.fullmatch(each))]
        removed = cast("QueryDict", data).getlist(REMOVE)
        for at in sorted(numbers):
            prefix = f"{self.prefix}-{at}"
            if prefix not in removed and data.get(f"{prefix}-path"):
                yield make(data, prefix=prefix, initial=lines.get(at, {}))
        added = data.get(f"{self.prefix}-add")
        offered: Any = flatten_choices(self.add)
        if added in dict(offered) and len(numbers) < make.max_lines:
            prefix = f"{self.prefix}-{max(numbers, default=-1) + 1}"
            yield make(initial=make.begin_line(str(added)), prefix=prefix)

    def add_groups(self) -> Any:
        """Return the choices for a new line in groups: a label or None, and options."""
        return forms.Select(choices=self.add).optgroups(self.prefix, [])

    def __iter__(self) -> Iterator[LineForm]:
        return iter(self.forms)

    def unfold_lines(self, data: Mapping[str, Any]) -> None:
        """Mark as open the new line, and the line that the user asked for."""
        for form in self.forms:
            form.is_open = data.get(OPEN) == form.prefix
            for inner in form.inner:
                inner.unfold_lines(data)
                form.is_open |= any(each.is_open for each in inner)
        if self.forms and data.get(f"{self.prefix}-add"):
            self.forms[-1].is_open = True

    @property
    def right(self) -> list[LineForm]:
        """The lines without errors, in the order of `configs`."""
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
        """Show the problem of a part of `configs`, such as "0.value", at its line.

        Return False if no line can show it.
        """
        number, _dot, member = place.partition(".")
        if not number.isdecimal() or int(number) >= len(self.right):
            return False
        form = self.right[int(number)]
        # A place inside the line is such as "filters.0.value": drop its first name.
        inner_place = member.partition(".")[2]
        if any(inner.place_problem(inner_place, message) for inner in form.inner):
            return True
        if form.is_bound:
            # The input `value` also shows a default.
            field = {"default": "value"}.get(member, member)
            form.add_error(field if field in form.fields else "path", message)
        return form.is_bound


def redrawing_field(label: Label, choices: Sequence[Any] = ()) -> forms.ChoiceField:
    """Return a select that shows the line again when it changes."""
    select = Select({"aria-label": label, **REDRAW})
    return forms.ChoiceField(label=label, choices=choices, widget=select)


def is_same(one: object, other: object) -> bool:
    """Return whether two configs are the same JSON: 1 is neither true nor 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
