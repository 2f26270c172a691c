"""What the form of a query offers: choices with labels, and a preview."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils.functional import lazystr
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.interface.definitions import Label
from mcp_app.interface.errors import ToolError
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.kinds.query.comparisons import EMPTY, comparisons_of
from mcp_app.kinds.query.config import (
    DATES,
    GROUPS,
    MEASURES,
    SCHEMA,
    UNITS,
    Query,
    input_schema,
    query_sentence,
)
from mcp_app.kinds.query.groups import read_groups
from mcp_app.kinds.query.kind import database_of
from mcp_app.kinds.query.reading import RowReader, is_sortable, read_query_config
from mcp_app.kinds.query.scoping import MAX_PATH_STEPS, Scopes, Use
from mcp_app.pools.statement_time import TimeIsUp, time_limit
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.site_time import local_date

# -- choices ---------------------------------------------------------------------------
# What staff can choose of the open models, with labels.

Choices: TypeAlias = list[Any]
"""Pairs of a value and its label, also in groups, as Django's fields take them."""
NONE: Final = ("", "---------")

COMPARISONS: Final = {
    "exact": _("is"),
    "iexact": _("is, in capitals or not"),
    "in": _("is one of"),
    "istartswith": _("begins with"),
    "icontains": _("contains"),
    "gte": _("is at least"),
    "lte": _("is at most"),
    "last_days": _("is within the last days"),
    "period": _("is within a period"),
    EMPTY: _("is empty"),
}
MEASURE_LABELS: Final = {
    "sum": _("Sum of %(field)s"),
    "avg": _("Average of %(field)s"),
    "min": _("Least %(field)s"),
    "max": _("Greatest %(field)s"),
}
UNIT_LABELS: Final = {
    "day": _("%(field)s, by day"),
    "week": _("%(field)s, by week"),
    "month": _("%(field)s, by month"),
    "quarter": _("%(field)s, by quarter"),
    "year": _("%(field)s, by year"),
}
COUNT: Final = "count"


def field_label(field: OpenField) -> str:
    """Return what people call a field."""
    source = field.source
    if isinstance(source, ForeignObjectRel):
        options = source.related_model._meta
        many = field.kind is FieldKind.TO_MANY
        return str(options.verbose_name_plural if many else options.verbose_name)
    name = str(source.verbose_name)
    if field.kind is FieldKind.KEY and source.is_relation:
        return gettext("%(relation)s (its key)") % {"relation": name}
    return name


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
    label = ", ".join(map(field_label, way))
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


Entry: TypeAlias = Callable[[str, OpenField], Iterable[tuple[str, Label]]]
"""Returns the choices that a field gives, with their values, by its path."""


def grouped_choices(
    groups: Iterable[Group], entry: Entry, chosen: Iterable[str] = ()
) -> Choices:
    """Return choices in groups, and what was chosen and is not there any more."""
    own: Choices = []
    offered: set[str] = set()
    for group in groups:
        entries = [
            (value, label)
            for field in group.fields
            for value, label in entry(f"{group.prefix}{field.name}", field)
        ]
        offered |= {value for value, _label in entries}
        own += [(group.label, entries)] if group.label and entries else entries
    lost = [each for each in chosen if each and each not in offered]
    gone = _("%(path)s (not open any more)")
    return own + [(each, lazystr(gone) % {"path": each}) for each in lost]


def field_entry(path: str, field: OpenField) -> Iterator[tuple[str, Label]]:
    yield path, field_label(field)


def filter_entry(path: str, field: OpenField) -> Iterator[tuple[str, Label]]:
    if comparisons_of(field):
        yield path, field_label(field)


def text_entry(path: str, field: OpenField) -> Iterator[tuple[str, Label]]:
    if field.kind is FieldKind.TEXT:
        yield path, field_label(field)


