"""The kind `change`: what subscribers are told if rows of open models change.

The outbox has only the keys.  When a subscriber is told of a row, the row is read as
the kind `query` would read it for the same person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.text import get_text_list
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.catalog.runnable import Runnable, leave_unconverted
from mcp_app.conf import mcp_settings
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import Definition, EventDefinition, Label
from mcp_app.interface.rules import AccessRequirements
from mcp_app.invalidation.row_events import CHANGED, CREATED, DELETED
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
from mcp_app.kinds.query.labels import label_and_field, plain_text
from mcp_app.kinds.query.reading import read_query_config
from mcp_app.kinds.query.shapes import field_schema, field_to_json, row_schema
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.json_types import JsonObject

WHEN: Final[Mapping[str, Label]] = {
    CREATED: _("is added"),
    CHANGED: _("is changed"),
    DELETED: _("is deleted"),
}
"""The words for what happens to a row, for staff."""
_COLUMNS: Final = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


class ChangeKind(QueryKind):
    """Tells of rows of open models that are added, changed or deleted.

    A config is like that of a query, without the members for several rows:

        {"model": "shop.Order", "on": ["changed"], "watched": ["state"],
         "filters": [{"path": "state", "lookup": "exact", "value": "paid"},
                     {"path": "shop", "lookup": "exact", "parameter": "shop"}],
         "fields": ["number", "total"]}
    """

    name = _("When data of this site changes")
    examples = {
        EventDefinition: _(
            "A row is added, changed or deleted. Example: “An order becomes paid”."
        )
    }
    schema = object_schema(
        **{name: SCHEMA["properties"][name] for name in ("model", "filters", "fields")},
        on={**_COLUMNS, "items": {"enum": [*WHEN]}},
        watched=_COLUMNS,
    )
    forms = {EventDefinition: "mcp_app.admin.forms.event_type.ChangeEventForm"}

    def missing(self) -> Missing | None:
        if any(model.events for model in self.registry.open_models.values()):
            return None
        reason = _("No data is opened for this. A developer opens a model with events:")
        line = (
            'mcp.open_model(Order, fields=["number", "state"], rows="all",'
            ' events=["created", "changed"], watch=["state"])'
        )
        return Missing(reason, line)

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        """Add the topic, the schemas and the demands that follow from the config."""
        query, _problems = self._read_config(config)
        if query is None or not isinstance(definition, EventDefinition):
            return definition
        key, columns = _key_field(query.model), [*config.get("watched", ())]
        properties = row_schema(query.fields)["properties"]
        if DELETED in config["on"]:
            columns += [key.name, key.source.name]
            properties.setdefault(key.name, field_schema(key, nullable=False))
        fields = query.model.all_fields
        names = {fields[column].permission for column in columns if column in fields}
        more = AccessRequirements(permissions=tuple(sorted(names - {""})))
        return replace(
            definition,
            demands=definition.demands.combined_with(query.demands).combined_with(more),
            topic=query.model.topic,
            input_schema=input_schema(query),
            payload_schema={"type": "object", "properties": properties},
        )

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        parts = [(gettext("When a row"), _moments_text(config))]
        if labels := self._watched_labels(config):
            parts.append((gettext("Only if one of these changed"), labels))
        text = QueryText(_as_query(config), self.registry.open_models)
        return [*parts, *text.parts()]

    def _watched_labels(self, config: JsonObject) -> str:
        opened = self.registry.open_models
        model = opened.get(str(config.get("model", "")))
        watched = config.get("watched", ())
        return ", ".join(label_and_field(name, model, opened)[0] for name in watched)

    def sentence(self, definition: Definition, config: JsonObject) -> str:
        text = QueryText(_as_query(config), self.registry.open_models).sentence()
        labels = self._watched_labels(config)
        sentence = gettext("It is told when a row %(when)s.")
        if labels:
            sentence = gettext("It is told when a row %(when)s: its %(labels)s.")
        sentence %= {"when": _moments_text(config), "labels": labels}
        return f"{plain_text(text)} {sentence}"

    def event_runnable(
        self,
        definition: EventDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[Sequence[Occurred]]:
        lookup = Lookup(definition.name, self._read_query(config), config)
        choice = _Choice(lookup, config["on"], {*config.get("watched", ())})
        return lookup_runnable(choice.choose, lookup.bind_arguments, leave_unconverted)

    def _read_config(self, config: JsonObject) -> tuple[Query | None, list[KindError]]:
        return read_change_config(config, self.registry.open_models)


def read_change_config(
    config: JsonObject, opened: OpenModels
) -> tuple[Query | None, list[KindError]]:
    """Return the query for the rows, or None, and what is wrong with the config."""
    query, problems = read_query_config(_as_query(config), opened)
    if (model := opened.get(config.get("model", ""))) is not None:
        problems = [*problems, *_event_errors(config, model)]
    return (None if problems else query), problems


def _as_query(config: JsonObject) -> JsonObject:
    """Return the config of the kind `query` that reads the same rows."""
    if config.get("on") == [DELETED] and not config.get("fields"):
        # No field is shown, but a query needs an answer: a count has no fields.
        count = {"aggregate": "count", "name": "rows"}
        return {**config, "answer": GROUPS, "measures": [count]}
    return {**config, "answer": ONE}


def _moments_text(config: JsonObject) -> str:
    words = [str(WHEN[each]) for each in config.get("on", ())]
    return get_text_list(words, gettext("or"))


def _event_errors(config: JsonObject, model: OpenModel) -> Iterator[KindError]:
    on, watched = config.get("on", ()), config.get("watched", ())
    if not on:
        yield Incomplete("Choose what happens to a row.", place="on")
    for each in {*on} - model.events:
        yield KindError(f"No code opens {model.label} with “{each}”.", place="on")
    for each in {*watched} - {*model.watch}:
        message = f"No code watches “{each}” of {model.label}."
        yield KindError(message, place="watched")
    if watched and CHANGED not in on:
        message = "Only what is changed can be watched: choose “changed”, too."
        yield KindError(message, place="watched")
    if DELETED in on and config.get("filters"):
        message = "A row that is deleted fits no condition. Leave one of them out."
        yield KindError(message, place="filters")


def _key_field(model: OpenModel) -> OpenField:
    """Return the key's column, also if the key is a relation."""
    key: Any = model.model._meta.pk
    return model.all_fields.get(key.attname, OpenField(key.attname, FieldKind.KEY, key))


