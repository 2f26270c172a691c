"""What the form of a query offers: fields, comparisons, measures, orders, periods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from django.utils.functional import lazystr
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.interface.definitions import Label
from mcp_app.kinds.query.comparisons import EMPTY, comparisons_of
from mcp_app.kinds.query.config import DATES, MEASURES, UNITS
from mcp_app.kinds.query.labels import (
    direction_label,
    field_label,
    lookup_label,
    measure_label,
    unit_label,
)
from mcp_app.kinds.query.reading import is_sortable
from mcp_app.kinds.query.scoping import MAX_PATH_STEPS, Use

Choices: TypeAlias = list[Any]
"""Pairs of a value and its label, also in groups, as Django's fields take them."""
NONE: Final = ("", "---------")

# -- fields ----------------------------------------------------------------------------


class Group(NamedTuple):
    """The fields of one model on the way, and what leads there."""

    label: str
    prefix: str
    fields: Sequence[OpenField]


def groups_of(
    model: OpenModel,
    opened: OpenModels,
    use: Use = "fields",
    way: tuple[OpenField, ...] = (),
    before: tuple[str, ...] = (),
) -> Iterator[Group]:
    """Yield the model's own fields, then those that its relations to one lead to.

    `way` leads to the model, through the models with the labels `before`.
    """
    fields = [*(model.fields if use == "fields" else model.filters).values()]
    prefix = "".join(f"{step.name}." for step in way)
    label = ": ".join(map(field_label, way))
    yield Group(label, prefix, [f for f in fields if f.kind is not FieldKind.TO_MANY])
    if len(way) + 1 == MAX_PATH_STEPS:
        return
    before = (*before, model.label)
    for field in fields:
        if field.kind is FieldKind.TO_ONE:
            target = opened.get(field.target_model._meta.label)
            # A way that comes back to a model tells nothing new of it.
            if target is not None and target.label not in before:
                yield from groups_of(target, opened, use, (*way, field), before)


Entry: TypeAlias = Callable[[str, str, OpenField], Iterable[tuple[str, str]]]
"""Returns the choices that a field gives, with their labels, by its path and label."""


def grouped_choices(
    model: OpenModel,
    opened: OpenModels,
    entry: Entry,
    chosen: Iterable[str] = (),
    use: Use = "fields",
) -> Choices:
    """Return choices in groups, and what was chosen and is not there any more."""
    own: Choices = []
    offered: set[str] = set()
    for group in groups_of(model, opened, use):
        entries = [
            each
            for field in group.fields
            for each in entry(
                f"{group.prefix}{field.name}",
                ": ".join(filter(None, (group.label, field_label(field)))),
                field,
            )
        ]
        if group.label and entry in (field_entry, filter_entry):
            key: Label = _("its key (a number that programs use)")
            if entry is filter_entry:
                key = gettext("%(relation)s (its key)") % {"relation": group.label}
            entries.append((f"{group.prefix}pk", str(key)))
        offered |= {value for value, _label in entries}
        own += [(group.label, entries)] if group.label and entries else entries
    lost = [each for each in chosen if each and each not in offered]
    gone = _("%(path)s (not open any more)")
    return own + [(each, lazystr(gone) % {"path": each}) for each in lost]


def field_entry(path: str, label: str, field: OpenField) -> Iterator[tuple[str, str]]:
    yield path, label


def filter_entry(path: str, label: str, field: OpenField) -> Iterator[tuple[str, str]]:
    if comparisons_of(field):
        yield path, label


def text_entry(path: str, label: str, field: OpenField) -> Iterator[tuple[str, str]]:
    if field.kind is FieldKind.TEXT:
        yield path, label


def sort_entries(path: str, label: str, field: OpenField) -> Iterator[tuple[str, str]]:
    if is_sortable(field):
        yield from both_directions(path, label, field.kind)


def both_directions(
    name: str, label: str, kind: FieldKind | None
) -> Iterator[tuple[str, str]]:
    """Yield both orders by what has this name."""
    words = _("%(field)s, %(direction)s")
    for sign, descending in (("", False), ("-", True)):
        direction = direction_label(kind, descending=descending)
        yield f"{sign}{name}", str(words) % {"field": label, "direction": direction}


def group_entries(path: str, label: str, field: OpenField) -> Iterator[tuple[str, str]]:
    if field.kind is FieldKind.OTHER:
        return
    if field.kind in DATES:
        for unit in ("month", *(each for each in UNITS if each != "month")):
            yield f"{path}/{unit}", unit_label(unit, label)
    yield path, label


def measure_entries(
    path: str, label: str, field: OpenField
) -> Iterator[tuple[str, str]]:
    for aggregate, kinds in MEASURES.items():
        if field.kind in kinds:
            text = capfirst(measure_label(aggregate, label, field.kind))
            yield f"{aggregate}/{path}", text


# -- comparisons -----------------------------------------------------------------------

NOT: Final = "-"
"""Before a lookup: what fits is left out."""
_CHOOSING: Final = ("in", "-in", "exact", "-exact", EMPTY)
_ORDERED: Final = ("range", "exact", "gte", "lte", EMPTY)
_DATED: Final = ("range", "period", "last_days", "next_days", *_ORDERED[1:])
_OFFERED: Final[Mapping[FieldKind, Sequence[str]]] = {
    FieldKind.TEXT: ("icontains", "istartswith", "iexact", "exact", "in", EMPTY),
    FieldKind.CHOICE: _CHOOSING,
    FieldKind.TO_ONE: _CHOOSING,
    FieldKind.KEY: ("exact", "in", "-in", "-exact", EMPTY),
    FieldKind.YES_NO: ("exact", EMPTY),
    FieldKind.DATE: _DATED,
    FieldKind.DATETIME: _DATED,
}


def comparison_choices(field: OpenField, chosen: str = "") -> Choices:
    """Return what a field can be compared by, the usual one first, with labels."""
    known = comparisons_of(field)
    codes = _OFFERED.get(field.kind, _ORDERED)
    offered = [each for each in codes if each.lstrip(NOT) in known]
    if chosen and chosen not in offered and chosen.lstrip(NOT) in known:
        offered.append(chosen)
    return [
        (each, lookup_label(each.lstrip(NOT), field.kind, each.startswith(NOT)))
        for each in offered
    ]
