"""The kind `change`: what subscribers are told if rows of open models change.

The outbox has the keys alone.  What is told of a row is read when it is told, as the
kind `query` reads it for the same person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast, get_args

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.decorators import RowEvent
from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel
from mcp_app.catalog.runnable import Runnable
from mcp_app.conf import mcp_settings
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import Definition, EventDefinition, Label
from mcp_app.interface.rules import AccessRequirements
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    AnyDefinition,
    Description,
    Incomplete,
    KindError,
    Missing,
    Uploads,
    object_schema,
)
from mcp_app.kinds.query.config import GROUPS, ONE, SCHEMA, Query, input_schema
from mcp_app.kinds.query.description import QueryText
from mcp_app.kinds.query.kind import Lookup, QueryKind, lookup_runnable
from mcp_app.kinds.query.labels import join_words, label_and_field, plain_text
from mcp_app.kinds.query.reading import read_query_config
from mcp_app.kinds.query.shapes import field_schema, field_to_json, row_schema
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.json_types import JsonObject

CREATED, CHANGED, DELETED = EVENTS = get_args(RowEvent)
WHEN: Final[Mapping[str, Label]] = {
    CREATED: _("is added"),
    CHANGED: _("is changed"),
    DELETED: _("is deleted"),
}
"""What happens to a row, as staff read it."""
CHANGE_SCHEMA: Final[JsonObject] = object_schema(
    **{name: SCHEMA["properties"][name] for name in ("model", "filters", "fields")},
    on={"type": "array", "items": {"enum": [*EVENTS]}, "uniqueItems": True},
    watched={"type": "array", "items": {"type": "string"}, "uniqueItems": True},
)
"""The JSON Schema of a config.

    {"model": "shop.Order", "on": ["changed"], "watched": ["state"],
     "filters": [{"path": "state", "lookup": "exact", "value": "paid"},
                 {"path": "shop", "lookup": "exact", "parameter": "shop"}],
     "fields": ["number", "total"]}