@dataclass(frozen=True)
class _Choice:
    """Chooses the changes of rows that a subscriber is told."""

    lookup: Lookup
    on: Collection[str]
    watched: Collection[str]

    def choose(
        self,
        *,
        ctx: SyncContext,
        occurrences: Sequence[Occurred],
        values: Mapping[str, Any],
        arguments: JsonObject,
    ) -> Sequence[Occurred]:
        """Return the events to tell, with the rows as this subscriber sees them now."""
        key = _key_field(self.lookup.query.model)
        fitting = [
            (occurrence, key.source.to_python(occurrence.data.get("pk")))
            for occurrence in occurrences
            if self._fits(occurrence.data)
        ]
        keys = {pk for each, pk in fitting if each.data["on"] != DELETED} - {None}
        rows: Mapping[Any, JsonObject] = {}
        if keys:
            rows = self.lookup.rows_by_key(ctx, keys, values, arguments)
        chosen: list[Occurred] = []
        for each, pk in fitting:
            # An event without a key stands for many that are not told one by one.
            if pk is None:
                chosen.append(replace(each, is_gap=True))
            elif each.data["on"] == DELETED:
                chosen.append(replace(each, data={key.name: field_to_json(key, pk)}))
            elif pk in rows:
                chosen.append(replace(each, data=_bounded_row(rows[pk], key.name)))
        return chosen

    def _fits(self, data: JsonObject) -> bool:
        on, changed = data["on"], {*data["changed"]}
        is_unwatched = on == CHANGED and self.watched and not changed & {*self.watched}
        return on in self.on and not is_unwatched


def _bounded_row(row: JsonObject, key: str) -> JsonObject:
    """Return a row; if it is too large, only its key, and that only if it is shown."""
    if len(jsonrpc.write(row)) <= mcp_settings.limits.event_size:
        return row
    return {name: row[name] for name in (key,) if name in row}
