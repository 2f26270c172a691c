"""Tools of a model that code opens: list its rows, get one of them, count them.

Each tool is a query, like those that staff make (`mcp_app.kinds.query`): whatever is
joined, searched or sorted, callers see only rows in their scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from django.db.models import Model
from django.utils.text import camel_case_to_spaces

from mcp_app.catalog.findings import Problems, record_problem
from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.registered_function import Declaration, DeclaredTool, ReadyFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.secret_fields import is_secret_name
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.errors import RegistrationError, ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.comparisons import DATES, EMPTY, NUMBERS, WORDS
from mcp_app.kinds.query.config import (
    CURSOR,
    GROUPS,
    ONE,
    ROWS,
    TOTALS,
    USUAL_LISTED,
    Query,
    input_schema,
    output_schema,
)
from mcp_app.kinds.query.kind import HINTS, UNTRUSTED, Lookup, lookup_runnable
from mcp_app.kinds.query.reading import is_sortable, read_query_config
from mcp_app.kinds.query.scoping import TEXT, resolve_path, target_model
from mcp_app.protocol.json_types import JsonObject

LIST, GET, COUNT = "list", "get", "count"
FIRST: Final = 5
"""How many rows of a relation to many the list tool shows with each row."""
KEY, SEARCH, SORT, BY = "key", "search", "sort", "by"
_OURS: Final = (SEARCH, SORT, BY, CURSOR, TOTALS)
"""Names of our own parameters, which no filter may have."""
_UNSORTED: Final = (FieldKind.YES_NO, FieldKind.TO_ONE)
_GROUPED: Final = frozenset({FieldKind.CHOICE, FieldKind.YES_NO, FieldKind.TO_ONE})
_SPANS: Final = frozenset({FieldKind.TIME, FieldKind.DURATION})
_LOOKUPS: Final[Mapping[FieldKind, str]] = {
    **dict.fromkeys(NUMBERS | DATES | _SPANS, "range"),
    FieldKind.TEXT: "icontains",
    FieldKind.TO_MANY: "in",
}
"""Lookups of fields; all others are asked by `exact`."""


# -- answers ---------------------------------------------------------------------------


def _answer(*, ctx: SyncContext, lookup: Lookup, **bound: Any) -> ToolOutput:
    output, query = lookup.answer_call(ctx=ctx, **bound), lookup.query
    if query.answer != GROUPS or query.group_by:
        return output
    # A count without groups is one line.
    lines: Any = (output.structured or {})[GROUPS]
    return replace(output, structured=lines[0])


def _answer_row(
    noun: str, *, ctx: SyncContext, lookup: Lookup, **bound: Any
) -> ToolOutput:
    row = lookup.read_single_row(ctx=ctx, **bound)
    if row is None:
        key = bound["arguments"][KEY]
        raise ToolError(f"There is no {noun} with the key {key!r}.")
    return ToolOutput((), structured=row, meta=UNTRUSTED)


# -- tools -----------------------------------------------------------------------------


def declare_tools(toolset: Toolset, registry: Registry) -> Iterator[DeclaredTool]:
    """Yield the tools of a model; raise if the model or a field is not opened."""
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
    maker = _Maker(toolset, opened[label], opened, registry.toolset_remarks)
    makers = {LIST: maker.list_tool, GET: maker.get_tool, COUNT: maker.count_tool}
    usual = camel_case_to_spaces(model.__name__).replace(" ", "_")
    for name in toolset.wanted_tools([*makers]):
        yield makers[name](f"{toolset.options.get('name') or usual}_{name}")


def _open_key(model: OpenModel) -> OpenModel:
    """Return the model with its key among the fields and filters, for tools alone."""
    key: Any = model.model._meta.pk
    key_field = {key.attname: OpenField(key.attname, FieldKind.KEY, key)}
    fields, filters = {**key_field, **model.fields}, {**key_field, **model.filters}
    return replace(model, fields=fields, filters=filters)


class _Maker:
    """Makes the tools of one model; `row` and `rows` are its singular and plural."""

    def __init__(
        self, toolset: Toolset, model: OpenModel, opened: OpenModels, remarks: Problems
    ) -> None:
        self.toolset, self.model, self.opened = toolset, model, opened
        self.remarks = remarks
        options: Any = model.model._meta
        self.key: str = options.pk.attname
        self.row = str(options.verbose_name)
        self.rows = str(options.verbose_name_plural)
        names = toolset.options.get("fields", _free_names(model.fields))
        self.names = [*dict.fromkeys([self.key, *names])]
        """The names of shown fields, or paths over relations."""
        self.fields = {n: model.fields[n] for n in self.names if n in model.fields}
        kinds = {name: field.kind for name, field in self.fields.items()}
        self.many = [n for n, kind in kinds.items() if kind is FieldKind.TO_MANY]

    # -- what is shown and asked by ----------------------------------------------------

    def _paths(self, model: OpenModel, names: Iterable[str]) -> Iterator[str]:
        """Yield the paths to show: of relations to one also the key, to many none."""
        for name in names:
            field = model.fields.get(name)
            if field is None or field.kind is not FieldKind.TO_MANY:
                yield name
            if field is not None and field.kind is FieldKind.TO_ONE:
                target = target_model(field, self.opened)
                if target.text in target.fields:
                    yield _key_path(name, field)

    def _leads_to_opened(self, field: OpenField) -> bool:
        """Whether the model of a relation to many is opened; True for other fields."""
        if field.kind is not FieldKind.TO_MANY:
            return True
        return field.target_model._meta.label in self.opened

    def _list_config(self, name: str, limit: int) -> JsonObject:
        """Return the config of a list below a row, without the relation back to it.

        A list of only the `FIRST` rows has just their keys and texts.
        """
        relation = self.fields[name]
        target = target_model(relation, self.opened)
        back = getattr(relation.source, "field", None)
        names = [
            each
            for each in _free_names(target.fields)
            if target.fields[each].source is not back
            and (limit != FIRST or each in (target.text, target.model._meta.pk.attname))
        ]
        return {"path": name, "fields": [*self._paths(target, names)], "limit": limit}

    def _filters(self) -> Iterator[JsonObject]:
        options, filters = self.toolset.options, self.model.filters
        free = [n for n in _free_names(filters) if self._leads_to_opened(filters[n])]
        texts = [each for each in free if each == self.model.text]
        for each in options.get("search", ()):
            path = resolve_path(each, self.model, self.opened, "filters")
            if is_secret_name(path.end_field.name, path.end_field.source.model):
                raise RegistrationError(
                    f"search names {each!r}, which sounds like a secret: who asks often"
                    " enough can guess it. Leave it out."
                )
        if search := options.get("search", texts):
            words = " or ".join(each.replace(".", " ") for each in search)
            yield {
                "path": [*search],
                "lookup": WORDS,
                "parameter": SEARCH,
                "description": f"Words, each of them in {words}.",
            }
        usual_names = [
            each
            for each in free
            if each != self.key and filters[each].kind is not FieldKind.TEXT
        ]
        configs = [*self._filter_configs(usual_names)]
        ranges = [each["parameter"] for each in configs if each["lookup"] == "range"]
        range_ends = [f"{name}_{end}" for name in ranges for end in ("from", "to")]
        # Leave out an exact filter whose name is that of the end of another range.
        yield from (
            each
            for each in configs
            if each["lookup"] != "exact" or each["parameter"] not in range_ends
        )
        names = [each["parameter"] for each in configs]
        for name in options.get("filters", free):
            empty_filter = self._empty_config(name)
            if empty_filter is not None and empty_filter["parameter"] not in names:
                yield empty_filter

    def _filter_configs(self, usual: Iterable[str]) -> Iterator[JsonObject]:
        chosen = self.toolset.options.get("filters")
        for name in usual if chosen is None else chosen:
            try:
                yield from self._filters_of(name)
            except RegistrationError as error:
                if chosen is not None:
                    raise
                sentence = f"{self.toolset.call}: {error}"
                record_problem(self.remarks, self.toolset.origin.place, sentence)

    def _empty_config(self, name: str) -> JsonObject | None:
        """Return the filter for rows whose field is empty; None if it cannot be."""
        path = resolve_path(name, self.model, self.opened, "filters")
        if not path.end_field.may_be_empty:
            return None
        description = f"Whether there is no {_label_of(path.end_field)}."
        parts = {"lookup": EMPTY, "parameter": f"{path.name}_empty"}
        # The key is checked, not the text: that may have a permission of its own.
        name = f"{name}.pk" if path.stand_in == TEXT else name
        return {"path": name, **parts, "description": description}

    def _filters_of(self, name: str) -> Iterator[JsonObject]:
        path = resolve_path(name, self.model, self.opened, "filters")
        field, parameter = path.end_field, path.name
        label = _label_of(field)
        lookup = _LOOKUPS.get(field.kind, "exact")
        if field.is_relation and not name.endswith(".pk"):
            name, parameter = _key_path(name, field), f"{parameter}_{KEY}"
            is_one = field.kind is FieldKind.TO_ONE
            label = f"The key of {'the' if is_one else 'one or more of its'} {label}"
        ends = ", both ends included" if lookup == "range" else ""
        if not ends and parameter in _OURS:
            raise RegistrationError(
                f"{name!r} is the name of a parameter of ours, so no filter can have"
                " it. Leave it out, as in filters=[…]."
            )
        description = f"{label[:1].upper()}{label[1:]}{ends}."
        parts = {"lookup": lookup, "parameter": parameter, "description": description}
        yield {"path": name, **parts}
        if field.kind in NUMBERS and parameter not in _OURS:
            parts = {"lookup": "exact", "parameter": parameter}
            yield {"path": name, **parts, "description": f"Exactly this {label}."}

    def _read(self, **config: Any) -> tuple[Query, JsonObject]:
        whole = {"model": self.model.label, **config}
        query, problems = read_query_config(whole, self.opened)
        if query is None:
            raise problems[0]
        return query, whole

    # -- tools -------------------------------------------------------------------------

    def list_tool(self, name: str) -> DeclaredTool:
        """Return the tool that lists rows, and searches, filters and sorts them."""
        paths = [*self._paths(self.model, self.names)]
        sortable = [
            each
            for each, field in self.fields.items()
            if field.kind not in _UNSORTED and is_sortable(field)
        ]
        # No relations by a foreign key: a list counts all its rows, perhaps millions.
        listed = [
            name
            for name in self.many
            if self.fields[name].through_table is not None
            and self._leads_to_opened(self.fields[name])
        ]
        query, config = self._read(
            fields=paths,
            filters=[*self._filters()],
            order=sortable,
            count=True,
            lists=[self._list_config(each, FIRST) for each in listed],
            totals=[*self._totals()],
        )
        lists = f", with the first {FIRST} of their {', '.join(listed)}"
        terms = {term.path.text: term for term in query.order}
        terms |= {f"-{n}": replace(t, descending=True) for n, t in terms.items()}
        term_of = dict(terms)
        if self.key in terms:
            term_of |= {"pk": terms[self.key], "-pk": terms[f"-{self.key}"]}
        # The default is the model's order if its fields are shown, else newest first.
        ordering = [str(each) for each in self.model.model._meta.ordering or ["-pk"]]
        ordering = ordering if term_of.keys() >= {*ordering} else ["-pk"]
        usual = tuple(term_of[each] for each in ordering if each in term_of)
        words = ", ".join(f"{'-' * each.descending}{each.path.text}" for each in usual)
        queries: dict[str | None, Query] = {None: replace(query, order=usual)}
        queries |= {n: replace(query, order=(term,)) for n, term in terms.items()}
        return self._declare(
            name,
            queries,
            config,
            chooser=SORT,
            meaning="What rows are sorted by; - is descending. By default"
            f" {words or self.key}.",
            title=f"List {self.rows}",
            description=(
                f"{self.rows[:1].upper()}{self.rows[1:]} as rows of {', '.join(paths)}"
                f"{lists if listed else ''};"
                f" {query.limit} at once. For more, call again with the same arguments"
                " and cursor = next."
            ),
            output_schema=output_schema(query),
        )

    def _totals(self) -> Iterator[JsonObject]:
        yield {"aggregate": "count", "name": COUNT}
        for name, field in self.fields.items():
            for each in ("sum", "avg") if field.kind in NUMBERS else ():
                yield {"aggregate": each, "path": name, "name": f"{each}_{name}"}

    def get_tool(self, name: str) -> DeclaredTool:
        """Return the tool that shows one row, with lists of related rows."""
        by_key = {
            "path": self.key,
            "lookup": "exact",
            "parameter": KEY,
            "required": True,
            "description": f"The key of the {self.row}: its {self.key}.",
        }
        query, config = self._read(
            answer=ONE,
            filters=[by_key],
            fields=[*self._paths(self.model, self.names)],
            lists=[self._list_config(each, USUAL_LISTED) for each in self.many],
        )
        lists = f", with the first {USUAL_LISTED} of its {', '.join(self.many)}"
        return self._declare(
            name,
            {None: query},
            config,
            partial(_answer_row, self.row),
            title=f"Get one {self.row}",
            description=f"One {self.row} by its key{lists if self.many else ''}.",
            output_schema=output_schema(query)["properties"][ROWS]["items"],
        )

    def count_tool(self, name: str) -> DeclaredTool:
        """Return the tool that counts rows: all, or by choices, relations or months."""
        asked: JsonObject = {
            "answer": GROUPS,
            "filters": [*self._filters()],
            "measures": [{"aggregate": "count", "name": COUNT}],
        }
        query, config = self._read(**asked)
        queries: dict[str | None, Query] = {None: query}
        for by, group_by in self._groupings():
            # MariaDB without zone tables cannot group by months.
            errors = () if by in self.fields else (KindError, DatabaseError)
            with suppress(*errors):
                queries[by], _config = self._read(**asked, group_by=group_by)
        schema = output_schema(query)
        members: JsonObject = {}
        for each in queries.values():
            members |= output_schema(each)["properties"][GROUPS]["items"]["properties"]
        groups = {"type": "array", "items": {"type": "object", "properties": members}}
        whole = {**schema["properties"], COUNT: members[COUNT], GROUPS: groups}
        return self._declare(
            name,
            queries,
            config,
            chooser=BY,
            meaning="What groups are by.",
            title=f"Count {self.rows}",
            description=f"How many {self.rows} there are, or how many of each group.",
            output_schema={"type": "object", "properties": whole},
        )

    def _groupings(self) -> Iterator[tuple[str, list[object]]]:
        for name, field in self.fields.items():
            if field.kind in DATES:
                yield f"{name}_month", [{"path": name, "unit": "month"}]
            # The name “count” is that of the number in each group.
            elif name == COUNT or field.kind not in _GROUPED:
                continue
            elif not field.source.one_to_one:
                yield name, [*self._paths(self.model, [name])]

    def _declare(
        self,
        name: str,
        queries: Mapping[str | None, Query],
        config: JsonObject,
        answer: Callable[..., ToolOutput] = _answer,
        chooser: str = "",
        meaning: str = "",
        **texts: Any,
    ) -> DeclaredTool:
        """Return a tool; one of its arguments chooses among the `queries`.

        `chooser` is that argument, `meaning` its text; without it, query None runs.
        """
        toolset, demands = self.toolset, self.toolset.demands
        for query in queries.values():
            demands = demands.combined_with(query.demands)
        schema = input_schema(queries[None])
        if choices := [each for each in queries if each is not None]:
            choice = {"type": "string", "enum": choices, "description": meaning}
            schema["properties"] = {**schema["properties"], chooser: choice}
        if queries[None].totals:
            text = f"Also say the {TOTALS} of all rows that fit: count, sums, averages."
            flag = {"type": "boolean", "default": False, "description": text}
            schema["properties"] = {**schema["properties"], TOTALS: flag}

        def bind_arguments(arguments: JsonObject) -> dict[str, object]:
            query = queries[arguments.get(chooser)]
            if not arguments.get(TOTALS):
                query = replace(query, totals=())
            lookup = Lookup(name, query, config)
            return {"lookup": lookup, **lookup.bind_arguments(arguments)}

        definition = ToolDefinition(
            name=name,
            input_schema=schema,
            hints=HINTS,
            demands=demands,
            tags=toolset.tags,
            **texts,
        )
        run = lookup_runnable(answer, bind_arguments, content_output)
        ready = ReadyFunction(toolset.call, toolset.origin.place, run)
        return Declaration(definition, ready)


def _label_of(field: OpenField) -> str:
    return str(getattr(field.source, "verbose_name", field.name))


def _free_names(fields: Mapping[str, OpenField]) -> list[str]:
    """Return the fields without a permission of their own.

    With any other field, callers who lack its permission would not see the tool.
    """
    return [name for name, each in fields.items() if not each.permission]


def _key_path(name: str, relation: OpenField) -> str:
    """Return the path of a related row's key, by which its own tools get it."""
    key: str = relation.target_model._meta.pk.attname
    return f"{name}.pk" if relation.key_column == key else f"{name}.{key}"
