"""The scope of a caller: the rows that it may see, and expressions that stay in it.

No statement joins a second opened model.  Each step of a path is a subquery on the
scope of the model that it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from django.core.exceptions import EmptyResultSet
from django.db import router
from django.db.models import Expression, F, Lookup, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import Col
from django.db.models.sql.query import Query
from django.db.models.sql.where import WhereNode

from mcp_app.catalog.open_models import ALL, FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.interface.principal import AccessRequest
from mcp_app.kinds.kind import KindError

# -- paths -----------------------------------------------------------------------------
# Paths: `customer.country.name`, from an open model over relations to a field.

MAX_PATH_STEPS: Final = 3

Use: TypeAlias = Literal["fields", "filters"]
"""Whether a path is for a shown field or for a filter."""


TEXT: Final = "text"
PRIMARY_KEY: Final = "pk"
"""The two values that stand for a related row; also names of members in answers."""


class Hop(NamedTuple):
    """A step to another model: the relation, and the open model that it leads to."""

    field: OpenField
    model: OpenModel

    @property
    def beyond_table(self) -> Hop:
        """The step from a row of the through table, which leads to one row."""
        between: Any = self.field.through_table
        step = OpenField(self.field.name, FieldKind.TO_ONE, between.forward)
        return Hop(step, self.model)


@dataclass(frozen=True)
class Path:
    """A field, and the hops on the way to it from `model`.

    If a path ends at a relation, that is its last hop, and `stand_in` says what stands
    for the row: `TEXT` (`field` is one of the target) or `PRIMARY_KEY`.  Else it is "".
    """

    text: str
    model: OpenModel
    hops: tuple[Hop, ...]
    field: OpenField
    stand_in: str = ""

    @property
    def name(self) -> str:
        """The path as one name: `customer_country_name`."""
        return self.text.replace(".", "_")

    @property
    def owner(self) -> OpenModel:
        """The open model at the end of the hops."""
        return self.hops[-1].model if self.hops else self.model

    @property
    def leads_to_many(self) -> bool:
        return any(hop.field.kind is FieldKind.TO_MANY for hop in self.hops)

    @property
    def is_own(self) -> bool:
        """Whether it is a column of `model` itself, such as the key of a relation."""
        # The key of a relation has one hop, another column of `model` has none.
        return len(self.hops) == (self.stand_in == PRIMARY_KEY)

    @property
    def models(self) -> Iterator[OpenModel]:
        """All open models on the path, also the target of a relation at its end."""
        yield self.model
        yield from (hop.model for hop in self.hops)

    @property
    def permissions(self) -> Iterator[str]:
        """The permissions that callers need to use the path."""
        yield from (model.permission for model in self.models)
        yield from (hop.field.permission for hop in self.hops)
        yield self.field.permission

    @property
    def end_field(self) -> OpenField:
        """The field that the text names; for a relation, the relation itself."""
        return self.hops[-1].field if self.stand_in else self.field

    def prepend_hops(self, hops: tuple[Hop, ...]) -> Path:
        """Return the same path with these hops before it."""
        return replace(self, hops=(*hops, *self.hops))

    @property
    def nullable(self) -> bool:
        """Whether its value may be null."""
        return bool(self.hops) or self.field.nullable


def resolve_path(text: object, model: OpenModel, opened: OpenModels, use: Use) -> Path:
    """Return the path that a text names; raise `KindError` if there is none.

    Only filters may lead over relations to many: one of the related rows must fit.
    A relation at the end means the text of its row.  With `.pk` behind it, or if its
    model opens no text for this use, it means the key.
    """
    names = text.split(".") if isinstance(text, str) else []
    is_key = names[-1:] == [PRIMARY_KEY]
    steps = names[:-1] if is_key else names
    if not steps or len(steps) > MAX_PATH_STEPS or not all(steps):
        raise KindError(
            f"“{text}” is no path. Write up to {MAX_PATH_STEPS} names of fields with"
            " dots between them, such as customer.country.name.",
            place="path",
        )
    hops: list[Hop] = []
    owner = model
    for number, name in enumerate(steps, 1):
        field = _open_field(name, owner, use)
        many = field.kind is FieldKind.TO_MANY
        if field.kind is FieldKind.TO_ONE or (many and use == "filters"):
            owner = target_model(field, opened)
            hops.append(Hop(field, owner))
        elif number < len(names):
            raise KindError(
                f"“{text}”: {name} of {owner.label} is a {field.kind.value}, and a"
                " path goes on only over relations to one.",
                place="path",
            )
    stand_in = ""
    # A path that ends at a relation needs something that stands for the row.
    if hops and field is hops[-1].field:
        open_fields = owner.fields if use == "fields" else owner.filters
        stand_in = PRIMARY_KEY
        if not is_key and owner.text in open_fields:
            field, stand_in = open_fields[owner.text], TEXT
    return Path(".".join(names), model, tuple(hops), field, stand_in)


def target_model(relation: OpenField, opened: OpenModels) -> OpenModel:
    """Return the open model that a relation leads to."""
    label = relation.target_model._meta.label
    if label not in opened:
        message = f"“{relation.name}” leads to {label}, which no code opens."
        raise KindError(message, place="path")
    return opened[label]


def _open_field(name: str, model: OpenModel, use: Use) -> OpenField:
    open_fields = model.fields if use == "fields" else model.filters
    if name in open_fields:
        return open_fields[name]
    close = get_close_matches(name, open_fields, 1)
    meant = f" Did you mean “{close[0]}”?" if close else ""
    verb = "shown" if use == "fields" else "asked by"
    message = f"“{name}” of {model.label} cannot be {verb}: no code opens it for that."
    raise KindError(f"{message}{meant}", place="path")


# -- scoping ---------------------------------------------------------------------------

_VALUE: Final = "mcp_value"


class Scopes:
    """The scopes of one call; `rows` of each model is called once, in this thread."""

    def __init__(self, request: AccessRequest, using: str) -> None:
        self.using = using
        self._request = request
        self._rows: dict[str, QuerySet[Any]] = {}

    def rows(self, model: OpenModel) -> QuerySet[Any]:
        """Return a model's rows that the caller sees, in no order."""
        if model.label not in self._rows:
            self._rows[model.label] = self._scoped_rows(model)
        return self._rows[model.label].all()

    def path_value(self, path: Path) -> Any:
        """Return the value of a path; null if a row on the way is hidden."""
        if path.stand_in == PRIMARY_KEY:
            return self.key_of_row(path.hops)
        return self._value_over_hops(path.hops, path.field)

    def key_of_row(self, hops: Sequence[Hop]) -> Any:
        """Return the key of the row that hops lead to; null if that is hidden."""
        return self._value_over_hops(hops[:-1], hops[-1].field, hops[-1].model)

    def where(self, hops: Sequence[Hop], condition: Q) -> Q:
        """Return a condition on the row that hops lead to, which must be visible."""
        if not hops:
            return condition
        first, rest = hops[0], hops[1:]
        link, through_table = first.field.join_columns, first.field.through_table
        if through_table is not None:
            inner = self.where((first.beyond_table, *rest), condition)
            pairs = through_table.model._base_manager.using(self.using).filter(inner)
            return Q(**{f"{link.here}__in": pairs.values(link.there)})
        # In SQL, NOT IN with a null in the list would leave no row.
        not_null = Q(**{f"{link.there}__isnull": False})
        rows = self.rows(first.model).filter(not_null, self.where(rest, condition))
        return Q(**{f"{link.here}__in": rows.values(link.there)})

    def empty(self, path: Path, wanted: bool) -> Q:
        """Return the condition that a field is empty, or not empty if not `wanted`.

        A relation to a hidden row is empty.  The rows on the way must be visible.
        """
        field, hops = path.field, path.hops
        if path.stand_in:
            is_empty, hops = ~self.where(hops[-1:], Q()), hops[:-1]
        else:
            is_empty = Q(**{f"{field.source.attname}__isnull": True})
            is_text = field.kind in (FieldKind.TEXT, FieldKind.CHOICE)
            if is_text and field.source.empty_strings_allowed:
                is_empty |= Q(**{field.source.attname: ""})
        return self.where(hops, is_empty if wanted else ~is_empty)

    def _value_over_hops(
        self, hops: Sequence[Hop], field: OpenField, related: OpenModel | None = None
    ) -> Any:
        """Return a field's value; with `related`, the key of the row it refers to."""
        if hops:
            inner = self._value_over_hops(hops[1:], field, related)
            return self._of_one(hops[0], inner)
        if related is None:
            return F(field.source.attname)
        return self._of_one(Hop(field, related), F(field.key_column))

    def _of_one(self, hop: Hop, inner: Any) -> Any:
        link = hop.field.join_columns
        rows = self.rows(hop.model).filter(**{link.there: OuterRef(link.here)})
        return Subquery(rows.annotate(**{_VALUE: inner}).values(_VALUE)[:1])

    def _scoped_rows(self, model: OpenModel) -> QuerySet[Any]:
        if model.rows == ALL:
            rows = model.model._default_manager.all()
        else:
            rows = model.rows(self._request)
            _check_rows(rows, model, self.using)
        query: Any = rows.query.chain()
        query.select_for_update = False
        # The queryset class of a site may count or iterate in other ways: avoid it.
        if _is_plain(query):
            # After `reverse()`, this would be False and turn each later order round.
            query.standard_ordering = True
            plain: QuerySet[Any] = QuerySet(rows.model, query, self.using)
            return plain.order_by().select_related(None)
        all_rows: QuerySet[Any] = QuerySet(model.model, using=self.using)
        query.clear_ordering(clear_default=True)
        # Drop what `extra()` selects: it might be called "pk".
        query.set_extra_mask(())
        query.set_values([rows.model._meta.pk.attname])
        try:
            statement = _Statement(*query.get_compiler(self.using).as_sql())
        except EmptyResultSet:
            return all_rows.none()
        return all_rows.order_by().filter(pk__in=statement)


