"""What a query says: paths, filters and answers, all of them opened by code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_app.catalog.open_models import OpenField, OpenModel
from mcp_app.interface.access_requirements import AccessRequirements
from mcp_app.kinds.query.comparisons import clean, value_schema
from mcp_app.kinds.query.paths import Path
from mcp_app.protocol.json_types import JsonObject


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A condition; clients give the value if it has a `parameter`.

    With several `paths` one of them has to fit.  `related` is what a path that ends at
    a relation leads to.
    """

    paths: tuple[Path, ...]
    related: OpenModel | None
    comparison: str
    parameter: str = ""
    description: str = ""
    required: bool = False
    default: object = None
    value: object = None

    @property
    def field(self) -> OpenField:
        return self.paths[0].field

    @property
    def models(self) -> Iterator[OpenModel]:
        for path in self.paths:
            yield from path.models
        if self.related is not None:
            yield self.related

    @property
    def permissions(self) -> Iterator[str]:
        for path in self.paths:
            yield from path.permissions
        if self.related is not None:
            yield self.related.permission

    def value_schema(self) -> JsonObject:
        return value_schema(self.field, self.comparison)

    def cleaned(self, value: object) -> Any:
        """Return a value as the column has it; raise `Unfit` if it cannot."""
        return clean(self.field, self.comparison, value)


@dataclass(frozen=True)
class Term:
    """What rows are sorted by."""

    path: Path
    descending: bool


@dataclass(frozen=True)
class RelatedList:
    """The rows that a relation to many leads to, below each row."""

    field: OpenField
    model: OpenModel
    fields: tuple[Path, ...]
    filters: tuple[Filter, ...]
    order: tuple[Term, ...]
    most: int


@dataclass(frozen=True)
class Group:
    """What lines of groups are by; `each` is the unit of a date, or ""."""

    path: Path
    each: str

    @property
    def name(self) -> str:
        return f"{self.path.name}_{self.each}" if self.each else self.path.name


@dataclass(frozen=True)
class Measure:
    """What is counted or reckoned of each group."""

    do: str
    path: Path | None
    name: str


@dataclass(frozen=True, kw_only=True)
class Query:
    """A config that was read: all of it is opened by code."""

    model: OpenModel
    filters: tuple[Filter, ...]
    answer: str
    fields: tuple[Path, ...]
    lists: tuple[RelatedList, ...]
    order: tuple[Term, ...]
    most: int
    count: bool
    by: tuple[Group, ...]
    measures: tuple[Measure, ...]

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
    def _paths(self) -> Iterator[Path]:
        yield from self.fields
        yield from (term.path for term in self.order)
        yield from (group.path for group in self.by)
        yield from (each.path for each in self.measures if each.path is not None)
        for each in self.lists:
            yield from each.fields
            yield from (term.path for term in each.order)

    @property
    def models(self) -> Mapping[str, OpenModel]:
        """Every open model that is named anywhere, by its label."""
        named = [self.model, *(each.model for each in self.lists)]
        for path in self._paths:
            named += path.models
        for each in self._all_filters:
            named += each.models
        return {each.label: each for each in named}

    @property
    def per_caller(self) -> bool:
        """Whether the answer depends on who asks."""
        return any(each.per_caller for each in self.models.values())

    @property
    def demands(self) -> AccessRequirements:
        """The permissions of all models and fields that are named anywhere."""
        named = [each.permission for each in self.models.values()]
        for path in self._paths:
            named += path.permissions
        for each in self._all_filters:
            named += each.permissions
        named += [each.field.permission for each in self.lists]
        return AccessRequirements(permissions=tuple(sorted({*named} - {""})))
