"""Lists of related rows below the rows of a page: one statement for each list."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber

from mcp_app.catalog.open_models import FieldKind, OpenField
from mcp_app.kinds.query.conditions import conditions
from mcp_app.kinds.query.config import RelatedList
from mcp_app.kinds.query.paths import Hop
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.shapes import Columns, Shape
from mcp_app.kinds.query.sorting import Sorting
from mcp_app.protocol.json_types import JsonObject

_PARENT, _NUMBER, _TOTAL = "mcp_parent", "mcp_number", "mcp_total"


def read_list(
    listed: RelatedList,
    scopes: Scopes,
    parents: Collection[Any],
    values: Mapping[str, Any],
    today: date,
) -> Mapping[Any, JsonObject]:
    """Return the list below each parent, by the value that links them.

    `{"rows": […], "total": 3}`; a parent without rows has no entry.
    """
    columns = Columns()
    between = listed.field.between
    before: tuple[Hop, ...] = ()
    if between is None:
        rows, key = scopes.rows(listed.model), F("pk")
    else:
        # A row of the table between leads to one row of the target, as a relation does.
        step = OpenField(listed.field.name, FieldKind.TO_ONE, between.forward)
        before = (Hop(step, listed.model),)
        rows, key = between.model._base_manager.using(scopes.using), F(step.link.here)
    shape = Shape(listed.fields, scopes, columns, before)
    sorting = Sorting(listed.order, scopes, columns, key, before)
    whose = [F(_PARENT)]
    chosen = (
        rows.filter(**{f"{listed.field.link.there}__in": list(parents)})
        .filter(conditions(listed.filters, scopes, values, today, before))
        .annotate(**columns.expressions, **{_PARENT: F(listed.field.link.there)})
        .annotate(
            **{
                _NUMBER: Window(
                    RowNumber(), partition_by=whose, order_by=sorting.order
                ),
                _TOTAL: Window(Count("pk"), partition_by=whose),
            }
        )
        .filter(**{f"{_NUMBER}__lte": listed.most})
        .order_by(_PARENT, _NUMBER)
        # The number, too: Django loses columns of equal values if it has to hide it.
        .values(_PARENT, _NUMBER, _TOTAL, *columns.names())
    )
    lists: dict[Any, JsonObject] = {}
    for row in chosen:
        below = lists.setdefault(row[_PARENT], {"rows": [], "total": row[_TOTAL]})
        below["rows"].append(shape.object(row))
    return lists