class _Statement(Expression):
    """A compiled statement, so that tables keep the names that raw SQL of a site uses.

    In a nested query, Django renames tables, but not in raw SQL.  There, the old name
    would mean the table of the outer statement.
    """

    def __init__(self, sql: str, values: Sequence[Any]) -> None:
        super().__init__()
        self._sql, self._values = sql, values

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return f"({self._sql})", self._values


def _check_rows(rows: object, model: OpenModel, using: str) -> None:
    """Raise TypeError unless this is a queryset of whole rows of the model."""
    prefix = f"{model.rows_name} returned"
    if not isinstance(rows, QuerySet):
        raise TypeError(f"{prefix} {type(rows).__name__}, which is no queryset.")
    if rows.model._meta.concrete_model is not model.model._meta.concrete_model:
        raise TypeError(
            f"{prefix} rows of {rows.model._meta.label}, which is not {model.label}."
        )
    query: Any = rows.query
    if query.is_sliced or query.combinator:
        how = "slice" if query.is_sliced else query.combinator
        raise TypeError(f"{prefix} a {how}. Filter the rows instead.")
    if getattr(rows, "_fields", None) is not None:
        raise TypeError(f"{prefix} values(), which are no whole rows.")
    # Events read the database for writes; other queries read that for reads.
    fitting = (None, using, router.db_for_read(model.model))
    if rows._db not in fitting:  # type: ignore[attr-defined]
        raise TypeError(
            f"{prefix} rows of the database “{rows.db}”, but “{using}” is read."
        )


def _is_plain(query: Any) -> bool:
    """Whether a query reads one table, and filters only by Django's own lookups."""
    tables = [name for name, count in query.alias_refcount.items() if count]
    return type(query) is Query and not (
        len(tables) > 1
        or query.distinct
        or query.annotations
        or query.extra
        or query.extra_tables
        or query.group_by is not None
        or not _is_plain_part(query.where)
    )


def _is_plain_part(part: Any) -> bool:
    """Whether a part of a condition is a lookup, a column or a value."""
    if isinstance(part, WhereNode):
        part = part.children
    elif isinstance(part, Lookup) and type(part).__module__.startswith("django."):
        part = [part.lhs, part.rhs]
    if isinstance(part, list | tuple):
        return all(map(_is_plain_part, part))
    is_value = not (hasattr(part, "as_sql") or hasattr(part, "resolve_expression"))
    return is_value or type(part) is Col
