"""Differences in the words of the forms: labels of fields, and what choices say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from mcp_app.admin.access.ways_in import method_label
from mcp_app.admin.editors.annotation_choices import AUDIENCES, IMPORTANCES
from mcp_app.admin.forms import form_of
from mcp_app.admin.forms.fields import seconds_of
from mcp_app.admin.page.wording import EVERY, HINTS, READABLE, SERVER, Words
from mcp_app.interface.labels import Label
from mcp_app.interface.rules import visible
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.listings import words
from mcp_app.publishing.differences import Difference, Piece

TAKEN_APART: Final = frozenset({"arguments", "chosen", "config", "input_schema"})
"""Columns whose parts have names that say enough."""
PARTS: Final[Mapping[tuple[str, str], Label]] = {
    ("annotations", "audience"): READABLE["audience"][0],
    ("annotations", "priority"): READABLE["importance"][0],
    **{("chosen", name): SERVER[name][0] for name in Server.CHOICES},
}
"""The fields of a form that edit a part of a column."""


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A difference with the label of its field, and values as its form shows them."""

    difference: Difference
    label: str

    @property
    def before(self) -> str | None:
        return self.difference.before

    @property
    def after(self) -> str | None:
        return self.difference.after

    def pieces_before(self) -> list[Piece]:
        return self.difference.pieces_before()

    def pieces_after(self) -> list[Piece]:
        return self.difference.pieces_after()


def shown_differences(
    row: PublishedRow, found: Iterable[Difference]
) -> list[ShownDifference]:
    """Return differences with the labels and the words that the row's form uses."""
    labels = _words_of(row)
    return [
        ShownDifference(_worded(row, each), _label(row, each, labels)) for each in found
    ]


def _words_of(row: PublishedRow) -> Words:
    if isinstance(row, DefinitionRow):
        return {**EVERY, **HINTS, **form_of(type(row), row.kind).WORDS}
    return {**EVERY, **SERVER}


def _label(row: PublishedRow, found: Difference, labels: Words) -> str:
    if (found.field, found.part) in PARTS:
        return str(PARTS[found.field, found.part])
    part = visible(found.part)
    if part and found.field in TAKEN_APART:
        return capfirst(part)
    field = str(labels[found.field][0]) if found.field in labels else ""
    if not field:
        named = {each.name: each for each in row._meta.get_fields()}
        field = str(getattr(named.get(found.field), "verbose_name", found.field))
    return capfirst(f"{field}, {part}" if part else field)


def _worded(row: PublishedRow, found: Difference) -> Difference:
    """Return a difference with values as the form shows them, if they differ there."""
    wording = _WORDINGS.get((found.field, found.part)) or _WORDINGS.get(
        (found.field, "")
    )
    if wording is None:
        return found
    before, after = (
        None if each is None else wording(row, each)
        for each in (found.before, found.after)
    )
    if before == after:
        return found
    return Difference(found.field, found.part, before, after, found.breaks)


def _chosen_of(choices: Mapping[str, Label]) -> Callable[[PublishedRow, str], str]:
    return lambda _row, value: str(choices.get(value, value))


def _methods(row: PublishedRow, value: str) -> str:
    return "\n".join(map(method_label, words(value)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _seconds(row: PublishedRow, value: str) -> str:
    return seconds_of(int(value)) if _is_number(value) else value


def _titles(name: str) -> Callable[[PublishedRow, str], str]:
    def titles(row: PublishedRow, value: str) -> str:
        keys = [int(key) for key in value.splitlines() if _is_number(key)]
        return "\n".join(_titles_of(row, name, keys))

    return titles


def _titles_of(row: PublishedRow, name: str, keys: Iterable[int]) -> Iterator[str]:
    model: Any = type(row)._meta.get_field(name).related_model
    known = model._default_manager.in_bulk(keys)
    for key in keys:
        yield str(known[key]) if key in known else _("one that was deleted")


_WORDINGS: Final[Mapping[tuple[str, str], Callable[[PublishedRow, str], str]]] = {
    ("selection", ""): _chosen_of(dict(Server.Selection.choices)),
    ("listing", ""): _chosen_of(dict(Server.ToolList.choices)),
    ("annotations", "audience"): _chosen_of(AUDIENCES),
    ("annotations", "priority"): _chosen_of(IMPORTANCES),
    ("access", ""): _methods,
    ("ttl_ms", ""): _seconds,
    **{("chosen", name): _titles(name) for name in Server.CHOICES},
}
