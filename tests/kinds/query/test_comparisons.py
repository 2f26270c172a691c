from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.core.validators import MinValueValidator
from django.db import models

from mcp_app.catalog.json_schemas import text_like
from mcp_app.catalog.open_models import FieldKind, OpenField
from mcp_app.kinds.query.comparisons import (
    PERIODS,
    Unfit,
    clean_value,
    comparisons_of,
    last_days,
    next_days,
    period_days,
    value_schema,
)
from mcp_app.protocol import schemas
from tests.kinds.query import interpreter, shop

TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
SOME: dict[str, Any] = {"type": "array", "minItems": 1, "maxItems": 100}


def field(path: str) -> OpenField:
    model, _dot, name = path.partition(".")
    return shop.shop()[f"drill.{model}"].all_fields[name]


@pytest.mark.parametrize(
    ("path", "comparisons"),
    [
        ("Order.number", "words icontains istartswith iexact exact in"),
        ("Order.note", "words icontains istartswith iexact exact in isempty"),
        ("Order.state", "in exact"),
        ("Order.total", "range exact gte lte"),
        ("Order.created", "range period last_days next_days exact gte lte"),
        ("Order.due", "range period last_days next_days exact gte lte isempty"),
        ("Order.id", "exact in"),
        ("Order.customer", "in exact isempty"),
        ("Invoice.paid", "exact isempty"),
        ("Order.items", "in isempty"),
    ],
)
def test_what_each_field_can_be_asked_by(path: str, comparisons: str) -> None:
    assert comparisons_of(field(path)) == (*comparisons.split(),)


@pytest.mark.parametrize(
    ("path", "comparison", "schema"),
    [
        ("Order.number", "exact", TEXT),
        ("Customer.email", "exact", {**TEXT, "format": "email"}),
        ("Customer.email", "icontains", TEXT),
        ("Order.state", "exact", {"type": "string", "enum": ["open", "sent", "back"]}),
        ("Order.total", "gte", {"type": "number"}),
        ("Order.weight", "lte", {"type": "number"}),
        ("Order.id", "exact", {"type": "integer"}),
        ("Order.customer", "exact", {"type": "integer"}),
        ("Customer.country", "exact", TEXT),
        ("Invoice.key", "exact", {**TEXT, "format": "uuid"}),
        ("Order.invoice", "exact", {**TEXT, "format": "uuid"}),
        ("Invoice.paid", "exact", {"type": "boolean"}),
        ("Order.due", "gte", {"type": "string", "format": "date"}),
        ("Order.created", "exact", text_like("date-time")),
        (
            *("Order.created", "from"),
            {"type": "string", "examples": ["2026-11-18", "2026-11-18T14:00:00"]},
        ),
        ("Order.total", "to", {"type": "number"}),
        (
            *("Order.total", "range"),
            {
                **{"type": "array", "minItems": 2, "maxItems": 2},
                "items": {"type": ["number", "null"]},
            },
        ),
        ("Order.note", "isempty", {"type": "boolean"}),
        ("Order.due", "period", {"type": "string", "enum": [*PERIODS]}),
        ("Order.due", "last_days", {"type": "integer", "minimum": 1, "maximum": 3650}),
        (
            *("Order.state", "in"),
            {**SOME, "items": {"type": "string", "enum": ["open", "sent", "back"]}},
        ),
    ],
)
def test_schemas_of_values(path: str, comparison: str, schema: Any) -> None:
    found = value_schema(field(path), comparison)
    assert found == schema
    schemas.compile_schema(found)


KEY = "7d1d0a3c-5f54-4a7f-9d9e-0a6a4e1a2b3c"
TEN = datetime(2026, 11, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("path", "comparison", "value", "cleaned"),
    [
        ("Order.number", "exact", " a ", " a "),
        ("Order.state", "in", ["open", "back"], ["open", "back"]),
        ("Order.total", "gte", 9.999, Decimal("9.999")),
        ("Order.total", "gte", 3, Decimal(3)),
        ("Order.weight", "lte", 1, 1.0),
        ("Order.id", "exact", 7, 7),
        ("Order.customer", "in", [7, 8], [7, 8]),
        ("Order.items", "in", [7, 8], [7, 8]),
        ("Order.suppliers", "in", [7, 8], [7, 8]),
        ("Customer.country", "exact", "de", "de"),
        ("Invoice.key", "exact", KEY, UUID(KEY)),
        ("Invoice.paid", "exact", False, False),
        ("Order.due", "exact", "2026-11-02", date(2026, 11, 2)),
        ("Order.created", "gte", "2026-11-02T10:00:00Z", TEN),
        ("Order.created", "gte", "2026-11-02T12:00:00+02:00", TEN),
        ("Order.note", "isempty", True, True),
        ("Order.due", "period", "today", "today"),
        ("Order.note", "icontains", "50%", "50%"),
        ("Order.note", "words", " 50%  Ann ", ["50%", "Ann"]),
        ("Order.total", "range", [None, 3], [None, Decimal(3)]),
        ("Order.created", "from", "2026-11-02", datetime(2026, 11, 2, tzinfo=UTC)),
        ("Order.created", "to", "2026-11-02", datetime(2026, 11, 3, tzinfo=UTC)),
        ("Order.created", "from", "2026-11-02T10:00Z", TEN),
        ("Order.created", "to", "2026-11-02 12:00+02:00", TEN + datetime.resolution),
    ],
)
def test_values_as_the_column_has_them(
    path: str, comparison: str, value: Any, cleaned: Any
) -> None:
    found = clean_value(field(path), comparison, value)
    assert found == cleaned
    assert type(found) is type(cleaned)


