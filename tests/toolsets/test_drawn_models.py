"""What is told of any model fits what is promised of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from random import Random
from typing import Any, Final
from uuid import UUID, uuid4

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
from tests.kinds.query.shop import tables_of
from tests.kinds.query.test_changes import Caller, definition, occurred, told
from tests.toolsets.people import client_of, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

# -- models and rows -------------------------------------------------------------------

_LINE: Final = partial(models.CharField, max_length=20)
_TEXTS: Final = ["", "ann", "Ann Smith", "%_\\"]
_STATES: Final = [(None, "?"), ("", "none"), ("a", "A")]
_LEVELS: Final = [(None, "(unknown)"), (1, "one"), (2, "two")]
_PRICE: Final = partial(models.DecimalField, max_digits=9, decimal_places=3)
COLUMNS: Final[Mapping[str, tuple[Any, Sequence[Any]]]] = {
    "name": (_LINE, _TEXTS),
    "badge_key": (_LINE, _TEXTS),
    "note": (models.TextField, _TEXTS),
    "state": (partial(_LINE, choices=_STATES), ["", "a", "of old"]),
    "level": (partial(models.IntegerField, choices=_LEVELS), [1, 2, 7]),
    "amount": (models.BigIntegerField, [0, -(2**40)]),
    # PostgreSQL squares the numbers of a mean.
    "weight": (models.FloatField, [0.1, -1e150]),
    "price": (_PRICE, [Decimal(1), Decimal("-0.001")]),
    "done": (models.BooleanField, [True, False]),
    "day": (models.DateField, [date(1, 1, 1), date(2026, 11, 25)]),
    "moment": (models.DateTimeField, [datetime(2026, 11, 25, tzinfo=UTC)]),
    "length": (models.DurationField, [timedelta(days=-1, seconds=3)]),
    "number": (models.UUIDField, [UUID(int=7)]),
    "data": (models.JSONField, [{"a": [None]}, 1, "x"]),
}
"""Makers of columns, and values."""
_OWNER: Final = partial(models.OneToOneField, primary_key=True)
KEYS: Final = (
    models.BigAutoField,
    partial(models.UUIDField, default=uuid4),
    partial(models.CharField, max_length=40, default=uuid4),
    partial(models.SlugField, default=uuid4),
)


class Lying(models.QuerySet[Any]):
    def count(self) -> int:
        return -1


def _draw_models(random: Random) -> list[Any]:
    """Return two models with odd keys and relations, also to themselves."""
    drawn: list[Any] = []
    for at in "01":
        parts: dict[str, Any] = {
            "__module__": __name__,
            "Meta": type("Meta", (), {"app_label": "drill"}),
            "objects": random.choice([models.Manager, Lying.as_manager])(),
            "code": models.CharField(max_length=9, unique=True),
            "hidden": models.BooleanField(default=False),
        }
        for name in random.sample(sorted(COLUMNS), 6):
            null, blank = random.random() < 0.6, random.random() < 0.5
            parts[name] = COLUMNS[name][0](null=null, blank=blank)
        if drawn and random.random() < 0.5:
            parts["owner"] = _OWNER(drawn[0], models.CASCADE, related_name="its_key")
        else:
            parts["key"] = random.choice(KEYS)(primary_key=True)
        for number, target in enumerate(["self", *drawn]):
            kind: Any = random.choice([models.ForeignKey, models.OneToOneField])
            link: Any = {"null": True, "related_name": f"back_{at}_{number}"}
            link |= random.choice([{"to_field": "code"}, {}])
            parts[f"to_{number}"] = kind(target, models.SET_NULL, **link)
        target = random.choice(["self", *drawn])
        parts["several"] = models.ManyToManyField(target, related_name=f"many_{at}")
        drawn.append(type(f"Drawn{at}", (models.Model,), parts))
    return drawn


def _draw_rows(random: Random, drawn: Sequence[Any]) -> None:
    """Write rows of which some are hidden, and some point at others."""
    rows = {model: [_draw_row(random, model, at) for at in range(4)] for model in drawn}
    for model in drawn:
        for field in model._meta.concrete_fields:
            if field.is_relation and not field.primary_key:
                targets = random.sample(rows[field.related_model], 4)
                for row, target in zip(rows[model], targets, strict=True):
                    setattr(row, field.name, random.choice([target, None]))
        several = random.sample(rows[model.several.rel.model], 2)
        for row in rows[model]:
            row.save()
            row.several.set(several)


def _draw_row(random: Random, model: Any, at: int) -> Any:
    row = model(code=f"c{at}", hidden=random.random() < 0.4)
    for field in model._meta.concrete_fields:
        if field.name == "owner":
            row.owner = field.related_model._base_manager.get(code=row.code)
        elif field.name in COLUMNS and (not field.null or random.random() < 0.6):
            setattr(row, field.name, random.choice(COLUMNS[field.name][1]))
    row.save(force_insert=True)
    return row


def _open(random: Random, model: Any, registry: Registry) -> None:
    options: Any = {"rows": "all", "events": ["created", "changed", "deleted"]}
    if random.random() < 0.5:
        rows = model._base_manager.filter(hidden=False)
        options = {"rows": lambda request: rows.all(), "events": ["created"]}
    names = {each.name for each in model._meta.get_fields()}
    names |= {each.attname for each in model._meta.concrete_fields}
    fields = random.sample(sorted(names), len(names))
    registry.open_model(model, fields=fields, permission="", **options)
    registry.model_tools(model)


# -- what is told ----------------------------------------------------------------------


@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=int(os.environ.get("QUERY_EXAMPLES", "4")),
    # Smaller numbers are no smaller models.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_each_answer_fits_its_schema(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    registry = Registry()
    user = User.objects.first() or person("ada", is_superuser=True)
    with isolate_apps("tests.drill"):
        drawn = _draw_models(random)
        with tables_of(*drawn):
            _draw_rows(random, drawn)
            for each in drawn:
                _open(random, each, registry)
            assert not registry.toolset_problems
            for model in registry.open_models.values():
                _call(registry, model, random, user)
                _look_up(registry, model, random, user)


def _call(registry: Registry, model: OpenModel, random: Random, user: User) -> None:
    client, name = client_of(user, registry), model.model.__name__.lower()
    whole = client.call(f"{name}_list").data
    assert whole["total"] == len(whole["rows"])
    for row in whole["rows"][:3]:
        client.call(f"{name}_get", key=row.get("key", row.get("owner_id")))
    for tool in (f"{name}_list", f"{name}_count"):
        schema: Any = registry.tools[tool].definition.input_schema
        values = [
            {parameter: value}
            for parameter, each in schema["properties"].items()
            for value in each.get("enum", ())
        ]
        for arguments in random.choices(values, k=4):
            client.call(tool, **arguments)
        if "length_from" in schema["properties"]:
            client.call(tool, length_from="-P2D", length_to="PT1H30M")
    texts = (models.CharField, models.TextField)
    may_be_empty = [
        name
        for name, field in model.filters.items()
        if field.nullable or (isinstance(field.source, texts) and field.source.blank)
    ]
    for each in random.sample(may_be_empty, 3):
        asked = ({f"{each}_empty": is_wanted} for is_wanted in (True, False))
        parts = [client.call(f"{name}_list", **part).data["total"] for part in asked]
        assert sum(parts) == whole["total"]
        assert client.try_call(f"{name}_list", **{each: None}).is_error


def _paths(registry: Registry, model: OpenModel, steps: int = 3) -> Iterator[str]:
    for name, field in model.fields.items():
        if field.kind is not FieldKind.TO_MANY:
            yield name
        if field.kind is FieldKind.TO_ONE and steps > 1:
            target = registry.open_models[field.target_model._meta.label]
            yield from (
                f"{name}.{path}" for path in _paths(registry, target, steps - 1)
            )
            yield f"{name}.pk"


def _look_up(registry: Registry, model: OpenModel, random: Random, user: User) -> None:
    queries, changes = QueryKind(registry), ChangeKind(registry)
    paths = [*_paths(registry, model)]
    measures = [
        {"aggregate": aggregate, "name": f"m_{name}_{aggregate}", "path": name}
        for name, field in model.fields.items()
        for aggregate, kinds in MEASURES.items()
        if field.kind in kinds
    ]
    measures = [{"aggregate": "count", "name": "c"}, *measures][-4:]
    groups = {"answer": "groups", "group_by": [random.choice(paths)]}
    rows = {"model": model.label, "fields": random.sample(paths, 12)}
    for config in (rows, {"model": model.label, **groups, "measures": measures}):
        tool = queries.complete(ToolDefinition(name="t"), config)
        if queries.config_problems(tool, config):
            # Such as a name that is there twice.
            continue
        run = queries.tool_runnable(tool, config)
        answer: Any = run.run(ctx=Caller("ada"), **run.bind({}))
        _check(tool.output_schema, answer.structured)
        assert "problem" not in preview_of(config, registry.open_models, user)
    config = {**rows, "on": sorted(model.events)}
    event = definition(changes, config)
    if not changes.config_problems(event, config):
        keys = [*model.model._base_manager.values_list("pk", flat=True)]
        happened = [occurred(1, *each) for each in product(keys, config["on"])]
        for each in told(changes, config, happened):
            _check(event.payload_schema, each.data)


def _check(schema: Any, answer: Any) -> None:
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
