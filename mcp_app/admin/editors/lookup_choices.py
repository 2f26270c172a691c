"""What the form of a query offers: fields, comparisons, measures and orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from django.utils.functional import lazystr
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.kinds.query.comparisons import DATES, EMPTY, comparisons_of
from mcp_app.kinds.query.config import MEASURES, UNITS
from mcp_app.kinds.query.labels import (
    direction_label,
    field_label,
    lookup_label,
    measure_label,
    period_label,
    unit_label,
)
from mcp_app.kinds.query.reading import is_sortable
from mcp_app.kinds.query.scoping import MAX_PATH_STEPS, Hop, Use
from mcp_app.protocol.json_types import JsonObject

Choices: TypeAlias = list[Any]
"""Pairs of a value and its label, also in groups, as in Django's `choices`."""
Pairs: TypeAlias = list[tuple[str, str]]
Entries: TypeAlias = Callable[[str, str, OpenField], Pairs]
"""Takes a path, a label and a field; returns its choices with labels."""
NONE: Final = ("", "---------")


def _groups_of(
    model: OpenModel, opened: OpenModels, use: Use, way: tuple[Hop, ...] = ()
) -> Iterator[tuple[tuple[Hop, ...], list[OpenField]]]:
    """Yield the model's own fields, then those of models behind to-one relations."""
    end_model = way[-1].model if way else model
    fields = [*(end_model.fields if use == "fields" else end_model.filters).values()]
    # A column shows one value, so it cannot be a to-many relation.
    left_out = FieldKind.TO_MANY if use == "fields" else None
    yield way, [each for each in fields if each.kind is not left_out]
    labels_on_way = {model.label, *(hop.model.label for hop in way)}
    for field in fields if len(way) + 1 < MAX_PATH_STEPS else ():
        if field.kind is FieldKind.TO_ONE:
            target = opened.get(field.target_model._meta.label)
            # Do not follow relations back to a model on the way.
            if target is not None and target.label not in labels_on_way:
                yield from _groups_of(model, opened, use, (*way, Hop(field, target)))


def grouped_choices(
    model: OpenModel,
    opened: OpenModels,
    entries_of: Entries,
    chosen: Sequence[str] = (),
    use: Use = "fields",
) -> Choices:
    """Return choices in groups, then chosen ones that are no longer open."""
    choices: Choices = []
    offered: set[str] = set()
    for way, fields in _groups_of(model, opened, use):
        prefix = "".join(f"{hop.field.name}." for hop in way)
        label = ": ".join(field_label(hop.field) for hop in way)
        entries: Pairs = []
        for field in fields:
            path = f"{prefix}{field.name}"
            # The relation, which is offered itself, shows this text: do not repeat it.
            is_twice = way and use == "fields" and field.name == way[-1].model.text
            if is_twice and not any(each.endswith(path) for each in chosen):
                continue
            words = ": ".join(filter(None, (label, field_label(field))))
            entries += entries_of(path, words, field)
        if way and entries_of is field_entries:
            key = gettext("its key (a number that programs use)")
            entries.append((f"{prefix}pk", f"{label}: {key}"))
        elif way and entries_of in (filter_entries, filter_and_ready_entries):
            words = gettext("%(relation)s (its key)") % {"relation": label}
            entries.append((f"{prefix}pk", words))
        offered |= {value for value, _label in entries}
        choices += [(label, entries)] if way and entries else entries
    lost = [each for each in chosen if each and each not in offered]
    closed = _("%(path)s (not open any more)")
    return choices + [(each, lazystr(closed) % {"path": each}) for each in lost]


def field_entries(path: str, label: str, field: OpenField) -> Pairs:
    return [(path, label)]


def filter_entries(path: str, label: str, field: OpenField) -> Pairs:
    entries = [(path, label)] if comparisons_of(field) else []
    if field.kind is FieldKind.TO_MANY:
        words = gettext("%(relation)s (its key)") % {"relation": label}
        entries.append((f"{path}.pk", words))
    return entries


_READY_PERIODS: Final = ("this_month", "from_now_on")
_MAX_READY: Final = 12
"""Fields with more choices get no ready filters: the list would be too long."""


def ready_filters(field: OpenField) -> Iterator[tuple[str, JsonObject]]:
    """Yield common filters with a fixed value: their words, and the config."""
    if field.kind in DATES:
        for each in _READY_PERIODS:
            yield period_label(each), {"lookup": "period", "value": each}
    elif field.kind is FieldKind.YES_NO:
        yield gettext("yes"), {"lookup": "exact", "value": True}
        yield gettext("no"), {"lookup": "exact", "value": False}
    elif field.kind is FieldKind.CHOICE and len(field.choices) <= _MAX_READY:
        for value, label in field.choices:
            asked = {"lookup": "exact", "exclude": True, "value": value}
            yield gettext("not %(value)s") % {"value": label}, asked


READY: Final = "="
"""Separates the path and the value of a ready filter."""


def filter_and_ready_entries(path: str, label: str, field: OpenField) -> Pairs:
    ready = [
        (f"{path}{READY}{config['value']}", f"{label}: {words}")
        for words, config in ready_filters(field)
    ]
    return filter_entries(path, label, field) + ready


def text_entries(path: str, label: str, field: OpenField) -> Pairs:
    is_text = field.kind in (FieldKind.TEXT, FieldKind.TO_MANY)
    return [(path, label)] if is_text else []


def sort_entries(path: str, label: str, field: OpenField) -> Pairs:
    return both_directions(path, label, field.kind) if is_sortable(field) else []


def both_directions(name: str, label: str, kind: FieldKind | None) -> Pairs:
    """Return the ascending and the descending order by this name."""
    words, orders = gettext("%(field)s, %(direction)s"), []
    for value, descending in ((name, False), (f"-{name}", True)):
        direction = direction_label(kind, descending=descending)
        orders.append((value, words % {"field": label, "direction": direction}))
    return orders


def group_entries(path: str, label: str, field: OpenField) -> Pairs:
    if field.kind is FieldKind.OTHER:
        return []
    units = dict.fromkeys(("month", *UNITS)) if field.kind in DATES else ()
    return [
        *((f"{path}/{each}", unit_label(each, label)) for each in units),
        (path, label),
    ]


def measure_entries(path: str, label: str, field: OpenField) -> Pairs:
    return [
        (f"{aggregate}/{path}", capfirst(measure_label(aggregate, label, field.kind)))
        for aggregate, kinds in MEASURES.items()
        if field.kind in kinds
    ]


NOT: Final = "-"
"""Prefix of a lookup: the filter excludes the rows that match."""
NOT_EMPTY: Final = f"{NOT}{EMPTY}"
_EXCLUDED: Final = frozenset(
    {FieldKind.CHOICE, FieldKind.TO_ONE, FieldKind.TO_MANY, FieldKind.KEY}
)
"""Kinds of fields whose filters may exclude values."""


def comparison_choices(field: OpenField, chosen: str = "") -> Choices:
    """Return what a field can be compared by, the usual one first, with labels."""
    comparisons = comparisons_of(field)
    codes: list[str] = []
    for each in comparisons:
        may_exclude = field.kind in _EXCLUDED or each == EMPTY
        codes += [each, f"{NOT}{each}"] if may_exclude else [each]
    if chosen and chosen not in codes and chosen.lstrip(NOT) in comparisons:
        # A stored filter may exclude what new ones cannot.
        codes.append(chosen)
    return [
        (code, lookup_label(code.lstrip(NOT), field.kind, code.startswith(NOT)))
        for code in codes
    ]