@pytest.mark.parametrize(
    ("path", "comparison", "value", "sentence"),
    [
        ("Order.number", "exact", "a\0", "Null characters are not allowed."),
        ("Order.number", "icontains", "a\0", "Null characters are not allowed."),
        ("Order.number", "words", " \t", "It has 0 words. Write one to 10."),
        ("Order.number", "words", "a " * 11, "It has 11 words."),
        ("Order.number", "exact", "\ud800", "A text has a character that is no"),
        (
            "Order.number",
            "in",
            ["a", "\ud800"],
            "A text has a character that is no",
        ),
        pytest.param(
            *("Stock.level", "gte", 10**5000, "This number is too large."), id="level"
        ),
        ("Order.total", "gte", float("1e999"), "Enter a number."),
        ("Order.id", "exact", 10**30, "less than or equal to"),
        pytest.param("Order.id", "exact", 10**5000, "less than or equal to", id="id"),
        ("Order.customer", "exact", "x", "must be an integer"),
        ("Invoice.key", "exact", "x", "is not a valid UUID"),
        ("Order.due", "exact", "2026-13-02", "Enter a valid date."),
        ("Order.created", "exact", "yesterday", "Enter a valid date/time."),
        (
            *("Order.created", "gte", "9999-12-31T23:59:59-23:59"),
            "“9999-12-31T23:59:59-23:59” is before the year 1 or after the year 9999",
        ),
        ("Order.created", "lte", "0001-01-01T00:00:00+23:59", "before the year 1"),
        ("Order.created", "to", "9999-12-31", "after the year 9999"),
        ("Order.created", "from", "2.11.2026 10:00", "Write a day or a moment, such"),
    ],
)
def test_values_that_the_column_cannot_have(
    path: str, comparison: str, value: Any, sentence: str
) -> None:
    with pytest.raises(Unfit, match=sentence):
        clean_value(field(path), comparison, value)


def test_what_only_forms_forbid_may_be_asked_for() -> None:
    columns: list[tuple[Any, object, FieldKind]] = [
        (models.FilePathField(path="/no/such/directory"), "a", FieldKind.TEXT),
        (models.FileField(), "a.txt", FieldKind.TEXT),
        (models.URLField(), "example.org", FieldKind.TEXT),
        (models.EmailField(), "nobody", FieldKind.TEXT),
        (models.IntegerField(validators=[MinValueValidator(1)]), 0, FieldKind.NUMBER),
    ]
    for column, value, kind in columns:
        odd = OpenField("odd", kind, column)
        assert value_schema(odd, "exact")["type"] in ("string", "integer")
        assert clean_value(odd, "exact", value) == value


def test_durations() -> None:
    length = OpenField("length", FieldKind.DURATION, models.DurationField())
    assert clean_value(length, "gte", "PT1H30M") == timedelta(hours=1, minutes=30)


def test_a_key_that_is_a_time_is_in_utc() -> None:
    key = OpenField("at", FieldKind.KEY, models.DateTimeField())
    with pytest.raises(Unfit, match="after the year 9999"):
        clean_value(key, "exact", "9999-12-31T23:59:59-12:00")


def test_periods() -> None:
    turns = [date(2026, 1, 31), date(2025, 12, 31), date(2026, 1, 1)]
    for today, name in product([shop.TODAY, *turns], PERIODS[:-2]):
        first, end = period_days(today, name)
        every = [today + timedelta(days=each) for each in range(-800, 800)]
        days = [day for day in every if interpreter.PERIODS[name](day, today)]
        assert [*days[:1], *days[-1:]] == [first, end - timedelta(days=1)], name


def test_last_and_next_days() -> None:
    assert next_days(shop.TODAY, 1) == (date(2026, 11, 25), date(2026, 11, 26))
    assert next_days(date(9999, 1, 1), 3650).end == date.max
    assert last_days(shop.TODAY, 1) == (date(2026, 11, 25), date(2026, 11, 26))
    assert last_days(shop.TODAY, 7).first == date(2026, 11, 19)
    assert last_days(date(5, 1, 1), 3650).first == date.min
