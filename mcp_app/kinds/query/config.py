"""The parts of a query: paths, filters and answers, all of them opened by code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.utils.text import capfirst

from mcp_app.catalog.json_schemas import choice_titles
from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel
from mcp_app.interface.rules import AccessRequirements
from mcp_app.kinds.kind import object_schema
from mcp_app.kinds.query.comparisons import (
    COMPARISONS,
    DATES,
    EMPTY,
    NUMBERS,
    clean_value,
    value_schema,
)
from mcp_app.kinds.query.labels import label_of_paths, search_label
from mcp_app.kinds.query.scoping import Path
from mcp_app.kinds.query.shapes import LARGEST, field_schema, row_schema
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.portable_schemas import portable_schema


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A condition; clients give the value if it has a `parameter`.

    With several `paths` one of them must fit; with `exclude` none may.  `lookup` is
    that of the config, with two exceptions: each half of a range has one of the `ENDS`,
    and lookups in the text of a relation ignore case.
    """

    paths: tuple[Path, ...]
    lookup: str
    exclude: bool = False
    parameter: str = ""
    description: str = ""
    required: bool = False
    default: object = None
    value: object = None

    @property
    def field(self) -> OpenField:
        return self.paths[0].field

    def value_schema(self) -> JsonObject:
        return value_schema(self.field, self.lookup)

    def value_for_column(self, value: object) -> Any:
        """Convert a value into the type of the column; raise `Unfit` if impossible."""
        return clean_value(self.field, self.lookup, value)


@dataclass(frozen=True)
class Term:
    """A path that rows are sorted by, and the direction."""

    path: Path
    descending: bool


class GroupTerm(NamedTuple):
    """A name of a group or measure that groups are sorted by, and the direction."""

    name: str
    descending: bool


@dataclass(frozen=True)
class RelatedList:
    """The rows that a relation to many leads to, below each row."""

    field: OpenField
    model: OpenModel
    fields: tuple[Path, ...]
    filters: tuple[Filter, ...]
    order: tuple[Term, ...]
    limit: int


@dataclass(frozen=True)
class Group:
    """A column by which rows are grouped; `unit` groups dates, by month for example."""

    path: Path
    unit: str

    @property
    def name(self) -> str:
        return f"{self.path.name}_{self.unit}" if self.unit else self.path.name


@dataclass(frozen=True)
class Measure:
    """A value that is computed for each group, such as a sum."""

    aggregate: str
    path: Path | None
    name: str


@dataclass(frozen=True, kw_only=True)
class Query:
    """A config after it was read: all its models and fields are opened by code."""

    model: OpenModel
    filters: tuple[Filter, ...]
    answer: str
    fields: tuple[Path, ...]
    lists: tuple[RelatedList, ...]
    order: tuple[Term, ...]
    limit: int
    count: bool
    totals: tuple[Measure, ...]
    group_by: tuple[Group, ...]
    measures: tuple[Measure, ...]
    group_order: tuple[GroupTerm, ...]

    @property
    def parameters(self) -> Mapping[str, Filter]:
        """The filters whose values clients give, by the names of the parameters."""
        return {each.parameter: each for each in self._all_filters if each.parameter}

    @property
    def _all_filters(self) -> Iterator[Filter]:
        yield from self.filters
        for each in self.lists:
            yield from each.filters

    @property
    def _all_paths(self) -> Iterator[Path]:
        yield from self.fields
        yield from (term.path for term in self.order)
        yield from (group.path for group in self.group_by)
        measures = (*self.measures, *self.totals)
        yield from (measure.path for measure in measures if measure.path is not None)
        for each in self.lists:
            yield from each.fields
            yield from (term.path for term in each.order)
        for query_filter in self._all_filters:
            yield from query_filter.paths

    @property
    def models(self) -> Mapping[str, OpenModel]:
        """All open models that the query uses, by their labels."""
        open_models = [self.model, *(each.model for each in self.lists)]
        for path in self._all_paths:
            open_models += path.models
        return {model.label: model for model in open_models}

    @property
    def per_caller(self) -> bool:
        """Whether the answer depends on the caller."""
        return any(model.per_caller for model in self.models.values())

    @property
    def demands(self) -> AccessRequirements:
        """The permissions of all models and fields that the query uses."""
        permissions = [model.permission for model in self.models.values()]
        for path in self._all_paths:
            permissions += path.permissions
        permissions += [each.field.permission for each in self.lists]
        return AccessRequirements(permissions=tuple(sorted({*permissions} - {""})))


