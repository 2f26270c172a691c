"""Answers that are rows: a page of them, their total, and where the next one begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.db.models import F, QuerySet

from mcp_app.interface.errors import ToolError
from mcp_app.kinds.query.conditions import conditions
from mcp_app.kinds.query.config import Query
from mcp_app.kinds.query.cursor import Place, Total
from mcp_app.kinds.query.lists import read_list
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.shapes import Columns, Shape
from mcp_app.kinds.query.sorting import Sorting
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

MOST_COUNTED: Final = 100_000


@dataclass(frozen=True)
class Page:
    """Rows, their total if it was asked for, and the place of the next page."""

    rows: Sequence[JsonObject]
    total: Total | None
    next: Place | None


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Reads rows for one call.

    `values` are the cleaned arguments, `most` the rows and `size` the bytes of a page.
    """

    query: Query
    scopes: Scopes
    values: Mapping[str, Any]
    today: date
    most: int
    size: int

    def page(self, place: Place | None) -> Page:
        """Return the page at a place, the first one for None."""
        chosen = self._chosen()
        total = place.total if place is not None else self._total(chosen)
        columns = Columns()
        shape = Shape(self.query.fields, self.scopes, columns)
        sorting = Sorting(self.query.order, self.scopes, columns, F("pk"))
        links = {
            each.field.name: columns.add(F(each.field.link.here))
            for each in self.query.lists
        }
        rows = chosen.annotate(**columns.expressions)
        if place is not None:
            rows = rows.filter(sorting.after(place.after, place.key))
        rows = rows.order_by(*sorting.order)
        values = list(rows.values(*columns.names())[: self.most + 1])
        objects = self._whole(shape, links, values[: self.most])
        fitting = list(self._fitting(objects))
        more = len(values) > len(fitting)
        following = None
        if more:
            last = values[len(fitting) - 1]
            after = tuple(last[name] for name in sorting.names)
            following = Place(after, last[sorting.key], self.today, total)
        return Page(fitting, total, following)

    def _chosen(self) -> QuerySet[Any]:
        rows = self.scopes.rows(self.query.model)
        filters = self.query.filters
        return rows.filter(conditions(filters, self.scopes, self.values, self.today))

    def _total(self, chosen: QuerySet[Any]) -> Total | None:
        if not self.query.count:
            return None
        count = chosen.values("pk")[: MOST_COUNTED + 1].count()
        return Total(min(count, MOST_COUNTED), count <= MOST_COUNTED)

    def _whole(
        self,
        shape: Shape,
        links: Mapping[str, str],
        values: Sequence[dict[str, Any]],
    ) -> Sequence[JsonObject]:
        """Return rows with the lists below them."""
        objects = [shape.object(each) for each in values]
        for each in self.query.lists if values else ():
            column = links[each.field.name]
            parents = {row[column] for row in values}
            lists = read_list(each, self.scopes, parents, self.values, self.today)
            for row, complete in zip(values, objects, strict=True):
                nothing: JsonObject = {"rows": [], "total": 0}
                complete[each.field.name] = lists.get(row[column], nothing)
        return objects

    def _fitting(self, objects: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """Yield as many rows as fit into an answer."""
        left = self.size
        for row in objects:
            size = len(jsonrpc.write(row))
            if size <= left:
                left -= size
                yield row
                continue
            if left == self.size:
                # Its key, if it is shown at all.
                key = row.get(self.query.model.model._meta.pk.name, "")
                named = f"The row {key}".rstrip()
                raise ToolError(
                    f"{named} is larger than {self.size} bytes. Ask so that it is left"
                    " out."
                )
            return
