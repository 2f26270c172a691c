"""The rows that a caller may see, and expressions that never leave them.

No statement joins a second opened model: each step of a path is a subquery on the
scope of the model that it leads to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from mcp_app.catalog.open_models import ALL, FieldKind, OpenField, OpenModel
from mcp_app.interface.errors import ToolError
from mcp_app.interface.rights import AccessRequest
from mcp_app.kinds.query.paths import Hop, Path

_VALUE: Final = "mcp_value"
_GAP: Final = r"(?:\s|/\*.*?\*/|--[^\n]*\n)*"
"""What SQL may have between a name and its dot."""


class Scopes:
    """The scopes of one call: code is asked once for each model, in this thread."""

    def __init__(self, request: AccessRequest, using: str) -> None:
        self.using = using
        self._request = request
        self._rows: dict[str, QuerySet[Any]] = {}

    def rows(self, model: OpenModel) -> QuerySet[Any]:
        """Return a model's rows that the caller sees, in no order."""
        if model.label not in self._rows:
            self._rows[model.label] = self._scope(model)
        return self._rows[model.label].all()

    def value(self, path: Path) -> Any:
        """Return what a path shows: null where a row on the way is hidden."""
        if path.is_relation:
            return self.key(path.hops)
        return self._value(path.hops, path.field)

    def key(self, hops: Sequence[Hop]) -> Any:
        """Return the key of the row that hops lead to, null where it is hidden."""
        return self._value(hops[:-1], hops[-1].field, hops[-1].model)

    def where(self, hops: Sequence[Hop], condition: Q) -> Q:
        """Return a condition on the row that hops lead to, which must be visible."""
        if not hops:
            return condition
        first, rest = hops[0], hops[1:]
        rows = self.rows(first.model).filter(self.where(rest, condition))
        link = first.field.link
        return Q(**{f"{link.here}__in": rows.values(link.there)})

    def empty(self, path: Path, related: OpenModel | None, wanted: bool) -> Q:
        """Return the condition that a field has nothing, or something if not `wanted`.

        A hidden row is nothing.  The rows on the way to the field must be visible.
        """
        field = path.field
        if related is not None:
            link = field.link
            rows = self.rows(related).filter(**{link.there: OuterRef(link.here)})
            nothing = ~Q(Exists(rows))
        else:
            nothing = Q(**{f"{field.source.attname}__isnull": True})
            if _is_text(field):
                nothing |= Q(**{field.source.attname: ""})
        return self.where(path.hops, nothing if wanted else ~nothing)

    def _value(
        self,
        hops: Sequence[Hop],
        field: OpenField,
        related: OpenModel | None = None,
    ) -> Any:
        if hops:
            inner = self._value(hops[1:], field, related)
            return self._of_one(hops[0], inner)
        if related is None:
            return F(field.source.attname)
        return self._of_one(Hop(field, related), F(field.key_column))

    def _of_one(self, hop: Hop, inner: Any) -> Any:
        link = hop.field.link
        rows = self.rows(hop.model).filter(**{link.there: OuterRef(link.here)})
        return Subquery(rows.annotate(**{_VALUE: inner}).values(_VALUE)[:1])

    def _scope(self, model: OpenModel) -> QuerySet[Any]:
        if model.rows == ALL:
            rows = model.model._default_manager.all()
        else:
            rows = model.rows(self._request)
            _check(rows, model, self.using)
        rows = rows.using(self.using).order_by().select_related(None)
        _check_sql(rows, model)
        if _is_simple(rows):
            return rows
        # In a subquery of its own, nothing of ours meets its joins and names.
        every = model.model._base_manager.using(self.using).order_by()
        return every.filter(pk__in=rows.values("pk"))


def _is_text(field: OpenField) -> bool:
    return field.kind in (FieldKind.TEXT, FieldKind.CHOICE) and (
        field.source.empty_strings_allowed
    )


def _check(rows: object, model: OpenModel, using: str) -> None:
    """Raise TypeError for what is no queryset of whole rows of the model."""
    said = f"{model.rows_name} returned"
    if not isinstance(rows, QuerySet):
        raise TypeError(f"{said} {type(rows).__name__}, which is no queryset.")
    if rows.model._meta.concrete_model is not model.model._meta.concrete_model:
        raise TypeError(
            f"{said} rows of {rows.model._meta.label}, which is not {model.label}."
        )
    query: Any = rows.query
    if query.is_sliced or query.combinator:
        how = "slice" if query.is_sliced else query.combinator
        raise TypeError(f"{said} a {how}. Filter the rows instead.")
    if getattr(rows, "_fields", None) is not None:
        raise TypeError(f"{said} values(), which are no whole rows.")
    if rows._db not in (None, using):  # type: ignore[attr-defined]
        raise TypeError(
            f"{said} rows of the database “{rows.db}”, but “{using}” is read."
        )


def _check_sql(rows: QuerySet[Any], model: OpenModel) -> None:
    """Raise `ToolError` for SQL of the site that names a table of the queryset.

    In a subquery Django gives each table another name, but not in such a text.  There
    the old name would be that of a row of the statement around it, which is visible
    anyway: all others would be, too.
    """
    query: Any = rows.values("pk").query.clone()
    if _is_simple(rows) and not query.where:
        return
    query.get_initial_alias()
    tables = {re.findall(r"\w+", name)[-1] for name in query.alias_map}
    query.bump_prefix(query.clone())
    try:
        sql, _values = query.get_compiler(rows.db).as_sql()
    except EmptyResultSet:
        return
    named = rf"(?<!\w)({'|'.join(tables)})[\"`\]]?{_GAP}\."
    if found := re.search(named, sql, re.IGNORECASE | re.DOTALL):
        raise ToolError(
            f"{model.rows_name or f'The manager of {model.label}'} returned rows that"
            f" are chosen by SQL with “{found[1]}.” in it: in a subquery this table has"
            " another name, and hidden rows would be shown. A developer must write a"
            " filter() instead, or columns without their table, such as “tenant_id”."
        )


def _is_simple(rows: QuerySet[Any]) -> bool:
    """Whether it is one table with conditions."""
    query: Any = rows.query
    tables = [name for name, count in query.alias_refcount.items() if count]
    return not (
        len(tables) > 1
        or query.distinct
        or query.annotations
        or query.extra
        or query.group_by is not None
    )