# -- schema ----------------------------------------------------------------------------
# The shape of a query's config, which a row holds.
#
#     {"model": "shop.Order",
#      "filters": [{"path": "state", "lookup": "in", "parameter": "states"},
#                  {"path": "created", "lookup": "last_days", "parameter": "days",
#                   "default": 7},
#                  {"path": "test", "lookup": "exact", "value": false}],
#      "answer": "rows", "fields": ["number", "total", "customer.name"],
#      "lists": [{"path": "items", "fields": ["sku", "amount"], "filters": [],
#                 "order": ["sku"], "limit": 20}],
#      "order": ["-created"], "limit": 50, "count": true,
#      "totals": [{"aggregate": "sum", "path": "total", "name": "turnover"}]}
#
# With `"answer": "groups"` there are `group_by` and `measures`, and `order` has their
# names.  `"answer": "one"` is for templates.

MAX_ROWS: Final = 200
USUAL_ROWS: Final = 50
MAX_LISTED_ROWS: Final = 50
USUAL_LISTED: Final = 20
MAX_SORT_TERMS: Final = 3
MAX_GROUPINGS: Final = 3
MAX_SORTED_LENGTH: Final = 255
CURSOR: Final = "cursor"
ROWS, GROUPS, ONE = "rows", "groups", "one"
TOTALS: Final = "totals"
"""The member with measures of all rows that fit, beside the rows of a page."""

MEASURES: Final[Mapping[str, frozenset[FieldKind]]] = {
    "count": frozenset(),
    "sum": NUMBERS,
    "avg": NUMBERS,
    "min": NUMBERS | DATES | {FieldKind.TIME},
    "max": NUMBERS | DATES | {FieldKind.TIME},
}
"""The kinds of fields that each measure takes."""
UNITS: Final = ("day", "week", "month", "quarter", "year")


def usual_group_order(
    kinds: Mapping[str, FieldKind | None], aggregates: Mapping[str, str]
) -> tuple[GroupTerm, ...]:
    """Return the default order of groups, by names of groups and measures.

    It is by dates, else by the first sum or the first measure, the largest first.
    """
    dated = [name for name, kind in kinds.items() if kind in DATES]
    if dated:
        return tuple(GroupTerm(name, False) for name in dated)
    # A stable sort: if there is no sum, the first measure stays the first.
    largest = sorted(aggregates, key=lambda name: aggregates[name] != "sum")[:1]
    return tuple(GroupTerm(name, True) for name in largest)


MAX_MEASURES: Final = 5
MAX_PATHS: Final = 5
"""How many texts one filter may search."""

MAX_NAME_LENGTH: Final = 40
NAME_PATTERN: Final = "^[A-Za-z][A-Za-z0-9_]*$"
_NAME: Final[JsonObject] = {
    "type": "string",
    "pattern": NAME_PATTERN,
    "maxLength": MAX_NAME_LENGTH,
}
_PATH: Final[JsonObject] = {"type": "string", "maxLength": 200}


def _array_schema(items: JsonObject, max_items: int) -> JsonObject:
    return {"type": "array", "items": items, "maxItems": max_items}


_FILTERS: Final[JsonObject] = _array_schema(
    object_schema(
        "path",
        "lookup",
        path={"anyOf": [_PATH, {**_array_schema(_PATH, MAX_PATHS), "minItems": 1}]},
        lookup={"enum": [*dict.fromkeys(sum(COMPARISONS.values(), ())), EMPTY]},
        exclude={"type": "boolean"},
        parameter=_NAME,
        description={"type": "string", "maxLength": 1000},
        required={"type": "boolean"},
        default={},
        value={},
    ),
    20,
)
_FIELDS: Final[JsonObject] = _array_schema(_PATH, 50)
_ORDER: Final[JsonObject] = _array_schema(_PATH, MAX_SORT_TERMS)
_UNIT: Final = object_schema("path", "unit", path=_PATH, unit={"enum": [*UNITS]})

