"""Event types that staff make of rows: what subscribers are told of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import EventDefinition, ToolDefinition
from mcp_app.interface.principal import AccessRequest, Principal
from mcp_app.kinds.query.changes import ChangeKind
from mcp_app.kinds.query.kind import QueryKind
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.json_types import JsonObject
from tests.drill.functions.shop import FIELDS
from tests.drill.models import Order, Stock
from tests.kinds.query import shop
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


def occurred(number: int, pk: Any, on: str = "changed", *changed: str) -> Occurred:
    key = pk if isinstance(pk, int) else str(pk)
    data = {"pk": key, "on": on, "changed": [*changed]}
    return Occurred(number=number, event_id=f"e{number}", created_ms=0, data=data)


def definition(kind: ChangeKind, config: JsonObject) -> EventDefinition:
    return kind.complete_safely(EventDefinition(name="e"), config)


def told(
    kind: ChangeKind,
    config: JsonObject,
    happened: list[Occurred],
    name: str = "ana",
    **arguments: Any,
) -> list[Occurred]:
    assert kind.config_problems(definition(kind, config), config) == []
    run = kind.event_runnable(definition(kind, config), config)
    bound = run.bind(arguments)
    return [*run.convert(run.run(ctx=Caller(name), occurrences=happened, **bound))]


@st.composite
def _changes(draw: st.DrawFn) -> tuple[JsonObject, list[int]]:
    """Return what a query shows, and of which rows something happened."""
    name = draw(st.sampled_from(sorted(KEYS)))
    config = {
        "model": f"drill.{name}",
        # With the key, so that it is seen which row it is.
        "fields": [*dict.fromkeys([*draw(_shown(name)), KEYS[name]])],
        "filters": draw(_filters(name)),
    }
    return config, draw(st.lists(st.integers(0, 9), min_size=1, max_size=6))


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
    config, values = _without_drawn(config)
    arguments = {
        n: v.isoformat() if isinstance(v, date) else v for n, v in values.items()
    }

    def open_model(model: Any, fields: Any) -> None:
        def rows(request: AccessRequest) -> Any:
            places = hidden[request.principal.user_id][model.__name__]
            return _plain(model, [known[at].pk for at in places if at < len(known)])

        known = whole.rows[model.__name__]
        single = {name: f"drill.{model.__name__}_{name}" for name in fields}
        registry.open_model(
            model, fields=fields, rows=rows, permissions=single, events=EVENTS
        )

    registry = Registry()
    for model, fields in FIELDS.items():
        open_model(model, fields)
    name = config["model"].partition(".")[2]
    happened = [occurred(n, whole.rows[name][at].pk) for n, at in enumerate(places)]
    pks = [each.data["pk"] for each in happened]
    with_keys = {"path": KEYS[name], "lookup": "in", "value": pks}
    query = {**config, "filters": [*config["filters"], with_keys]}
    config["on"] = [*EVENTS]

    kind, queries = ChangeKind(registry), QueryKind(registry)
    tool = queries.complete(ToolDefinition(name="t"), query)
    assert definition(kind, config).demands == tool.demands
    runnable = queries.tool_runnable(tool, query)
    for person in PERSONS:
        bound = runnable.bind(arguments)
        answer: Any = runnable.run(ctx=Caller(person), **bound)
        shown = {each[KEYS[name]]: each for each in answer.structured["rows"]}
        visible = [each for each in happened if each.data["pk"] in shown]
        wanted = [replace(each, data=shown[each.data["pk"]]) for each in visible]
        assert told(kind, config, happened, person, **arguments) == wanted


@pytest.fixture
def orders() -> ChangeKind:
    registry = Registry()
    registry.open_model(
        Order,
        fields=["number", "state", "note"],
        filters=["state", "id"],
        rows="all",
        permission="",
        permissions={"id": "drill.see_keys", "state": "drill.see_states"},
        events=["created", "changed", "deleted"],
        watch=["state"],
    )
    registry.open_model(Stock, fields=["sku"], rows="all", permission="")
    return ChangeKind(registry)


def config(*fields: str, **members: Any) -> JsonObject:
    whole = {"model": "drill.Order", "on": ["changed"], "fields": [*fields]}
    return {**whole, **members}


STATE: Final = {"path": "state", "lookup": "exact", "parameter": "state"}
WRONG: Final[list[tuple[JsonObject, str, str]]] = [
    ({"on": []}, "Choose what happens to a row.", "on"),
    ({"on": ["sold"]}, "$.on[0]: The value is not one of", "on.0"),
    ({"model": "drill.Stock", "fields": ["sku"]}, "opens drill.Stock with “cha", "on"),
    ({"model": "drill.Item"}, "No code opens the model “drill.Item”", "model"),
    ({"fields": ["margin"]}, "“margin” of drill.Order cannot be shown", "fields.0"),
    ({"fields": []}, "Choose at least one field to show.", "fields"),
    ({"watched": ["number"]}, "No code watches “number” of drill.Order.", "watched"),
    (
        {"on": ["created"], "watched": ["state"]},
        "Only what is changed can be",
        "watched",
    ),
    ({"on": ["deleted"], "filters": [STATE]}, "fits no condition", "filters"),
    ({"order": ["number"]}, "order", ""),
    ({"lists": []}, "lists", ""),
]


@pytest.mark.parametrize(("members", "sentence", "place"), WRONG)
def test_what_cannot_be_told(
    orders: ChangeKind, members: JsonObject, sentence: str, place: str
) -> None:
    wrong = config("number", **members)
    (problem,) = orders.config_problems(EventDefinition(name="e"), wrong)
    assert sentence in problem.message
    assert problem.place == place
    assert orders.complete_safely(EventDefinition(name="e"), wrong).topic == ""


def test_what_follows_from_a_config(orders: ChangeKind) -> None:
    event = definition(orders, config("number", watched=["state"], filters=[STATE]))
    members: Any = (
        event.payload_schema["properties"],
        event.input_schema["properties"],
    )
    assert event.topic == "+drill.Order"
    assert event.demands.permissions == ("drill.see_states",)
    assert [[*each] for each in members] == [["number"], ["state"]]
    gone = definition(orders, {"model": "drill.Order", "on": ["deleted"]})
    assert gone.payload_schema["properties"] == {"id": {"type": "integer"}}
    assert gone.demands.permissions == ("drill.see_keys",)
    words = orders.sentence_safely(event, config("number", on=["created", "changed"]))
    assert words.endswith("It is told when a row is added or is changed.")
    parts = dict(orders.describe_safely(event, config("number", watched=["state"])))
    assert parts["Only if one of these changed"] == "state"
    assert orders.missing() is None
    assert ChangeKind(Registry()).missing() is not None


@pytest.mark.django_db
def test_what_is_told_of_what_happened(orders: ChangeKind, settings: Any) -> None:
    first, second = shop.order("1", note="a" * 900), shop.order("2")
    happened = [
        occurred(1, second.pk, "created"),
        occurred(2, second.pk, "changed"),
        occurred(3, first.pk, "changed", "state"),
        occurred(4, 0, "deleted"),
        occurred(5, 0, "changed", "state"),
        occurred(6, second.pk, "changed", "note", "state"),
    ]

    def numbers(**members: Any) -> list[tuple[int, Any]]:
        events = told(orders, config("number", **members), happened)
        return [(each.number, *each.data.values()) for each in events]

    assert numbers() == [(2, "2"), (3, "1"), (6, "2")]
    assert numbers(watched=["state"]) == [(3, "1"), (6, "2")]
    both = numbers(on=["created", "changed"], watched=["state"])
    assert both == [(1, "2"), (3, "1"), (6, "2")]
    assert numbers(on=["deleted"]) == numbers(on=["deleted"], fields=[]) == [(4, 0)]
    many = replace(happened[0], data={"on": "changed", "changed": [], "many": True})
    (gap,) = told(orders, config("number"), [many])
    assert gap.is_gap
    assert told(orders, config("number", watched=["state"]), [many]) == []
    settings.MCP = {**settings.MCP, "LIMITS": {"EVENT_SIZE": 800}}
    assert [each.data for each in told(orders, config("note"), happened[2:3])] == [{}]
