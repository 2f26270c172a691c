"""Models of a test's own: their tables, and models and rows that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import connection, models

from mcp_app.catalog.registry import Registry


@contextmanager
def tables_of(*drawn: Any) -> Iterator[None]:
    """Have tables of models, outside of any transaction."""
    with connection.schema_editor() as editor:
        for each in drawn:
            editor.create_model(each)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for each in reversed(drawn):
                editor.delete_model(each)


class Lying(models.QuerySet[Any]):
    def count(self) -> int:
        return -1


MANAGERS: Final[Sequence[Callable[[], Any]]] = (
    models.Manager,
    models.Manager.from_queryset(Lying),
)
_TEXTS: Final = ["", "ann", "Ann Smith", "%_\\"]
COLUMNS: Final[Mapping[str, tuple[Any, Mapping[str, Any], Sequence[Any]]]] = {
    "name": (models.CharField, {"max_length": 20, "blank": True}, _TEXTS),
    "title": (models.CharField, {"max_length": 20}, _TEXTS),
    "badge_key": (models.CharField, {"max_length": 20}, _TEXTS),
    "note": (models.TextField, {"blank": True}, _TEXTS),
    "state": (
        models.CharField,
        {"max_length": 9, "choices": [(None, "?"), ("", "none"), ("a", "A")]},
        ["", "a", "of old"],
    ),
    "level": (
        models.IntegerField,
        {"choices": [(None, "(unknown)"), (1, "one"), (2, "two")]},
        [1, 2, 7],
    ),
    "amount": (models.BigIntegerField, {}, [0, -(2**40)]),
    "weight": (models.FloatField, {}, [0.1, -1e300]),
    "price": (
        models.DecimalField,
        {"max_digits": 9, "decimal_places": 3},
        [Decimal(1), Decimal("-0.001")],
    ),
    "done": (models.BooleanField, {}, [True, False]),
    "day": (models.DateField, {}, [date(1, 1, 1), date(2026, 11, 25)]),
    "moment": (models.DateTimeField, {}, [datetime(2026, 11, 25, tzinfo=UTC)]),
    "hour": (models.TimeField, {}, [time(23, 59)]),
    "length": (models.DurationField, {}, [timedelta(days=-1, seconds=3)]),
    "address": (models.GenericIPAddressField, {}, ["::1", "10.0.0.1"]),
    "number": (models.UUIDField, {}, [UUID(int=7)]),
    "data": (models.JSONField, {}, [{"a": [None]}, 1, "x"]),
}
EVENTS: Final[Any] = ("created", "changed", "deleted")
KEYS: Final[Sequence[Callable[[], Any]]] = (
    lambda: models.BigAutoField(primary_key=True),
    lambda: models.UUIDField(primary_key=True, default=uuid4),
    lambda: models.CharField(primary_key=True, max_length=40, default=uuid4),
    lambda: models.SlugField(primary_key=True, default=uuid4),
)


def draw_models(random: Random) -> list[Any]:
    """Return two models, each with a unique `code`, in an isolated registry."""
    drawn: list[Any] = []
    for at in range(2):
        names = random.sample(sorted(COLUMNS), 6)
        parts: dict[str, Any] = {
            "__module__": __name__,
            "Meta": type("Meta", (), {"app_label": "drill"}),
            "objects": random.choice(MANAGERS)(),
            "code": models.CharField(max_length=9, unique=True),
            "hidden": models.BooleanField(default=False),
        }
        for name in names:
            column, options, _values = COLUMNS[name]
            parts[name] = column(null=random.random() < 0.6, **options)
        if drawn and random.random() < 0.3:
            own: Any = {"primary_key": True, "related_name": f"key_of_{at}"}
            parts["owner"] = models.OneToOneField(drawn[-1], models.CASCADE, **own)
        else:
            parts["key"] = random.choice(KEYS)()
        for number, target in enumerate(["self", *drawn]):
            kind: Any = random.choice([models.ForeignKey, models.OneToOneField])
            link: Any = {"null": True, "related_name": f"back_{at}_{number}"}
            link |= random.choice([{"to_field": "code"}, {}])
            parts[f"to_{number}"] = kind(target, models.SET_NULL, **link)
        many: Any = {"related_name": f"many_{at}"}
        parts["several"] = models.ManyToManyField(
            random.choice(["self", *drawn]), **many
        )
        drawn.append(type(f"Drawn{at}", (models.Model,), parts))
    return drawn


def draw_rows(random: Random, drawn: Sequence[Any]) -> None:
    """Write rows of which some are hidden, and some point at others."""
    rows = {
        model: [_drawn_row(random, model, at) for at in range(4)] for model in drawn
    }
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


def _drawn_row(random: Random, model: Any, at: int) -> Any:
    row = model(code=f"c{at}", hidden=random.random() < 0.4)
    for field in model._meta.concrete_fields:
        if field.name == "owner":
            row.owner = field.related_model._base_manager.get(code=row.code)
        elif field.name in COLUMNS and (not field.null or random.random() < 0.6):
            setattr(row, field.name, random.choice(COLUMNS[field.name][2]))
    row.save(force_insert=True)
    return row


def open_drawn(random: Random, drawn: Sequence[Any], registry: Registry) -> None:
    """Open all fields of models, with the tools of each."""
    for model in drawn:

        def visible(request: object, model: Any = model) -> Any:
            return model._base_manager.filter(hidden=False)

        fields = [
            each.get_accessor_name()
            if each.auto_created and not each.concrete
            else each.name
            for each in model._meta.get_fields()
        ]
        fields += [
            each.attname for each in model._meta.concrete_fields if each.is_relation
        ]
        rows: Any = random.choice([visible, "all"])
        registry.open_model(
            model,
            fields=random.sample(fields, len(fields)),
            rows=rows,
            permission="",
            events=EVENTS if rows == "all" else EVENTS[:2],
        )
        registry.model_tools(model)
