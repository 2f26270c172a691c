"""Differences in the words of the forms: labels of fields and of choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from mcp_app.admin.access.conditions import method_label
from mcp_app.admin.forms import form_of
from mcp_app.admin.forms.fields import app_titles, seconds_of
from mcp_app.admin.forms.resource import AUDIENCES, IMPORTANCES
from mcp_app.admin.page.wording import EVERY, HINTS, READABLE, SERVER, Words
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.kinds.registry import name_of_kind
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.definitions import ApprovalChoice
from mcp_app.models.fields import split_words
from mcp_app.publishing.differences import ClientView, Difference, common_lines

SPLIT_COLUMNS: Final = frozenset({"chosen", "config"})
"""Columns with parts whose names are enough, without the label of the column."""
COLUMN_PARTS: Final[Mapping[tuple[str, str], Label]] = {
    ("annotations", "audience"): READABLE["audience"][0],
    ("annotations", "priority"): READABLE["importance"][0],
    **{("chosen", name): SERVER[name][0] for name in Server.CHOICES},
}
"""The fields of a form that edit a part of a column."""


@dataclass(frozen=True, slots=True)
class LabeledDifference(Difference):
    """A difference with the label of its field, and values as its form shows them."""

    label: str = ""


def labeled_differences(
    row: PublishedRow, changes: Iterable[Difference]
) -> list[LabeledDifference]:
    """Return differences with the labels and the words that the row's form uses."""
    labels: Words = {**EVERY, **SERVER}
    if isinstance(row, DefinitionRow):
        labels = {**EVERY, **HINTS, **form_of(type(row), row.kind).WORDS}
    return [
        LabeledDifference(
            change.field,
            change.part,
            *_values_in_words(row, change),
            _difference_label(row, change, labels),
        )
        for change in changes
    ]


LONGEST_LINE: Final = 60
"""The greatest length of an unchanged line that is quoted."""


def common_texts(row: PublishedRow, before: ClientView, after: ClientView) -> list[str]:
    """Return what stays the same: labels, with those texts that are short."""
    lines: dict[str, None] = {}
    for each in labeled_differences(row, common_lines(before, after)):
        text = visible(each.after or "", None)
        is_short = len(text) <= LONGEST_LINE and "\n" not in text
        lines[f"{each.label}: {text}" if is_short else each.label] = None
    return list(lines)


def _difference_label(row: PublishedRow, difference: Difference, labels: Words) -> str:
    if (difference.field, difference.part) in COLUMN_PARTS:
        return str(COLUMN_PARTS[difference.field, difference.part])
    part = visible(difference.part)
    if part and difference.field in SPLIT_COLUMNS:
        return capfirst(part)
    if difference.field in labels:
        field = str(labels[difference.field][0])
    else:
        columns = {each.name: each for each in row._meta.get_fields()}
        column = columns.get(difference.field)
        field = str(getattr(column, "verbose_name", difference.field))
    return capfirst(f"{field}, {part}" if part else field)


def _values_in_words(
    row: PublishedRow, difference: Difference
) -> tuple[str | None, str | None]:
    """Return the values as the form shows them; as stored if those look equal."""
    stored = difference.before, difference.after
    wording = _WORDINGS.get((difference.field, difference.part))
    if wording is None:
        return stored
    before, after = (None if each is None else wording(row, each) for each in stored)
    is_hidden = before == after and stored[0] != stored[1]
    return stored if is_hidden else (before, after)


def _choice_labels(choices: Mapping[str, Label]) -> Callable[[PublishedRow, str], str]:
    return lambda _row, value: str(choices.get(value, value))


def _seconds_text(row: PublishedRow, value: str) -> str:
    with suppress(ValueError):
        return seconds_of(int(value))
    return value


def _row_titles(name: str, row: PublishedRow, value: str) -> str:
    keys = [int(key) for key in value.splitlines() if key.isdecimal()]
    model: Any = type(row)._meta.get_field(name).related_model
    rows = model._default_manager.in_bulk(keys)
    missing = _("one that was deleted")
    return "\n".join(str(rows.get(key, missing)) for key in keys)


_WORDINGS: Final[Mapping[tuple[str, str], Callable[[PublishedRow, str], str]]] = {
    ("kind", ""): lambda _row, value: str(name_of_kind(value)),
    ("selection", ""): _choice_labels(dict(Server.Selection.choices)),
    ("listing", ""): _choice_labels(dict(Server.ToolList.choices)),
    ("app", ""): lambda _row, value: str(app_titles().get(value, value)),
    ("approval", ""): _choice_labels(dict(ApprovalChoice.choices)),
    ("annotations", "audience"): _choice_labels(AUDIENCES),
    ("annotations", "priority"): _choice_labels(IMPORTANCES),
    ("access", ""): lambda _row, value: "\n".join(
        map(method_label, split_words(value))
    ),
    ("ttl_ms", ""): _seconds_text,
    **{("chosen", name): partial(_row_titles, name) for name in Server.CHOICES},
}
"""How a form shows a stored value, by column and part ("" for a column without)."""
