"""What is told of any model fits what is promised of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.test.utils import isolate_apps
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mcp_app.admin.editors.lookup_preview import preview_of
from mcp_app.catalog.open_models import FieldKind, OpenModel
from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.kinds.query.changes import ChangeKind
from mcp_app.kinds.query.config import MEASURES
from mcp_app.kinds.query.kind import QueryKind
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject
from tests.kinds.query.drawn_models import draw_models, draw_rows, open_drawn, tables_of
from tests.kinds.query.test_changes import Caller, definition, occurred, told
from tests.toolsets.people import client_of, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=int(os.environ.get("QUERY_EXAMPLES", "4")),
    # Smaller numbers are no smaller models.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_each_answer_fits_its_schema(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - nothing is kept secret
    registry = Registry()
    user = User.objects.first() or person("ada", is_superuser=True)
    with isolate_apps("tests.drill"):
        drawn = draw_models(random)
        with tables_of(*drawn):
            draw_rows(random, drawn)
            open_drawn(random, drawn, registry)
            assert registry.tools
            assert not registry.toolset_problems
            _call_tools(registry, random, user)
            for model in registry.open_models.values():
                _look_up(registry, model, random, user)


def _call_tools(registry: Registry, random: Random, user: User) -> None:
    client = client_of(user, registry)
    for name, tool in registry.tools.items():
        schema: Any = tool.definition.input_schema
        if name.endswith("_get"):
            rows = client.call(name.replace("_get", "_list")).data["rows"]
            asked = [{"key": row.get("key", row.get("owner_id"))} for row in rows]
        else:
            answer = client.call(name).data
            assert answer.get("total", 0) == len(answer.get("rows", ()))
            asked = [
                {parameter: value}
                for parameter, each in schema["properties"].items()
                for value in each.get("enum", [True] * (each.get("type") == "boolean"))
            ]
        for arguments in random.sample(asked, min(4, len(asked))):
            client.call(name, **arguments)
    for model in registry.open_models.values():
        name, parts = f"{model.model.__name__.lower()}_list", [True, False]
        total = client.call(name).data["total"]
        nullable = [n for n, field in model.filters.items() if field.nullable]
        for each in random.sample(nullable, 3):
            asked = [{f"{each}_empty": part} for part in parts]
            totals = [client.call(name, **part).data["total"] for part in asked]
            assert sum(totals) == total
            assert client.try_call(name, **{each: None}).is_error


def _paths(registry: Registry, model: OpenModel, steps: int = 3) -> Iterator[str]:
    for name, field in model.fields.items():
        if field.kind is FieldKind.TO_MANY:
            continue
        yield name
        if field.kind is FieldKind.TO_ONE and steps > 1:
            target = registry.open_models[field.target_model._meta.label]
            yield from (
                f"{name}.{path}" for path in _paths(registry, target, steps - 1)
            )
            yield f"{name}.pk"


def _look_up(registry: Registry, model: OpenModel, random: Random, user: User) -> None:
    kind, changes = QueryKind(registry), ChangeKind(registry)
    paths = [*_paths(registry, model)]
    shown = random.sample(paths, 12)
    rows = {"model": model.label, "fields": shown}
    measures = [
        {"aggregate": aggregate, "name": f"m_{name}_{aggregate}", "path": name}
        for name, field in model.fields.items()
        for aggregate, kinds in MEASURES.items()
        if field.kind in kinds
    ]
    groups = {
        "model": model.label,
        "answer": "groups",
        "group_by": [random.choice(paths)],
        "measures": random.sample(measures, min(3, len(measures)))
        or [{"aggregate": "count", "name": "c"}],
    }
    for config in (rows, groups):
        if kind.config_problems(ToolDefinition(name="t"), config):
            continue
        tool = kind.complete(ToolDefinition(name="t"), config)
        run = kind.tool_runnable(tool, config)
        answer: Any = run.run(ctx=Caller("ada"), **run.bind({}))
        _check(tool.output_schema, answer.structured)
        assert "problem" not in preview_of(config, registry.open_models, user)
    on = sorted(model.events)
    config = {**rows, "on": on}
    if not changes.config_problems(definition(changes, config), config):
        keys = [*model.model._base_manager.values_list("pk", flat=True)]
        for number, each in enumerate(product(keys, on)):
            for event in told(changes, config, [occurred(number, *each)]):
                _check(definition(changes, config).payload_schema, event.data)


def _check(schema: Any, answer: JsonObject) -> None:
    assert [*schemas.compile_schema(schema).violations(answer)] == [], answer


class Wordy(models.IntegerField):  # type: ignore[type-arg]
    def from_db_value(self, value: int, *_others: object) -> str:
        return f"about {value}"


@isolate_apps("tests.drill")
def test_a_preview_says_what_does_not_fit() -> None:
    class Guess(models.Model):  # noqa: DJ008
        level = Wordy()

        class Meta:
            app_label = "drill"

    registry, config = Registry(), {"model": "drill.Guess", "fields": ["level"]}
    registry.open_model(Guess, fields=["level"], rows="all", permission="")
    with tables_of(Guess):
        Guess(level=7).save()
        context = preview_of(config, registry.open_models, person("ada"))
    assert "$.rows[0].level: The value is not of type" in context["problem"]
