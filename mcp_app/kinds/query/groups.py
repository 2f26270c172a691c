"""A query as SQL: its conditions, sorting, related lists and groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
    Q,
    QuerySet,
    Sum,
    Value,
    Window,
)
from django.db.models.functions import RowNumber, Trunc, TruncDate
from django.utils import timezone

from mcp_app.catalog.open_models import FieldKind
from mcp_app.kinds.query.comparisons import EMPTY, WORDS, condition
from mcp_app.kinds.query.config import Filter, Group, Measure, Query, RelatedList, Term
from mcp_app.kinds.query.scoping import TEXT, Hop, Scopes
from mcp_app.kinds.query.shapes import (
    Columns,
    Shape,
    field_to_json,
    measure_to_json,
    plain_to_json,
)
from mcp_app.protocol.json_types import JsonObject

# -- conditions ------------------------------------------------------------------------
# The filters of a query as conditions on rows.


def conditions(
    filters: Iterable[Filter],
    scopes: Scopes,
    values: Mapping[str, Any],
    today: date,
    before: tuple[Hop, ...] = (),
) -> Q:
    """Return all filters as one condition.

    `values` are the cleaned values of the parameters; without its value, a filter
    allows all rows.  `before` are the hops from the rows to where the paths begin.
    """
    whole = Q()
    for each in filters:
        value = values.get(each.parameter) if each.parameter else each.value
        if value is not None:
            fits = _filter_condition(each, scopes, value, today)
            whole &= ~fits if each.exclude else fits
    return scopes.where(before, whole) if before else whole


def _filter_condition(
    query_filter: Filter, scopes: Scopes, value: Any, today: date
) -> Q:
    every_part = Q()
    for part in value if query_filter.lookup == WORDS else [value]:
        any_of_them = Q()
        for path in query_filter.paths:
            if query_filter.lookup == EMPTY:
                fits = scopes.empty(path, wanted=part)
            else:
                fits = condition(path.field, query_filter.lookup, part, today)
                fits = scopes.where(path.hops, fits)
            any_of_them |= fits
        every_part &= any_of_them
    return every_part


# -- sorting ---------------------------------------------------------------------------
# The order of rows, and the rows that follow a place in it (keyset pagination).
#
# Nulls are last in both directions.  If rows are equal, the primary key decides.


class Sorting:
    """Adds columns to sort by: those of the terms, then the key.

    `key` is the expression of the primary key.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        scopes: Scopes,
        columns: Columns,
        key: Any,
        before: tuple[Hop, ...] = (),
    ) -> None:
        self._terms = terms
        self.names = [
            columns.add_column(scopes.path_value(term.path.prepend_hops(before)))
            for term in terms
        ]
        self.key = columns.add_column(key)

    @property
    def order_expressions(self) -> list[OrderBy]:
        """The ordering for a queryset or a window."""
        ordered = []
        for name, term in zip(self.names, self._terms, strict=True):
            # Django takes True or None, but not False.
            last = term.path.nullable or None
            by = OrderBy(F(name), descending=term.descending, nulls_last=last)
            ordered.append(by)
        return [*ordered, OrderBy(F(self.key))]

    def condition_after(self, values: Sequence[Any], key: Any) -> Q:
        """Return the condition for rows that come after a row with these values."""
        # `Q(pk__in=[])` fits no row, `Q()` each row.
        later, equal = Q(pk__in=[]), Q()
        for name, term, value in zip(self.names, self._terms, values, strict=True):
            if value is not None:
                further = Q(**{f"{name}__{'lt' if term.descending else 'gt'}": value})
                if term.path.nullable:
                    further |= Q(**{f"{name}__isnull": True})
                later |= equal & further
                equal &= Q(**{name: value})
            else:
                equal &= Q(**{f"{name}__isnull": True})
        return later | equal & Q(**{f"{self.key}__gt": key})


# -- lists -----------------------------------------------------------------------------
# Lists of related rows below the rows of a page: one statement for each list.

_PARENT, _NUMBER, _TOTAL = "mcp_parent", "mcp_number", "mcp_total"


def read_list(
    listed: RelatedList,
    scopes: Scopes,
    parents: Collection[Any],
    values: Mapping[str, Any],
    today: date,
) -> Mapping[Any, JsonObject]:
    """Return the list below each parent, by the value that links them.

    A list is `{"rows": […], "total": 3}`.  A parent without rows has no entry.
    """
    columns = Columns()
    through_table = listed.field.through_table
    before: tuple[Hop, ...] = ()
    if through_table is None:
        rows, key = scopes.rows(listed.model), F("pk")
    else:
        before = (Hop(listed.field, listed.model).beyond_table,)
        rows = through_table.model._base_manager.using(scopes.using)
        key = F(before[0].field.join_columns.here)
    shape = Shape(listed.fields, scopes, columns, before)
    sorting = Sorting(listed.order, scopes, columns, key, before)
    partition, link = [F(_PARENT)], listed.field.join_columns.there
    order = sorting.order_expressions
    number = Window(RowNumber(), partition_by=partition, order_by=order)
    total = Window(Count("pk"), partition_by=partition)
    chosen = (
        rows.filter(**{f"{link}__in": list(parents)})
        .filter(conditions(listed.filters, scopes, values, today, before))
        .annotate(**columns.expressions, **{_PARENT: F(link)})
        .annotate(**{_NUMBER: number, _TOTAL: total})
        .filter(**{f"{_NUMBER}__lte": listed.limit})
        .order_by(_PARENT, _NUMBER)
        # Read the number, too: without it, Django's subquery loses equal columns.
        .values(_PARENT, _NUMBER, _TOTAL, *columns.expressions)
    )
    lists: dict[Any, JsonObject] = {}
    for row in chosen:
        below = lists.setdefault(row[_PARENT], {"rows": [], "total": row[_TOTAL]})
        below["rows"].append(shape.row_object(row))
    return lists


