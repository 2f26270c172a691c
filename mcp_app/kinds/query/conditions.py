"""The filters of a query as conditions on rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from django.db.models import Q

from mcp_app.kinds.query.comparisons import EMPTY, condition
from mcp_app.kinds.query.config import Filter
from mcp_app.kinds.query.paths import Hop
from mcp_app.kinds.query.scoping import Scopes


def conditions(
    filters: Iterable[Filter],
    scopes: Scopes,
    values: Mapping[str, Any],
    today: date,
    before: tuple[Hop, ...] = (),
) -> Q:
    """Return what all filters demand together.

    `values` are the cleaned ones of the parameters; without one a filter demands
    nothing.  `before` are hops from the rows to those that the paths begin at.
    """
    whole = Q()
    for each in filters:
        value = values.get(each.parameter) if each.parameter else each.value
        if value is not None:
            whole &= _of(each, scopes, value, today)
    return scopes.where(before, whole) if before else whole


def _of(asked: Filter, scopes: Scopes, value: Any, today: date) -> Q:
    any_of_them = Q()
    for path in asked.paths:
        if asked.comparison == EMPTY:
            fits = scopes.empty(path, asked.related, wanted=value)
        else:
            fits = condition(path.field, asked.comparison, value, today)
            hops = path.hops
            if asked.related is not None:
                hops = (*hops, Hop(path.field, asked.related))
            fits = scopes.where(hops, fits)
        any_of_them |= fits
    return any_of_them
