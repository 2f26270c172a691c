"""Answers that are groups: counts, sums and averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from django.conf import settings
from django.db.models import (
    Aggregate,
    Avg,
    Count,
    DateField,
    ExpressionWrapper,
    F,
    FloatField,
    Max,
    Min,
    OrderBy,
    Sum,
    Value,
)
from django.db.models.functions import Trunc, TruncDate
from django.utils import timezone

from mcp_app.catalog.open_models import FieldKind
from mcp_app.kinds.query.conditions import conditions
from mcp_app.kinds.query.config import Group, Measure, Query
from mcp_app.kinds.query.schema import DATES
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.values import measure_to_json, plain, to_json
from mcp_app.protocol.json_types import JsonObject

MOST_GROUPS: Final = 200

_AGGREGATES: Final[Mapping[str, type[Aggregate]]] = {
    "sum": Sum,
    "average": Avg,
    "least": Min,
    "greatest": Max,
}


def read_groups(
    query: Query, scopes: Scopes, values: Mapping[str, Any], today: date
) -> tuple[Sequence[JsonObject], bool]:
    """Return the lines of at most `MOST_GROUPS` groups, and whether there are more.

    Without anything to group by it is one line.
    """
    rows = scopes.rows(query.model).filter(
        conditions(query.filters, scopes, values, today)
    )
    measures = {
        f"mcp_m{index}": _aggregate(each, scopes)
        for index, each in enumerate(query.measures)
    }
    groups = {
        f"mcp_g{index}": _expression(each, scopes)
        for index, each in enumerate(query.by)
    }
    if not groups:
        return [_line(query, rows.aggregate(**measures))], False
    lines = (
        rows.annotate(**groups)
        .values(*groups)
        .annotate(**measures)
        .order_by(*_order(query))[: MOST_GROUPS + 1]
    )
    read = [_line(query, each) for each in lines]
    return read[:MOST_GROUPS], len(read) > MOST_GROUPS


def _aggregate(measure: Measure, scopes: Scopes) -> Aggregate:
    if measure.path is None:
        return Count("pk")
    value = scopes.value(measure.path)
    if measure.do == "average" and measure.path.field.kind is FieldKind.NUMBER:
        # MariaDB reckons averages of whole numbers to four places, and casts nothing to
        # a number with more.
        value = ExpressionWrapper(value * Value(1.0), FloatField())
    return _AGGREGATES[measure.do](value)


def _expression(group: Group, scopes: Scopes) -> Any:
    value = scopes.value(group.path)
    if not group.each:
        return value
    if group.path.field.kind is FieldKind.DATETIME:
        # MariaDB and MySQL would keep the time in what begins a week.
        zone = timezone.get_current_timezone() if settings.USE_TZ else None
        value = TruncDate(value, tzinfo=zone)
    return Trunc(value, group.each, output_field=DateField())


def _order(query: Query) -> list[OrderBy]:
    """Return the order: by dates, else by the first measure, the largest first."""
    dated = [
        index for index, each in enumerate(query.by) if each.path.field.kind in DATES
    ]
    first = [f"mcp_g{index}" for index in dated]
    others = [f"mcp_g{index}" for index in range(len(query.by)) if index not in dated]
    ordered = [OrderBy(F(name), nulls_last=True) for name in (*first, *others)]
    if dated:
        return ordered
    return [OrderBy(F("mcp_m0"), descending=True, nulls_last=True), *ordered]


def _line(query: Query, values: Mapping[str, Any]) -> JsonObject:
    line: JsonObject = {}
    for index, group in enumerate(query.by):
        value = values[f"mcp_g{index}"]
        field = group.path.field
        line[group.name] = plain(value) if group.each else to_json(field, value)
    for index, measure in enumerate(query.measures):
        field_of = measure.path.field if measure.path is not None else None
        value = values[f"mcp_m{index}"]
        line[measure.name] = measure_to_json(measure.do, field_of, value)
    return line