# -- groups ----------------------------------------------------------------------------
# Columns are named “mcp_g0” … (groups), “mcp_k0” … (their keys), “mcp_m0” … (measures).

_AGGREGATES: Final[Mapping[str, type[Aggregate]]] = {
    "sum": Sum,
    "avg": Avg,
    "min": Min,
    "max": Max,
}


def read_groups(
    query: Query, scopes: Scopes, values: Mapping[str, Any], today: date
) -> tuple[Sequence[JsonObject], bool]:
    """Return the lines of the first groups, and whether there are more.

    If `group_by` is empty, there is one line.
    """
    wanted = conditions(query.filters, scopes, values, today)
    rows = scopes.rows(query.model).filter(wanted)
    if not query.group_by:
        return [read_totals(query.measures, scopes, rows)], False
    measures = _measure_columns(query.measures, scopes)
    groups = {
        f"mcp_g{at}": _expression(each, scopes)
        for at, each in enumerate(query.group_by)
    }
    # By the key, two related rows with the same text are two groups.
    keys = {
        f"mcp_k{at}": scopes.key_of_row(each.path.hops)
        for at, each in enumerate(query.group_by)
        if each.path.stand_in == TEXT
    }
    lines = (
        rows.annotate(**groups, **keys)
        .values(*groups, *keys)
        .annotate(**measures)
        .order_by(*_group_order(query), *keys)[: query.limit + 1]
    )
    group_lines = [_group_line(query, line) for line in lines]
    return group_lines[: query.limit], len(group_lines) > query.limit


def read_totals(
    measures: Sequence[Measure], scopes: Scopes, rows: QuerySet[Any]
) -> JsonObject:
    """Return the measures over all these rows, by their names."""
    values = rows.aggregate(**_measure_columns(measures, scopes))
    return _measure_members(measures, values)


def _measure_columns(
    measures: Sequence[Measure], scopes: Scopes
) -> Mapping[str, Aggregate]:
    return {f"mcp_m{at}": _aggregate(each, scopes) for at, each in enumerate(measures)}


def _measure_members(
    measures: Sequence[Measure], values: Mapping[str, Any]
) -> JsonObject:
    members: JsonObject = {}
    for at, each in enumerate(measures):
        field = each.path.field if each.path is not None else None
        value = measure_to_json(each.aggregate, field, values[f"mcp_m{at}"])
        members[each.name] = value
    return members


def _aggregate(measure: Measure, scopes: Scopes) -> Aggregate:
    if measure.path is None:
        return Count("pk")
    value = scopes.path_value(measure.path)
    if measure.aggregate == "avg" and measure.path.field.kind is FieldKind.NUMBER:
        # MariaDB computes averages of integers to four places only, and has no cast to
        # a type with more.
        value = ExpressionWrapper(value * Value(1.0), FloatField())
    return _AGGREGATES[measure.aggregate](value)


def _expression(group: Group, scopes: Scopes) -> Any:
    value = scopes.path_value(group.path)
    if not group.unit:
        return value
    if group.path.field.kind is FieldKind.DATETIME:
        # Without this, MariaDB and MySQL keep the time of day in the begin of a week.
        zone = timezone.get_current_timezone() if settings.USE_TZ else None
        value = TruncDate(value, tzinfo=zone)
    return Trunc(value, group.unit, output_field=DateField())


def _group_order(query: Query) -> list[OrderBy]:
    """Return the order of the query, then by all groups, so that there are no ties."""
    columns = {each.name: f"mcp_g{at}" for at, each in enumerate(query.group_by)}
    terms = dict(query.group_order)
    terms |= {name: False for name in columns if name not in terms}
    columns |= {each.name: f"mcp_m{at}" for at, each in enumerate(query.measures)}
    return [
        OrderBy(F(columns[name]), descending=descending, nulls_last=True)
        for name, descending in terms.items()
    ]


def _group_line(query: Query, values: Mapping[str, Any]) -> JsonObject:
    line: JsonObject = {}
    for index, group in enumerate(query.group_by):
        value, field = values[f"mcp_g{index}"], group.path.field
        plain = plain_to_json(value) if group.unit else field_to_json(field, value)
        line[group.name] = plain
    return line | _measure_members(query.measures, values)
