"""The kind `query`: what staff can look up in the models that code opens.

A query only reads, and it sees only rows that `rows` of each model lets its caller see.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast

from django.db import Error as DatabaseError
from django.db import router
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.findings import Finding, advice
from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.runnable import ArgumentsRefused, Gate, Runnable
from mcp_app.conf import mcp_settings
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import (
    EMPTY_SCHEMA,
    Definition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.errors import ToolError
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.questions import ToolOutput
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    AnyDefinition,
    Description,
    Effect,
    Kind,
    KindError,
    Missing,
    Uploads,
)
from mcp_app.kinds.query import shapes
from mcp_app.kinds.query.comparisons import Unfit, is_reversed
from mcp_app.kinds.query.config import (
    CURSOR,
    GROUPS,
    ONE,
    ROWS,
    SCHEMA,
    TOTALS,
    Query,
    input_schema,
    output_schema,
)
from mcp_app.kinds.query.description import QueryText
from mcp_app.kinds.query.groups import read_groups
from mcp_app.kinds.query.labels import plain_text
from mcp_app.kinds.query.reading import Page, RowReader, read_query_config
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.shapes import ForeignCursor
from mcp_app.pools.connections import is_outage
from mcp_app.pools.statement_time import TimeIsUp, time_limit
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import Violation
from mcp_app.protocol.uri_templates import UriTemplate
from mcp_app.site_time import local_date

Output = TypeVar("Output")

logger = logging.getLogger("mcp_app.calls")

HINTS: Final = ToolHints(
    read_only=True, destructive=False, idempotent=True, open_world=False
)
UNTRUSTED: Final = {"untrusted": True}
"""The `_meta` of results with texts that other people wrote."""
GATE: Final = Gate("query")
_EXACT: Final = ("exact", "iexact")
"""The lookups that variables of a template may have."""


class QueryKind(Kind):
    """Looks up rows of open models."""

    name = _("Look up data of this site")
    examples = {
        ToolDefinition: _(
            "Rows, or counts and sums. Example: “The 10 customers with the largest"
            " turnover”."
        ),
        ResourceTemplateDefinition: _(
            "One row of this site's data for each address. Example: “One order”."
        ),
    }
    effect = Effect.NOTHING
    schema = SCHEMA
    forms = {
        ToolDefinition: "mcp_app.admin.forms.tool.QueryToolForm",
        ResourceTemplateDefinition: "mcp_app.admin.forms.tool.QueryTemplateForm",
    }

    def missing(self) -> Missing | None:
        if self.registry.open_models:
            return None
        reason = _(
            "No data is opened for this. A developer opens a model in an app's mcp.py:"
        )
        line = 'mcp.open_model(Order, fields=["number", "state"], rows="all")'
        return Missing(reason, line)

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        """Add the schemas, hints and demands that follow from the query."""
        query, _problems = self._read_config(config)
        if query is None:
            return definition
        demands = definition.demands.combined_with(query.demands)
        if isinstance(definition, ToolDefinition):
            return replace(
                definition,
                input_schema=input_schema(query),
                output_schema=output_schema(query),
                hints=HINTS,
                demands=demands,
            )
        template = cast("ResourceTemplateDefinition", definition)
        public = template.public and not query.per_caller
        return cast("AnyDefinition", replace(template, demands=demands, public=public))

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        return list(QueryText(config, self.registry.open_models).parts())

    def sentence(self, definition: Definition, config: JsonObject) -> str:
        return plain_text(QueryText(config, self.registry.open_models).sentence())

    def tool_runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[ToolOutput]:
        lookup = Lookup(definition.name, self._read_query(config), config)
        return lookup_runnable(
            lookup.answer_call, lookup.bind_arguments, content_output
        )

    def template_runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[object]:
        lookup = Lookup(definition.name, self._read_query(config), config)
        return lookup_runnable(
            lookup.read_single_row, lookup.bind_arguments, lambda value: value
        )

    def findings(self, definition: Definition, config: JsonObject) -> list[Finding]:
        """Warn if several rows may have the same address."""
        query, _problems = self._read_config(config)
        if query is None or not isinstance(definition, ResourceTemplateDefinition):
            return []
        paths = [parameter.paths[0] for parameter in query.parameters.values()]
        if _are_unique({path.field.name for path in paths if path.is_own}, query):
            return []
        message = gettext(
            "Several rows may have the same address: none of the fields is unique."
            " Reading such an address fails."
        )
        return [advice("row-not-unique", "config", message)]

    def _read_config(self, config: JsonObject) -> tuple[Query | None, list[KindError]]:
        return read_query_config(config, self.registry.open_models)

    def _read_query(self, config: JsonObject) -> Query:
        query, problems = self._read_config(config)
        if query is None:
            raise problems[0]
        return query

    def _config_errors(
        self, definition: Definition, config: JsonObject, uploads: Uploads
    ) -> Iterator[KindError]:
        if errors := list(super()._config_errors(definition, config, uploads)):
            yield from errors
            return
        query, problems = self._read_config(config)
        yield from problems
        if query is None:
            return
        if isinstance(definition, ToolDefinition):
            yield from _tool_errors(definition, query)
        elif isinstance(definition, ResourceTemplateDefinition):
            yield from _template_errors(definition, query)


def lookup_runnable(
    run: Callable[..., object],
    bind: Callable[[JsonObject], dict[str, object]],
    convert: Callable[[object], Output],
) -> Runnable[Output]:
    """Return a runnable that reads the database, in at most half of the threads."""
    return Runnable(
        run=run,
        style="sync",
        bind=bind,
        convert=convert,
        context="ctx",
        atomic=False,
        gate=GATE,
    )


def _are_unique(names: Collection[str], query: Query) -> bool:
    """Whether no two rows can have the same values in the fields with these names."""
    options = query.model.model._meta
    alone = {each.name for each in options.get_fields() if getattr(each, "unique", 0)}
    together = (constraint.fields for constraint in options.total_unique_constraints)
    return bool(alone & {*names}) or any({*names} >= {*each} for each in together)


def _tool_errors(definition: ToolDefinition, query: Query) -> Iterator[KindError]:
    if query.answer == ONE:
        message = "One row is what templates answer. Choose rows or groups."
        yield KindError(message, place="answer")
    if definition.input_schema not in (EMPTY_SCHEMA, input_schema(query)):
        message = "The parameters of a query are those of its filters. Leave them out."
        yield KindError(message, "input_schema")


def _template_errors(
    definition: ResourceTemplateDefinition, query: Query
) -> Iterator[KindError]:
    if query.answer != ONE:
        message = 'A template answers with one row: "answer" must be "one".'
        yield KindError(message, place="answer")
    variables = UriTemplate.parse(definition.uri_template).variables
    for name in variables:
        query_filter = query.parameters.get(name)
        if query_filter is None:
            message = f"No filter has the variable {{{name}}} as its parameter."
            yield KindError(message, "uri_template")
        elif query_filter.lookup not in _EXACT:
            yield KindError(
                f"The variable {{{name}}} can be asked by “exact” or “iexact” alone."
            )
    for name in query.parameters.keys() - {*variables}:
        message = f"The address has no variable {{{name}}}, which a filter asks for."
        yield KindError(message, "uri_template")


@dataclass(frozen=True)
class Lookup:
    """Runs the query of a definition; `name` is the name of the definition."""

    name: str
    query: Query
    config: JsonObject

    def bind_arguments(self, arguments: JsonObject) -> dict[str, object]:
        """Return the cleaned values of all parameters; raise `ArgumentsRefused`."""
        values: dict[str, object] = {}
        violations = []
        for name, each in self.query.parameters.items():
            value = arguments.get(name, each.default)
            if value is None:
                continue
            try:
                values[name] = each.value_for_column(value)
            except Unfit as error:
                violations.append(Violation(f"$.{name}", "value", str(error)))
        violations += self._reversed_ranges(values)
        if violations:
            raise ArgumentsRefused(violations)
        return {"values": values, "arguments": arguments}

    def _reversed_ranges(self, values: Mapping[str, Any]) -> Iterator[Violation]:
        for name, each in self.query.parameters.items():
            # A range is two filters, whose parameters end with “from” and “to”.
            last = f"{name.removesuffix('from')}to"
            if each.lookup != "from" or not values.keys() >= {name, last}:
                continue
            if is_reversed(each.field, values[name], values[last]):
                message = f"It is after {last}, so nothing is between them."
                yield Violation(f"$.{name}", "value", message)

    def answer_call(
        self, *, ctx: SyncContext, values: Mapping[str, Any], arguments: JsonObject
    ) -> ToolOutput:
        """Return the rows or groups of a call."""
        with self._query_time_limit(ctx, arguments):
            scopes = self._build_scopes(ctx, arguments)
            if self.query.answer != GROUPS:
                structured = self._rows_answer(ctx, scopes, values, arguments)
                return ToolOutput((), structured=structured, meta=UNTRUSTED)
            groups, has_more = read_groups(self.query, scopes, values, local_date())
        note = f"These are the first {self.query.limit} groups; there are more."
        structured = {GROUPS: groups, **({"note": note} if has_more else {})}
        return ToolOutput((), structured=structured, meta=UNTRUSTED)

    def read_single_row(
        self, *, ctx: SyncContext, values: Mapping[str, Any], arguments: JsonObject
    ) -> JsonObject | None:
        """Return the row that has an address; None if there is none."""
        with self._query_time_limit(ctx, arguments):
            scopes = self._build_scopes(ctx, arguments)
            reader = self._row_reader(scopes, values)
            page = replace(reader, limit=1).page_at_place(None)
        if page.next is not None:
            names = ", ".join(self.query.parameters)
            raise RuntimeError(
                f"{self.name}: more than one row of {self.query.model.label} has this"
                f" {names}. Ask by a field that is unique."
            )
        return page.rows[0] if page.rows else None

    def rows_by_key(
        self,
        ctx: SyncContext,
        keys: Collection[Any],
        values: Mapping[str, Any],
        arguments: JsonObject,
    ) -> Mapping[Any, JsonObject]:
        """Return the rows with these keys that the caller sees, as `answer_call` does.

        They are read from the database for writes: a replica may not have them yet.
        """
        using = router.db_for_write(self.query.model.model)
        with self._query_time_limit(ctx, arguments, using):
            scopes = self._build_scopes(ctx, arguments, using)
            return self._row_reader(scopes, values).rows_by_key(keys)

    @contextmanager
    def _query_time_limit(
        self, ctx: SyncContext, arguments: JsonObject, using: str = ""
    ) -> Iterator[None]:
        """Stop statements after the setting `query_time`, or at the call's deadline."""
        seconds, seconds_left = mcp_settings.limits.query_time, ctx.deadline
        if seconds_left is not None:
            seconds = min(seconds, max(seconds_left, 0.001))
        try:
            with time_limit(using or database_of(self.query), seconds):
                yield
        except TimeIsUp as error:
            missing = [name for name in self.query.parameters if name not in arguments]
            how = f": give {' or '.join(missing)}" if missing else ""
            raise ToolError(
                f"This took longer than {seconds:.3g} seconds. Ask for less{how}."
            ) from error
        except DatabaseError as error:
            if not is_outage(error):
                raise
            logger.warning("A look-up got no answer from the database: %r", error)
            raise Unavailable(
                "The database is busy or cannot be reached. Try again later."
            ) from error

    def _build_scopes(
        self, ctx: SyncContext, arguments: JsonObject, using: str = ""
    ) -> Scopes:
        request = AccessRequest(
            principal=ctx.principal,
            server=ctx.server,
            user=ctx.user() if self.query.per_caller else None,
            name=self.name,
            arguments=arguments,
        )
        return Scopes(request, using or database_of(self.query))

    def _row_reader(self, scopes: Scopes, values: Mapping[str, Any]) -> RowReader:
        limits = mcp_settings.limits
        return RowReader(
            query=self.query,
            scopes=scopes,
            values=values,
            today=local_date(),
            limit=min(self.query.limit, limits.query_rows),
            size=limits.tool_result // 2,
        )

    def _rows_answer(
        self,
        ctx: SyncContext,
        scopes: Scopes,
        values: Mapping[str, Any],
        arguments: JsonObject,
    ) -> JsonObject:
        reader = self._row_reader(scopes, values)
        query = {name: value for name, value in arguments.items() if name != CURSOR}
        bound = shapes.cursor_binding(
            ctx.principal.key, ctx.server, self.name, query, self.config
        )
        text = arguments.get(CURSOR)
        if text is None:
            return _page_answer(reader.page_at_place(None), bound)
        columns = [term.path.field.value_column for term in self.query.order]
        key = self.query.model.model._meta.pk
        try:
            place = shapes.open_cursor(text, bound, columns, key)
        except ForeignCursor:
            raise ToolError(
                "This tool gave no such cursor for these arguments. Call without it."
            ) from None
        page = replace(reader, today=place.day).page_at_place(place)
        return _page_answer(page, bound)


def database_of(query: Query) -> str:
    """Return the alias of the database that a query reads."""
    return router.db_for_read(query.model.model)


def _page_answer(page: Page, bound: bytes) -> JsonObject:
    answer: JsonObject = {ROWS: page.rows}
    if page.total is not None:
        name = "total" if page.total.exact else "total_at_least"
        answer[name] = page.total.count
    if page.totals:
        answer[TOTALS] = page.totals
    if page.next is not None:
        answer["next"] = shapes.seal_cursor(page.next, bound)
        count_text = f"These are {len(page.rows)} rows, and there are more."
        if page.total is not None:
            prefix = "" if page.total.exact else "at least "
            count_text = f"{len(page.rows)} of {prefix}{page.total.count}."
        answer["note"] = (
            f"{count_text} Call again with the same arguments and cursor = next."
        )
    return answer
