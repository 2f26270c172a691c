"""Tools of a model that code opens: its rows as a list, one of them, and their count.

Each answers as a look-up does that staff make (`mcp_app.kinds.query`), so that no row
leaves its scope, whatever is joined, searched or sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

from django.db import DatabaseError
from django.db.models import Model
from django.utils.text import camel_case_to_spaces

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.registered_function import Declaration, DeclaredTool, ReadyTool
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.errors import RegistrationError, ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.config import (
    CURSOR,
    DATES,
    GROUPS,
    NUMBERS,
    ONE,
    ROWS,
    USUAL_LISTED,
    Query,
    Term,
    input_schema,
    output_schema,
)
from mcp_app.kinds.query.kind import HINTS, UNTRUSTED, Lookup, lookup_runnable
from mcp_app.kinds.query.reading import is_sortable, read_query_config
from mcp_app.kinds.query.scoping import resolve_path
from mcp_app.protocol.json_types import JsonObject

LIST: Final = "list"
GET: Final = "get"
COUNT: Final = "count"
KEY: Final = "key"
SEARCH: Final = "search"
SORT: Final = "sort"
BY: Final = "by"
_OURS: Final = (SEARCH, SORT, BY, CURSOR)

_SORTED: Final = (
    NUMBERS | DATES | {FieldKind.TIME, FieldKind.TEXT, FieldKind.CHOICE, FieldKind.KEY}
)
_GROUPED: Final = frozenset({FieldKind.CHOICE, FieldKind.YES_NO, FieldKind.TO_ONE})
_LOOKUPS: Final[Mapping[FieldKind, str]] = {
    **dict.fromkeys(NUMBERS | DATES | {FieldKind.TIME}, "range"),
    FieldKind.TEXT: "icontains",
}
"""What fields are asked by; all others by `exact`."""


def declare_tools(toolset: Toolset, registry: Registry) -> Iterator[DeclaredTool]:
    """Yield the tools of a model; raise where it is not opened, or a field is not."""
    model = toolset.subject
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise RegistrationError("It must be a Django model, such as Order.")
    label = model._meta.label
    if label not in registry.open_models:
        raise RegistrationError(
            f"No code opens {label}. Write mcp.open_model({model.__name__}, fields=[…],"
            " rows=…), too."
        )
    opened = {name: _open_key(each) for name, each in registry.open_models.items()}
    maker = _Maker(toolset, opened[label], opened)
    makers = {LIST: maker.list_tool, GET: maker.get_tool, COUNT: maker.count_tool}
    for name in toolset.wanted_tools([*makers]):
        yield makers[name](f"{maker.prefix}_{name}")


def _open_key(model: OpenModel) -> OpenModel:
    """Return a model whose key may be shown and asked by, which staff need not see."""
    key = model.model._meta.pk
    assert key is not None  # noqa: S101 - `open_model` takes no others
    own = {key.attname: OpenField(key.attname, FieldKind.KEY, key)}
    fields, filters = {**own, **model.fields}, {**own, **model.filters}
    return replace(model, fields=fields, filters=filters)


@dataclass(frozen=True)
class _Variants:
    """A query in several forms, of which an argument chooses one.

    `parameter` names that argument; without it the form is the one of `None`.
    """

    name: str
    queries: Mapping[str | None, Query]
    config: JsonObject
    parameter: str = ""

    def runnable(self, answer: Callable[..., ToolOutput]) -> Runnable[ToolOutput]:
        return lookup_runnable(answer, self._bind_arguments, content_output)

    def _bind_arguments(self, arguments: JsonObject) -> dict[str, object]:
        query = self.queries[arguments.get(self.parameter)]
        lookup = Lookup(self.name, query, self.config)
        return {"lookup": lookup, **lookup.bind_arguments(arguments)}

    def input_schema(self, description: str) -> JsonObject:
        schema = input_schema(self.queries[None])
        if names := [name for name in self.queries if name is not None]:
            choice = {"type": "string", "enum": names, "description": description}
            schema["properties"] = {**schema["properties"], self.parameter: choice}
        return schema


@dataclass(frozen=True)
class _Maker:
    toolset: Toolset
    model: OpenModel
    opened: OpenModels

    @property
    def prefix(self) -> str:
        """What the names of the tools begin with: "order_line"."""
        usual = camel_case_to_spaces(self.model.model.__name__).replace(" ", "_")
        return str(self.toolset.options.get("name") or usual)

    @property
    def _row(self) -> str:
        return str(self.model.model._meta.verbose_name)

    @property
    def _rows(self) -> str:
        return str(self.model.model._meta.verbose_name_plural)

    @property
    def _key(self) -> str:
        return str(self.model.model._meta.pk.attname)

    # -- what is shown and asked by ----------------------------------------------------

    @cached_property
    def _names(self) -> Sequence[str]:
        """What is shown: names of fields, or paths over relations."""
        names = self.toolset.options.get("fields", _free_names(self.model.fields))
        return [*dict.fromkeys([self._key, *names])]

    @cached_property
    def _fields(self) -> Mapping[str, OpenField]:
        """The fields of the model itself among them."""
        fields = self.model.fields
        return {name: fields[name] for name in self._names if name in fields}

    def _paths(self, model: OpenModel, names: Iterable[str]) -> Iterator[str]:
        """Yield what of a row is shown: of a relation to one its text, and its key."""
        for name in names:
            field = model.fields.get(name)
            if field is None or field.kind is not FieldKind.TO_MANY:
                yield name
            if field is not None and field.kind is FieldKind.TO_ONE:
                target = self.opened.get(field.target_model._meta.label)
                if target is not None and target.text in target.fields:
                    yield _key_path(name, field)

    def _list_config(self, name: str) -> JsonObject:
        """Return the config of a list below a row, without the way back to it."""
        relation = self.model.fields[name]
        target = self.opened.get(relation.target_model._meta.label)
        paths: list[str] = []
        if target is not None:
            back = getattr(relation.source, "field", None)
            names = _free_names(target.fields)
            names = [each for each in names if target.fields[each].source is not back]
            paths = [*self._paths(target, names)]
        return {"path": name, "fields": paths, "limit": USUAL_LISTED}

    @cached_property
    def _filters(self) -> list[JsonObject]:
        filters = self.model.filters
        usual = [
            name
            for name in _free_names(filters)
            if name != self._key and filters[name].kind is not FieldKind.TEXT
        ]
        names = self.toolset.options.get("filters", usual)
        return [*self._search_filter(), *map(self._filter_config, names)]

    def _search_filter(self) -> Iterator[JsonObject]:
        text = self.model.filters.get(self.model.text)
        usual = [] if text is None or text.permission else [text.name]
        paths = self.toolset.options.get("search", usual)
        if paths:
            words = " or ".join(each.replace(".", " ") for each in paths)
            yield {
                "path": [*paths],
                "lookup": "icontains",
                "parameter": SEARCH,
                "description": f"A part of {words}.",
            }

    def _filter_config(self, name: str) -> JsonObject:
        path = resolve_path(name, self.model, self.opened, "filters")
        kind, label = path.end_field.kind, _field_label(path.end_field)
        lookup = _LOOKUPS.get(kind, "exact")
        config = {"path": name, "lookup": lookup, "parameter": path.name}
        if kind is FieldKind.TO_ONE and not name.endswith(".pk"):
            parameter = f"{path.name}_{KEY}"
            config |= {"path": _key_path(name, path.end_field), "parameter": parameter}
            label = f"The key of the {label}"
        if lookup != "range" and config["parameter"] in _OURS:
            raise RegistrationError(
                f"{name!r} is the name of a parameter of ours, so no filter can have"
                " it. Leave it out, as in filters=[…]."
            )
        ends = ", both ends included" if lookup == "range" else ""
        return {**config, "description": f"{label[:1].upper()}{label[1:]}{ends}."}

    def _read(self, **config: Any) -> tuple[Query, JsonObject]:
        whole = {"model": self.model.label, **config}
        query, problems = read_query_config(whole, self.opened)
        if query is None:
            raise problems[0]
        return query, whole

    # -- tools -------------------------------------------------------------------------

    def list_tool(self, name: str) -> DeclaredTool:
        """Return the tool that lists rows, and searches, filters and sorts them."""
        paths = [*self._paths(self.model, self._names)]
        sortable = [
            each
            for each, field in self._fields.items()
            if field.kind in _SORTED and is_sortable(field)
        ]
        query, config = self._read(
            fields=paths, filters=self._filters, order=sortable, count=True
        )
        terms = {term.path.text: term for term in query.order}
        terms |= {f"-{n}": replace(t, descending=True) for n, t in terms.items()}
        usual, words = self._usual_order(terms)
        queries: dict[str | None, Query] = {None: replace(query, order=usual)}
        queries |= {n: replace(query, order=(term,)) for n, term in terms.items()}
        variants = _Variants(name, queries, config, SORT)
        description = (
            f"{self._rows[:1].upper()}{self._rows[1:]} as rows of {', '.join(paths)};"
            f" {query.limit} at once. For more, call again with the same arguments and"
            " cursor = next."
        )
        return self._declare(
            variants,
            _answer_rows,
            title=f"List {self._rows}",
            description=description,
            input_schema=variants.input_schema(
                f"What rows are sorted by; - is descending. By default {words}."
            ),
            output_schema=output_schema(query),
        )

    def _usual_order(self, terms: Mapping[str, Term]) -> tuple[tuple[Term, ...], str]:
        """Return the order of the model if its fields are shown, else the newest."""
        ordering = [
            str(each).replace("pk", self._key) if each in ("pk", "-pk") else str(each)
            for each in self.model.model._meta.ordering or ()
        ]
        if not (ordering and terms.keys() >= {*ordering}):
            ordering = [f"-{self._key}"]
        return tuple(terms[each] for each in ordering), ", ".join(ordering)

    def get_tool(self, name: str) -> DeclaredTool:
        """Return the tool that shows one row, with lists of what belongs to it."""
        fields = self._fields.items()
        many = [each for each, field in fields if field.kind is FieldKind.TO_MANY]
        by_key = {
            "path": self._key,
            "lookup": "exact",
            "parameter": KEY,
            "required": True,
            "description": f"The key of the {self._row}.",
        }
        query, config = self._read(
            answer=ONE,
            filters=[by_key],
            fields=[*self._paths(self.model, self._names)],
            lists=[self._list_config(each) for each in many],
        )
        lists = f", with the first {USUAL_LISTED} of its {', '.join(many)}"
        variants = _Variants(name, {None: query}, config)
        return self._declare(
            variants,
            partial(_answer_row, self._row),
            title=f"Get one {self._row}",
            description=f"One {self._row} by its key{lists if many else ''}.",
            input_schema=variants.input_schema(""),
            output_schema=output_schema(query)["properties"][ROWS]["items"],
        )

    def count_tool(self, name: str) -> DeclaredTool:
        """Return the tool that counts rows, also by choices, relations and months."""
        measures = [{"aggregate": "count", "name": COUNT}]
        ways: dict[str | None, list[object]] = {None: [], **dict(self._groupings())}
        queries: dict[str | None, Query] = {}
        for by, groups in ways.items():
            try:
                queries[by], config = self._read(
                    answer=GROUPS,
                    filters=self._filters,
                    group_by=groups,
                    measures=measures,
                )
            except (KindError, DatabaseError):
                # MariaDB may know no zones, without which it tells no months.
                if by is None or by in self._fields:
                    raise
        variants = _Variants(name, queries, config, BY)
        schema = output_schema(queries[None])
        line = schema["properties"][GROUPS]["items"]
        for query in queries.values():
            inner = output_schema(query)["properties"][GROUPS]["items"]
            line["properties"] = inner["properties"] | line["properties"]
        whole = {COUNT: line["properties"][COUNT], **schema["properties"]}
        return self._declare(
            variants,
            _answer_count,
            title=f"Count {self._rows}",
            description=f"How many {self._rows} there are, or how many of each group.",
            input_schema=variants.input_schema("What groups are by."),
            output_schema={"type": "object", "properties": whole},
        )

    def _groupings(self) -> Iterator[tuple[str, list[object]]]:
        for name, field in self._fields.items():
            if field.kind in DATES:
                yield f"{name}_month", [{"path": name, "unit": "month"}]
            elif name == COUNT:
                continue  # The number of each group has this name.
            elif field.kind in _GROUPED and not field.source.one_to_one:
                yield name, [*self._paths(self.model, [name])]

    def _declare(
        self, variants: _Variants, answer: Callable[..., ToolOutput], **texts: Any
    ) -> DeclaredTool:
        toolset, demands = self.toolset, self.toolset.demands
        for query in variants.queries.values():
            demands = demands.combined_with(query.demands)
        definition = ToolDefinition(
            name=variants.name, hints=HINTS, demands=demands, tags=toolset.tags, **texts
        )
        run = variants.runnable(answer)
        ready = ReadyTool(toolset.call, toolset.origin.place, run)
        return Declaration(definition, ready)


def _free_names(fields: Mapping[str, OpenField]) -> list[str]:
    """Return the fields without a permission of their own.

    One of the others would hide the whole tool from who lacks it.
    """
    return [name for name, each in fields.items() if not each.permission]


def _key_path(name: str, relation: OpenField) -> str:
    """Return the path of the key by which tools get what a relation leads to."""
    key: str = relation.target_model._meta.pk.attname
    return f"{name}.pk" if relation.key_column == key else f"{name}.{key}"


def _field_label(field: OpenField) -> str:
    return str(getattr(field.source, "verbose_name", field.name))


# -- answers ---------------------------------------------------------------------------


def _answer_rows(*, ctx: SyncContext, lookup: Lookup, **bound: Any) -> ToolOutput:
    return lookup.answer_call(ctx=ctx, **bound)


def _answer_count(*, ctx: SyncContext, lookup: Lookup, **bound: Any) -> ToolOutput:
    output = lookup.answer_call(ctx=ctx, **bound)
    if lookup.query.group_by or output.structured is None:
        return output
    groups: Any = output.structured[GROUPS]
    return replace(output, structured=groups[0])


def _answer_row(
    noun: str, *, ctx: SyncContext, lookup: Lookup, **bound: Any
) -> ToolOutput:
    row = lookup.read_single_row(ctx=ctx, **bound)
    if row is None:
        key = bound["arguments"][KEY]
        raise ToolError(f"There is no {noun} with the key {key!r}.")
    return ToolOutput((), structured=row, meta=UNTRUSTED)
