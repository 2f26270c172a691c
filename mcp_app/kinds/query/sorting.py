"""The order of rows, and the rows that follow a place in it (keyset pagination).

Nulls are last in both directions; the primary key decides between rows that are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import F, OrderBy, Q

from mcp_app.kinds.query.config import Term
from mcp_app.kinds.query.paths import Hop, Path
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.shapes import Columns


class Sorting:
    """Terms as columns, and the key after them.

    `key` is the name or the expression of the primary key.
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
            columns.add(scopes.value(term.path.behind(before))) for term in terms
        ]
        self.key = columns.add(key)

    @property
    def order(self) -> list[OrderBy]:
        """Return what a queryset or a window is ordered by."""
        ordered = [
            OrderBy(F(name), descending=term.descending, nulls_last=_last(term.path))
            for name, term in zip(self.names, self._terms, strict=True)
        ]
        return [*ordered, OrderBy(F(self.key))]

    def after(self, values: Sequence[Any], key: Any) -> Q:
        """Return the condition of what comes after a row with these values."""
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


def _last(path: Path) -> bool | None:
    return True if path.nullable else None
