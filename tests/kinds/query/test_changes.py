"""Event types that staff make of rows: what subscribers are told of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_app.catalog.registry import Registry
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import EventDefinition, ToolDefinition
from mcp_app.interface.principal import AccessRequest, Principal
from mcp_app.kinds.query.changes import ChangeKind
from mcp_app.kinds.query.kind import QueryKind
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.json_types import JsonObject
from tests.drill.functions.shop import FIELDS
from tests.drill.models import Order
from tests.kinds.query.test_scoping import (
    _HIDDEN,
    Shop,
    _filters,
    _plain,
    _shown,
    _without_drawn,
)

EVENTS: Final = ("created", "changed")
KEYS: Final = {"Order": "id", "Item": "id", "Invoice": "key"}
PERSONS: Final = ("ana", "ben")
PAID: Final[JsonObject] = {
    "model": "drill.Order",
    "on": ["changed"],
    "fields": ["id", "number"],
}


@pytest.fixture
def whole(db: None) -> Shop:
    return Shop()


@dataclass
class Caller:
    """Who subscribes, as a call has them."""

    name: str
    server: str = "staff"
    deadline: float | None = None

    @property
    def principal(self) -> Principal:
        return Principal(kind="user", user_id=self.name)

    def user(self) -> None:
        return None


def json_key(pk: Any) -> Any:
    return pk if isinstance(pk, int) else str(pk)


def occurred(number: int, pk: Any, on: str = "changed", *changed: str) -> Occurred:
    data = {"pk": pk, "on": on, "changed": [*changed]}
    return Occurred(number=number, event_id=f"e{number}", created_ms=0, data=data)


def definition(kind: ChangeKind, config: JsonObject) -> EventDefinition:
    return kind.complete_safely(EventDefinition(name="e", topic=""), config)


def told(
    kind: ChangeKind,
    config: JsonObject,
    happened: list[Occurred],
    name: str = "ana",
    **arguments: Any,
) -> list[Occurred]:
    assert kind.config_problems(definition(kind, config), config) == []
    runnable = kind.event_runnable(definition(kind, config), config)
    context = cast("SyncContext", Caller(name))
    bound = runnable.bind(arguments)
    chosen = runnable.run(ctx=context, occurrences=happened, **bound)
    return [*runnable.convert(chosen)]


def shop_registry(rows: Any, **options: Any) -> Registry:
    registry = Registry()
    for model, fields in FIELDS.items():
        more: JsonObject = {"watch": ["state"]} if model is Order else {}
        registry.open_model(
            model,
            fields=fields,
            rows=rows(model),
            permission="",
            events=EVENTS,
            **{**more, **options.get(model.__name__, {})},
        )
    return registry


@st.composite
def _changes(draw: st.DrawFn) -> tuple[JsonObject, list[int]]:
    """Return a config, and of which rows something happened, by their places."""
    name = draw(st.sampled_from(sorted(KEYS)))
    config = {
        "model": f"drill.{name}",
        "fields": draw(_shown(name)),
        "filters": draw(_filters(name)),
        "on": [*EVENTS],
    }
    return config, draw(st.lists(st.integers(0, 9), max_size=6))


def _arguments(config: JsonObject) -> JsonObject:
    """Take the values that were drawn out of a config; return them as arguments."""
    _config, values = _without_drawn(config)
    return {
        name: each.isoformat() if isinstance(each, date) else each
        for name, each in values.items()
    }


@given(drawn=_changes(), hidden=st.fixed_dictionaries(dict.fromkeys(PERSONS, _HIDDEN)))
@settings(
    max_examples=int(os.environ.get("QUERY_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_subscriber_is_told_what_the_query_shows_the_same_person(
    whole: Shop, drawn: tuple[JsonObject, list[int]], hidden: Any
) -> None:
    config, places = drawn
    arguments = _arguments(config)

    def rows_of(model: Any) -> Any:
        def rows(request: AccessRequest) -> Any:
            places = hidden[request.principal.user_id][model.__name__]
            known = whole.rows[model.__name__]
            return _plain(model, [known[at].pk for at in places if at < len(known)])

        return rows

    registry = shop_registry(rows_of)
    name = config["model"].partition(".")[2]
    key, rows = KEYS[name], whole.rows[name]
    pks = [json_key(rows[at].pk) for at in places if at < len(rows)]
    happened = [occurred(number, pk) for number, pk in enumerate(pks)]
    with_keys = {"path": key, "lookup": "in", "value": pks}
    query = {
        "model": config["model"],
        # The key beside what is shown says which row it is.
        "fields": [*dict.fromkeys([*config["fields"], key])],
        "filters": [*config["filters"], *([with_keys] if pks else [])],
    }
    tool = QueryKind(registry).tool_runnable(ToolDefinition(name="t"), query)
    for person in PERSONS:
        context = cast("SyncContext", Caller(person))
        answer: Any = tool.run(ctx=context, **tool.bind(arguments))
        shown = {each[key]: each for each in answer.structured["rows"]}
        if key not in config["fields"]:
            shown = {pk: {**each} for pk, each in shown.items()}
            for each in shown.values():
                del each[key]
        wanted = [
            replace(each, data=shown[pk])
            for pk, each in zip(pks, happened, strict=True)
            if pk in shown
        ]
        kind = ChangeKind(registry)
        assert told(kind, config, happened, person, **arguments) == wanted