"""


class ChangeKind(QueryKind):
    """Tells of rows of open models that are added, changed or deleted."""

    name = _("When data of this site changes")
    examples = {
        EventDefinition: _(
            "A row is added, changed or deleted. Example: “An order becomes paid”."
        )
    }
    schema = CHANGE_SCHEMA
    forms = {}

    def missing(self) -> Missing | None:
        if any(each.events for each in self.registry.open_models.values()):
            return None
        reason = _(
            "No data is opened for this. A developer opens a model in an app's mcp.py,"
            " with events:"
        )
        line = (
            'mcp.open_model(Order, fields=["number", "state"], rows="all",'
            ' events=["created", "changed"], watch=["state"])'
        )
        return Missing(reason, line)

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        """Take the topic, the schemas and the demands of what is told."""
        query, _problems = self._read_config(config)
        if query is None or not isinstance(definition, EventDefinition):
            return definition
        members = row_schema(query.fields)["properties"]
        own = list(config.get("watched", ()))
        if DELETED in config["on"]:
            key = _key_field(query.model)
            members.setdefault(key.name, field_schema(key, nullable=False))
            own.append(key.name)
        demands = query.demands.combined_with(_demands_of(query.model, own))
        return replace(
            definition,
            demands=definition.demands.combined_with(demands),
            topic=query.model.topic,
            input_schema=input_schema(query),
            payload_schema={"type": "object", "properties": members},
        )

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        opened = self.registry.open_models
        parts = [(gettext("When a row"), _when(config))]
        if watched := config.get("watched"):
            model = opened.get(str(config.get("model", "")))
            labels = [label_and_field(name, model, opened)[0] for name in watched]
            parts.append((gettext("Only if one of these changed"), ", ".join(labels)))
        return [*parts, *QueryText(_as_query(config), opened).parts()]

    def sentence(self, definition: Definition, config: JsonObject) -> str:
        text = QueryText(_as_query(config), self.registry.open_models).sentence()
        told = gettext("It is told when a row %(when)s.") % {"when": _when(config)}
        return f"{plain_text(text)} {told}"

    def event_runnable(
        self,
        definition: EventDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[Sequence[Occurred]]:
        lookup = Lookup(definition.name, self._read_query(config), config)
        watched = frozenset(config.get("watched", ()))
        choice = _Choice(lookup, frozenset(config["on"]), watched)
        return lookup_runnable(
            choice.choose, lookup.bind_arguments, partial(cast, "Sequence[Occurred]")
        )

    def _read_config(self, config: JsonObject) -> tuple[Query | None, list[KindError]]:
        opened = self.registry.open_models
        query, problems = read_query_config(_as_query(config), opened)
        if (model := opened.get(config.get("model", ""))) is not None:
            problems = [*problems, *_event_errors(config, model)]
        return (None if problems else query), problems


def _as_query(config: JsonObject) -> JsonObject:
    """Return the config of the kind `query` that says the same of rows."""
    if config.get("on") == [DELETED] and not config.get("fields"):
        # Nothing of a row is shown: any answer without fields will do.
        count = {"aggregate": "count", "name": "rows"}
        return {**config, "answer": GROUPS, "measures": [count]}
    return {**config, "answer": ONE}


def _when(config: JsonObject) -> str:
    return join_words(str(WHEN[each]) for each in config.get("on", ()))


def _event_errors(config: JsonObject, model: OpenModel) -> Iterator[KindError]:
    on, watched = config.get("on", ()), config.get("watched", ())
    if not on:
        yield Incomplete("Choose what happens to a row.", place="on")
    for each in on:
        if each not in model.events:
            message = f"No code opens the event “{each}” of {model.label}."
            yield KindError(message, place="on")
    for each in watched:
        if each not in model.watch:
            message = f"No code watches “{each}” of {model.label}."
            yield KindError(message, place="watched")
    if watched and CHANGED not in on:
        message = "Nothing is told of changes: choose “changed”, too."
        yield KindError(message, place="watched")
    if DELETED in on and config.get("filters"):
        message = (
            "A row that is gone fits no condition: choose “deleted” for an event type"
            " of its own, without filters."
        )
        yield KindError(message, place="filters")


def _key_field(model: OpenModel) -> OpenField:
    key: Any = model.model._meta.pk
    return model.all_fields.get(key.name, OpenField(key.name, FieldKind.KEY, key))


def _demands_of(model: OpenModel, names: Sequence[str]) -> AccessRequirements:
    fields = [model.all_fields[name] for name in names if name in model.all_fields]
    permissions = sorted({each.permission for each in fields} - {""})
    return AccessRequirements(permissions=tuple(permissions))


@dataclass(frozen=True)
class _Choice:
    """Chooses what a subscriber is told of rows."""

    lookup: Lookup
    on: frozenset[str]
    watched: frozenset[str]

    def choose(
        self,
        *,
        ctx: SyncContext,
        occurrences: Sequence[Occurred],
        values: Mapping[str, Any],
        arguments: JsonObject,
    ) -> list[Occurred]:
        """Return what is told, with the rows as this subscriber sees them now."""
        fitting = [each for each in occurrences if self._fits(each.data)]
        key = _key_field(self.lookup.query.model)
        read_key = key.source.to_python
        # The key of a gap is that of no row.
        keys = [read_key(each.data.get("pk")) for each in fitting]
        there = {
            pk
            for each, pk in zip(fitting, keys, strict=True)
            if each.data["on"] != DELETED and pk is not None
        }
        rows: Mapping[Any, JsonObject] = {}
        if there:
            rows = self.lookup.rows_by_key(ctx, there, values, arguments)
        told: list[Occurred] = []
        for each, pk in zip(fitting, keys, strict=True):
            if pk is None:
                told.append(replace(each, is_gap=True))
            elif each.data["on"] == DELETED:
                told.append(replace(each, data={key.name: field_to_json(key, pk)}))
            elif pk in rows:
                told.append(replace(each, data=_bounded_row(rows[pk], key.name)))
        return told

    def _fits(self, data: JsonObject) -> bool:
        on = data["on"]
        differs = not self.watched or on != CHANGED or self.watched & {*data["changed"]}
        return on in self.on and bool(differs)


def _bounded_row(row: JsonObject, key: str) -> JsonObject:
    """Return what is told of a row: of a large one its key, if that is shown."""
    if len(jsonrpc.write(row)) <= mcp_settings.limits.event_size:
        return row
    return {key: row[key]} if key in row else {}