_MEASURES: Final[JsonObject] = _array_schema(
    object_schema(
        "aggregate", "name", aggregate={"enum": list(MEASURES)}, path=_PATH, name=_NAME
    ),
    MAX_MEASURES,
)

SCHEMA: Final[JsonObject] = object_schema(
    model={"type": "string"},
    filters=_FILTERS,
    answer={"enum": [ROWS, GROUPS, ONE]},
    fields=_FIELDS,
    lists=_array_schema(
        object_schema(
            "path",
            "fields",
            path=_PATH,
            fields={**_FIELDS, "minItems": 1},
            filters=_FILTERS,
            order=_ORDER,
            limit={"type": "integer", "minimum": 1, "maximum": MAX_LISTED_ROWS},
        ),
        3,
    ),
    order=_ORDER,
    limit={"type": "integer", "minimum": 1, "maximum": MAX_ROWS},
    count={"type": "boolean"},
    group_by=_array_schema({"anyOf": [_PATH, _UNIT]}, MAX_GROUPINGS),
    measures=_MEASURES,
    totals=_MEASURES,
)
"""The JSON Schema of a config."""


# -- description -----------------------------------------------------------------------
# The schemas of a query's arguments and of its answer, for clients.

CURSOR_SCHEMA: Final[JsonObject] = {
    "type": "string",
    "maxLength": LARGEST,
    "description": "For the next page: what the last answer has as “next”.",
}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_NOTE: JsonObject = {"type": "string"}


def input_schema(query: Query) -> JsonObject:
    """Return the JSON Schema of the arguments."""
    properties = {
        name: _parameter_schema(each) for name, each in query.parameters.items()
    }
    if query.answer == ROWS:
        properties[CURSOR] = dict(CURSOR_SCHEMA)
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    required = [name for name, each in query.parameters.items() if each.required]
    return portable_schema({**schema, "required": required} if required else schema)


def _parameter_schema(query_filter: Filter) -> JsonObject:
    schema = query_filter.value_schema()
    is_choice = query_filter.field.kind is FieldKind.CHOICE
    choices = query_filter.field.choices if is_choice else ()
    searched = search_label(query_filter.lookup, label_of_paths(query_filter.paths))
    text = query_filter.description or (searched and capfirst(f"{searched}."))
    texts = filter(None, (text, choice_titles(choices)))
    if description := " ".join(texts):
        schema["description"] = description
    if query_filter.default is not None:
        schema["default"] = query_filter.default
    return schema


def output_schema(query: Query) -> JsonObject:
    """Return the JSON Schema of the structured content."""
    if query.answer == GROUPS:
        properties = {
            each.name: {"type": ["string", "null"], "format": "date"}
            if each.unit
            else field_schema(each.path.field, nullable=each.path.nullable)
            for each in query.group_by
        }
        properties |= {each.name: _measure_schema(each) for each in query.measures}
        line = {"type": "object", "properties": properties}
        return _answer_schema(GROUPS, line, note=_NOTE)
    rows = row_schema(query.fields)
    for each in query.lists:
        below = _answer_schema(ROWS, row_schema(each.fields), total=_COUNT)
        rows["properties"][each.field.name] = below
    members: JsonObject = {"next": {"type": "string"}, "note": _NOTE}
    if query.totals:
        schemas = {total.name: _measure_schema(total) for total in query.totals}
        members[TOTALS] = {"type": "object", "properties": schemas}
    return _answer_schema(ROWS, rows, total=_COUNT, total_at_least=_COUNT, **members)


def _answer_schema(name: str, item: JsonObject, **members: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": item}, **members},
        "required": [name],
    }


def _measure_schema(measure: Measure) -> JsonObject:
    if measure.path is None:
        return dict(_COUNT)
    if measure.aggregate == "avg" and measure.path.field.kind is FieldKind.NUMBER:
        return {"type": ["number", "null"]}
    return field_schema(measure.path.field, nullable=True)