def sort_entries(path: str, field: OpenField) -> Iterator[tuple[str, Label]]:
    if is_sortable(field):
        label = field_label(field)
        yield path, gettext("%(field)s, ascending") % {"field": label}
        yield f"-{path}", gettext("%(field)s, descending") % {"field": label}


def group_entries(path: str, field: OpenField) -> Iterator[tuple[str, Label]]:
    if field.kind is FieldKind.OTHER:
        return
    yield path, field_label(field)
    if field.kind in DATES:
        for unit in UNITS:
            yield f"{path}/{unit}", UNIT_LABELS[unit] % {"field": field_label(field)}


def measure_entries(path: str, field: OpenField) -> Iterator[tuple[str, Label]]:
    for aggregate, label in MEASURE_LABELS.items():
        if field.kind in MEASURES[aggregate]:
            yield f"{aggregate}/{path}", label % {"field": field_label(field)}


# -- preview ---------------------------------------------------------------------------
# What a query would give now to who looks at its form, and what it needs.

ROWS: Final = 5
SECONDS: Final = 5
LARGEST: Final = 20_000
"""Bytes of the rows that are shown."""


def preview_of(
    config: JsonObject,
    opened: OpenModels,
    user: AbstractUser | AnonymousUser | None,
) -> Mapping[str, Any]:
    """Return the context of the panel: what is needed, whose rows, and the first ones.

    What clients may say counts as not said.
    """
    if schemas.compile_schema(SCHEMA).violations(config):
        return {}
    query, problems = read_query_config(config, opened)
    if query is None:
        return {"problem": str(problems[0]) if config else ""}
    context = {
        "sentence": query_sentence(query),
        "needs": query.demands.permissions,
        "scopes": [(each.title, each.rows_name) for each in query.models.values()],
        "parameters": input_schema(query)["properties"],
    }
    if user is None:
        return context
    lacking = [each for each in query.demands.permissions if not user.has_perm(each)]
    if lacking:
        text = gettext("You may not see this data yourself (%(permissions)s).")
        return {**context, "problem": text % {"permissions": ", ".join(lacking)}}
    return {**context, **_preview_answer(query, user)}


def _preview_answer(
    query: Query, user: AbstractUser | AnonymousUser
) -> Mapping[str, Any]:
    using = database_of(query)
    scopes = Scopes(AccessRequest.of_user(user), using)
    try:
        with time_limit(using, SECONDS):
            rows, more = _first_rows(query, scopes)
    except TimeIsUp:
        return {"problem": gettext("This took longer than %d seconds.") % SECONDS}
    except ToolError as error:
        return {"problem": str(error)}
    except Exception as error:
        # A function of the site may raise anything.
        return {"problem": gettext("This failed: %(error)r") % {"error": error}}
    flat = [dict(_row_cells(each)) for each in rows]
    headings = list(dict.fromkeys(name for each in flat for name in each))
    cells = [[(name, each.get(name, "")) for name in headings] for each in flat]
    return {"headings": headings, "rows": cells, "more": more, "is_read": True}


def _row_cells(row: JsonObject, before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if isinstance(value, dict) and "rows" in value:
            below = [jsonrpc.write(each).decode() for each in value["rows"]]
            yield f"{before}{name}", "\n".join(below)
        elif isinstance(value, dict):
            yield from _row_cells(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", "" if value is None else visible(str(value), None)


def _first_rows(query: Query, scopes: Scopes) -> tuple[list[JsonObject], bool]:
    today = local_date()
    defaults = {
        name: each.value_for_column(each.default)
        for name, each in query.parameters.items()
        if each.default is not None
    }
    if query.answer == GROUPS:
        lines, _more = read_groups(query, scopes, defaults, today)
        return list(lines[:ROWS]), len(lines) > ROWS
    limits = {"limit": ROWS, "size": LARGEST}
    reader = RowReader(
        query=query, scopes=scopes, values=defaults, today=today, **limits
    )
    page = reader.page_at_place(None)
    return list(page.rows), page.next is not None
