"""Reads a query's config, checks it by the open models, and reads pages of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from django.conf import settings
from django.db import connections, router
from django.db.models import F, QuerySet
from django.utils import timezone

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.interface.errors import ToolError
from mcp_app.kinds.kind import Incomplete, KindError
from mcp_app.kinds.query.comparisons import (
    DATES,
    EMPTY,
    ENDS,
    IN_ANY_CASE,
    RANGE,
    SEVERAL,
    Unfit,
    comparisons_of,
    is_reversed,
)
from mcp_app.kinds.query.config import (
    CURSOR,
    GROUPS,
    MAX_ROWS,
    MAX_SORTED_LENGTH,
    MEASURES,
    ROWS,
    TOTALS,
    USUAL_LISTED,
    USUAL_ROWS,
    Filter,
    Group,
    GroupTerm,
    Measure,
    Query,
    RelatedList,
    Term,
    usual_group_order,
)
from mcp_app.kinds.query.groups import Sorting, conditions, read_list, read_totals
from mcp_app.kinds.query.scoping import TEXT, Path, Scopes, resolve_path, target_model
from mcp_app.kinds.query.shapes import Columns, Place, Shape, Total
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.json_types import JsonObject

# -- rows ------------------------------------------------------------------------------
# Answers that are rows: a page of them, their total, and where the next page begins.

MOST_COUNTED: Final = 100_000
"""If more rows fit, the answer says that there are at least so many."""


@dataclass(frozen=True)
class Page:
    """Rows, their total if the query counts, and the place of the next page."""

    rows: Sequence[JsonObject]
    total: Total | None
    next: Place | None
    totals: JsonObject


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Reads rows for one call.

    `values` are the cleaned arguments.  `limit` is in rows and `size` in bytes a page.
    """

    query: Query
    scopes: Scopes
    values: Mapping[str, Any]
    today: date
    limit: int
    size: int

    def rows_by_key(self, keys: Collection[Any]) -> Mapping[Any, JsonObject]:
        """Return the rows that have one of these keys, whatever their size."""
        columns = Columns()
        shape = Shape(self.query.fields, self.scopes, columns)
        key = columns.add_column(F("pk"))
        rows = self._chosen_rows().filter(pk__in=keys).annotate(**columns.expressions)
        values = rows.values(*columns.expressions)
        return {value[key]: shape.row_object(value) for value in values}

    def _chosen_rows(self) -> QuerySet[Any]:
        wanted = conditions(self.query.filters, self.scopes, self.values, self.today)
        return self.scopes.rows(self.query.model).filter(wanted)

    def page_at_place(self, place: Place | None) -> Page:
        """Return the page at a place; the first page for None."""
        chosen = self._chosen_rows()
        if place is not None:
            total = place.total
        elif self.query.count:
            count = chosen.values("pk")[: MOST_COUNTED + 1].count()
            total = Total(min(count, MOST_COUNTED), count <= MOST_COUNTED)
        else:
            total = None
        columns = Columns()
        shape = Shape(self.query.fields, self.scopes, columns)
        sorting = Sorting(self.query.order, self.scopes, columns, F("pk"))
        links = {
            each.field.name: columns.add_column(F(each.field.join_columns.here))
            for each in self.query.lists
        }
        rows = chosen.annotate(**columns.expressions)
        if place is not None:
            rows = rows.filter(sorting.condition_after(place.after, place.key))
        rows = rows.order_by(*sorting.order_expressions)
        # One row more than the page has tells whether another page follows.
        values = list(rows.values(*columns.expressions)[: self.limit + 1])
        objects = self._rows_with_lists(shape, links, values[: self.limit])
        fitting = list(self._fitting_rows(objects))
        next_place = None
        if len(values) > len(fitting):
            last_row = values[len(fitting) - 1]
            after = tuple(last_row[name] for name in sorting.names)
            next_place = Place(after, last_row[sorting.key], self.today, total)
        totals: JsonObject = {}
        if self.query.totals:
            totals = read_totals(self.query.totals, self.scopes, chosen)
        return Page(fitting, total, next_place, totals)

    def _rows_with_lists(
        self, shape: Shape, links: Mapping[str, str], values: Sequence[dict[str, Any]]
    ) -> Sequence[JsonObject]:
        objects = [shape.row_object(value) for value in values]
        for each in self.query.lists if values else ():
            column = links[each.field.name]
            parents = {row[column] for row in values}
            lists = read_list(each, self.scopes, parents, self.values, self.today)
            for row, row_object in zip(values, objects, strict=True):
                nothing: JsonObject = {"rows": [], "total": 0}
                row_object[each.field.name] = lists.get(row[column], nothing)
        return objects

    def _fitting_rows(self, objects: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """Yield rows until the page is full; refuse a first row that is too large."""
        bytes_left = self.size
        for row in objects:
            size = len(jsonrpc.write(row))
            if size <= bytes_left:
                bytes_left -= size
                yield row
                continue
            if bytes_left == self.size:
                # The error names the key only if the key is shown.
                key = row.get(self.query.model.model._meta.pk.name, "")
                raise ToolError(
                    f"{f'The row {key}'.rstrip()} is larger than {self.size} bytes."
                    " Ask so that it is left out."
                )
            return


# -- reading ---------------------------------------------------------------------------

Part = TypeVar("Part")


def read_query_config(
    config: JsonObject, opened: OpenModels
) -> tuple[Query | None, list[KindError]]:
    """Return the query of a config that fits the `SCHEMA`, or what is wrong with it."""
    label = config.get("model")
    if not label:
        return None, [Incomplete("Choose what to look up.", place="model")]
    if label not in opened:
        message = f"No code opens the model “{label}” (any more)."
        return None, [KindError(message, place="model")]
    reader = _Reader(opened)
    query = reader.build_query(config, opened[label])
    return (None if reader.problems else query), reader.problems


class _Reader:
    """Reads one config; `problems` gets all that is wrong with it."""

    def __init__(self, opened: OpenModels) -> None:
        self._opened = opened
        self._parameters: set[str] = set()
        self._group_names: list[str] = []
        self.problems: list[KindError] = []

    def build_query(self, config: JsonObject, model: OpenModel) -> Query:
        answer = config.get("answer", ROWS)
        if answer == GROUPS:
            rows, groups = {}, config
            if not config.get("measures"):
                message = "Choose what to count or to add up."
                self.problems.append(Incomplete(message, place="measures"))
        else:
            rows, groups = config, {}
            if not config.get("fields") and not config.get("lists"):
                message = "Choose at least one field to show."
                self.problems.append(Incomplete(message, place="fields"))
        group_by = self._read_parts(groups, "group_by", self._read_group, model)
        measures = self._read_parts(groups, "measures", self._read_measure, model)
        self._group_names = [each.name for each in group_by]
        self._group_names += [measure.name for measure in measures]
        query = Query(
            model=model,
            filters=self._read_filters(config, model),
            answer=answer,
            fields=self._read_parts(rows, "fields", self._visible_path, model),
            lists=self._read_parts(rows, "lists", self._read_related_list, model),
            order=self._read_parts(rows, "order", self._read_sort_term, model),
            limit=config.get("limit", MAX_ROWS if answer == GROUPS else USUAL_ROWS),
            count=config.get("count", False),
            totals=self._read_parts(rows, TOTALS, self._read_measure, model),
            group_by=group_by,
            measures=measures,
            group_order=self._read_parts(groups, "order", self._read_group_term, model)
            or usual_group_order(
                {each.name: each.path.field.kind for each in group_by},
                {measure.name: measure.aggregate for measure in measures},
            ),
        )
        if not self.problems:
            self._check_names(query)
            self._check_databases(query)
        return query

    def _read_parts(
        self,
        config: JsonObject,
        name: str,
        read: Callable[[Any, OpenModel], Part],
        model: OpenModel,
    ) -> tuple[Part, ...]:
        parts: list[Part] = []
        for at, item in enumerate(config.get(name, ())):
            problems_before = len(self.problems)
            try:
                parts.append(read(item, model))
            except KindError as error:
                self.problems.append(error)
            for problem in self.problems[problems_before:]:
                place = problem.place if isinstance(item, dict) else ""
                problem.place = f"{name}.{at}.{place}".rstrip(".")
        return tuple(parts)

    def _visible_path(self, text: str, model: OpenModel) -> Path:
        path = resolve_path(text, model, self._opened, "fields")
        if path.field.kind is FieldKind.TO_MANY:
            raise KindError(
                f"“{path.text}” leads to many rows. Show them as a list instead.",
                place="path",
            )
        return path

    def _read_filters(self, config: JsonObject, model: OpenModel) -> tuple[Filter, ...]:
        parts = self._read_parts(config, "filters", self._read_filter, model)
        return tuple(chain.from_iterable(parts))

    def _read_filter(self, config: JsonObject, model: OpenModel) -> tuple[Filter, ...]:
        """Return one filter; for a range, one for each end that it has."""
        texts = config["path"] if isinstance(config["path"], list) else [config["path"]]
        opened = self._opened
        paths = tuple(resolve_path(text, model, opened, "filters") for text in texts)
        lookup, exclude = config["lookup"], config.get("exclude", False)
        for path in paths:
            _check_lookup(path, lookup, several=len(paths) > 1)
        if paths[0].stand_in == TEXT:
            lookup = IN_ANY_CASE.get(lookup, lookup)
        make = partial(Filter, paths=paths, exclude=exclude)
        if lookup != RANGE:
            return (self._filter_with_value(config, partial(make, lookup=lookup)),)
        if exclude:
            raise KindError("A range cannot be excluded.", place="exclude")
        return self._read_range(config, make)

    def _read_range(
        self, config: JsonObject, make: Callable[..., Filter]
    ) -> tuple[Filter, ...]:
        halves = {end: dict(config) for end in ENDS}
        for name in ("value", "default"):
            if config.get(name) is not None:
                _fitting_value(make(lookup=RANGE), config[name], name)
                for half, value in zip(halves.values(), config[name], strict=True):
                    half[name] = value
        if "parameter" in config:
            for end, half in halves.items():
                half["parameter"] = f"{config['parameter']}_{end}"
        elif config.get("value") is not None:
            halves = {
                e: half for e, half in halves.items() if half["value"] is not None
            }
        if not halves:
            raise KindError("A range needs a beginning or an end.", place="value")
        return tuple(
            self._filter_with_value(half, partial(make, lookup=end))
            for end, half in halves.items()
        )

    def _filter_with_value(
        self, config: JsonObject, make: Callable[..., Filter]
    ) -> Filter:
        if "parameter" in config:
            return self._parameter_filter(config, make)
        if "value" not in config:
            text = make().paths[0].text
            raise KindError(
                f"The filter of “{text}” has neither a value nor a parameter.",
                place="value",
            )
        return make(value=_fitting_value(make(), config["value"], "value"))

    def _parameter_filter(
        self, config: JsonObject, make: Callable[..., Filter]
    ) -> Filter:
        name = config["parameter"]
        if name == CURSOR or name in self._parameters:
            why = "used twice" if name != CURSOR else "the name of our own parameter"
            message = f"The parameter “{name}” is {why}. Choose another name."
            raise KindError(message, place="parameter")
        if "value" in config:
            message = f"The parameter “{name}” has a fixed value, too."
            raise KindError(message, place="value")
        self._parameters.add(name)
        query_filter = make(
            parameter=name,
            description=config.get("description", ""),
            required=config.get("required", False),
            default=config.get("default"),
        )
        if query_filter.default is not None:
            _fitting_value(query_filter, query_filter.default, "default")
        return query_filter

    def _read_sort_term(self, text: str, model: OpenModel) -> Term:
        path = self._visible_path(text.removeprefix("-"), model)
        if not is_sortable(path.field):
            raise KindError(
                f"Rows cannot be sorted by “{path.text}”: its values may be longer than"
                f" {MAX_SORTED_LENGTH} characters, or have no order."
            )
        return Term(path, text.startswith("-"))

    def _read_related_list(self, config: JsonObject, model: OpenModel) -> RelatedList:
        path = resolve_path(config["path"], model, self._opened, "fields")
        if path.hops or path.field.kind is not FieldKind.TO_MANY:
            message = f"“{path.text}” is no relation of {model.label} to many."
            raise KindError(message, place="path")
        listed = target_model(path.field, self._opened)
        return RelatedList(
            field=path.field,
            model=listed,
            fields=self._read_parts(config, "fields", self._visible_path, listed),
            filters=self._read_filters(config, listed),
            order=self._read_parts(config, "order", self._read_sort_term, listed),
            limit=config.get("limit", USUAL_LISTED),
        )

    def _read_group(self, config: str | JsonObject, model: OpenModel) -> Group:
        plain = {"path": config, "unit": ""} if isinstance(config, str) else config
        path, unit = self._visible_path(plain["path"], model), plain["unit"]
        kind = path.field.kind
        if kind is FieldKind.OTHER:
            raise KindError(f"Rows cannot be grouped by “{path.text}”.", place="path")
        if unit and kind not in DATES:
            message = f"“{path.text}” is no date, so it has no {unit}."
            raise KindError(message, place="unit")
        if unit and kind is FieldKind.DATETIME:
            _check_zones(path)
        return Group(path, unit)

    def _read_measure(self, config: JsonObject, model: OpenModel) -> Measure:
        aggregate, text = config["aggregate"], config.get("path")
        if aggregate == "count":
            if text is not None:
                raise KindError("A count counts rows, and takes no path.", place="path")
            return Measure(aggregate, None, config["name"])
        if text is None:
            message = f"Choose of which field the {aggregate} is."
            raise KindError(message, place="path")
        path = resolve_path(text, model, self._opened, "fields")
        if (kind := path.field.kind) not in MEASURES[aggregate]:
            message = f"“{path.text}” is a {kind.value}, which has no {aggregate}."
            raise KindError(message, place="aggregate")
        return Measure(aggregate, path, config["name"])

    def _read_group_term(self, text: str, _model: OpenModel) -> GroupTerm:
        name = text.removeprefix("-")
        if name not in self._group_names:
            names = ", ".join(self._group_names)
            raise KindError(f"Groups cannot be sorted by “{name}”. There is: {names}.")
        return GroupTerm(name, text.startswith("-"))

    def _check_names(self, query: Query) -> None:
        named = [
            (each.name, f"group_by.{at}") for at, each in enumerate(query.group_by)
        ]
        for at, measure in enumerate(query.measures):
            named.append((measure.name, f"measures.{at}.name"))
        named += _member_names(query.fields, "fields")
        names = enumerate(total.name for total in query.totals)
        self._refuse_twice([(name, f"{TOTALS}.{at}.name") for at, name in names])
        for at, listed in enumerate(query.lists):
            named.append((listed.field.name, f"lists.{at}.path"))
            # A field that is in a list twice is allowed, as it always was.
            fields = [*{field.text: field for field in listed.fields}.values()]
            self._refuse_twice(_member_names(fields, f"lists.{at}.fields"))
        self._refuse_twice(named)

    def _refuse_twice(self, named: Sequence[tuple[str, str]]) -> None:
        """Add a problem for each name that is used in two places."""
        names = [name for name, _place in named]
        for name in sorted({each for each in names if names.count(each) > 1}):
            place = dict(named)[name]
            self.problems.append(KindError(f"“{name}” is there twice.", place=place))

    def _check_databases(self, query: Query) -> None:
        read_from = {
            router.db_for_read(each.model): label
            for label, each in query.models.items()
        }
        if len(read_from) > 1:
            where = ", ".join(f"{label} on “{db}”" for db, label in read_from.items())
            self.problems.append(
                KindError(f"One query reads one database, but this has {where}.")
            )


def _member_names(paths: Sequence[Path], place: str) -> list[tuple[str, str]]:
    """Return the paths of members in a row, and the place of each in the config.

    If a relation has other members, its text is a member of the relation.
    """
    texts = [path.text for path in paths]
    named = []
    for at, path in enumerate(paths):
        is_within = any(text.startswith(f"{path.text}.") for text in texts)
        is_within = is_within and path.stand_in == TEXT
        name = f"{path.text}.{TEXT}" if is_within else path.text
        named.append((name, f"{place}.{at}"))
    return named


def _check_lookup(path: Path, lookup: str, *, several: bool) -> None:
    lookups = comparisons_of(path.end_field)
    if path.stand_in == TEXT:
        lookups += SEVERAL
    if several:
        lookups = SEVERAL if path.field.kind is FieldKind.TEXT else ()
    if path.leads_to_many:
        # Two different related rows might each fit one end of a range.
        lookups = tuple(each for each in lookups if each != RANGE)
    if lookup not in lookups:
        what = "several texts" if several else f"a {path.end_field.kind.value}"
        raise KindError(
            f"“{path.text}” cannot be asked by “{lookup}”. For {what} there is:"
            f" {', '.join(lookups) or 'nothing'}.",
            place="lookup",
        )


def _fitting_value(query_filter: Filter, value: object, what: str) -> Any:
    prefix = f"The {what} of “{query_filter.paths[0].text}” does not fit"
    values = value if query_filter.lookup in ("in", "iin") else [value]
    if isinstance(values, list) and None in values:
        message = f"{prefix}: null is no value. For rows without one use “{EMPTY}”."
        raise KindError(message, place=what)
    validator = schemas.compile_schema(query_filter.value_schema())
    for violation in validator.violations(value):
        raise KindError(f"{prefix}: {violation.message}", place=what)
    try:
        fitting = query_filter.value_for_column(value)
    except Unfit as error:
        raise KindError(f"{prefix}: {error}", place=what) from None
    is_range = query_filter.lookup == RANGE and None not in fitting
    if is_range and is_reversed(query_filter.field, *fitting):
        raise KindError(f"{prefix}: its beginning is after its end.", place=what)
    return fitting


def is_sortable(field: OpenField) -> bool:
    """Return whether rows can be sorted by a field."""
    if field.kind in (FieldKind.OTHER, FieldKind.TO_MANY):
        return False
    longest = getattr(field.value_column, "max_length", None)
    is_text = field.value_column.get_internal_type() in _TEXTS
    return not is_text or (longest is not None and longest <= MAX_SORTED_LENGTH)


_TEXTS: Final = frozenset({"CharField", "TextField", "FileField", "SlugField"})


def _check_zones(path: Path) -> None:
    """Raise if the database lacks the site's zone, so that days would be null."""
    connection = connections[router.db_for_read(path.owner.model)]
    if connection.vendor != "mysql" or not settings.USE_TZ:
        return
    features: Any = connection.features
    zone = timezone.get_default_timezone_name()
    if zone != "UTC" and not features.has_zoneinfo_database:
        raise KindError(
            f"“{path.text}” cannot be grouped by date here: the database does not know"
            f" the zone {zone}. An operator loads zones with mysql_tzinfo_to_sql."
        )
