from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from django import forms as django_forms
from django.db.models import TextChoices
from pydantic import BaseModel, Field, SecretStr, field_validator

from mcp_app.catalog.forms import FormError, UnfitForm, for_revision, form_schema
from mcp_app.interface.errors import ClientCannot
from mcp_app.protocol import schemas
from mcp_app.protocol.revisions import V2025_06_18, V2025_11_25, V2026_07_28


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(TextChoices):
    SMALL = "s", "Small"
    LARGE = "l", "Large"


@dataclass(frozen=True)
class Order:
    name: str
    day: dt.date
    colour: Colour = Colour.RED
    size: Size = Size.SMALL
    extras: tuple[Literal["milk", "sugar"], ...] = ()
    number: UUID | None = None


class Payment(BaseModel):
    """Who pays."""

    amount: Decimal = Field(gt=0, le=100, description="How much")
    tip: Decimal | None = Decimal("0.5")
    currency: Literal["EUR"] = Field("EUR", alias="Currency")
    legacy: Annotated[
        str, Field(json_schema_extra={"enum": ["a"], "enumNames": ["A"]})
    ] = "a"

    @field_validator("amount")
    @classmethod
    def is_even(cls, amount: Decimal) -> Decimal:
        if amount % 2:
            raise ValueError("odd")
        return amount


class Booking(django_forms.Form):
    guest = django_forms.CharField(max_length=20)
    day = django_forms.DateField(required=False)
    nights = django_forms.IntegerField(min_value=1, initial=1)
    breakfast = django_forms.BooleanField(required=False)
    meals = django_forms.MultipleChoiceField(
        choices=[("l", "Lunch"), ("d", "Dinner")], required=False
    )


FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "minimum": 18, "default": 30},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["age"],
}


def titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": title[0].lower(), "title": title} for title in titles]


SOURCES: list[tuple[Any, dict[str, Any], list[str]]] = [
    (
        Order,
        {
            "name": {"type": "string"},
            "day": {"type": "string", "format": "date"},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "size": {
                "type": "string",
                "oneOf": titled("Small", "Large"),
                "default": "s",
            },
            "extras": {
                "type": "array",
                "items": {"type": "string", "enum": ["milk", "sugar"]},
                "default": [],
            },
            "number": {"type": "string"},
        },
        ["name", "day"],
    ),
    (
        Payment,
        {
            "amount": {"type": "number", "maximum": 100, "description": "How much"},
            "tip": {"type": "number"},
            "Currency": {"type": "string", "enum": ["EUR"], "default": "EUR"},
            "legacy": {
                "type": "string",
                "enum": ["a"],
                "enumNames": ["A"],
                "default": "a",
            },
        },
        ["amount"],
    ),
    (
        Booking,
        {
            "guest": {"type": "string", "maxLength": 20, "title": "Guest"},
            "day": {"type": "string", "format": "date", "title": "Day"},
            "nights": {
                "type": "integer",
                "minimum": 1,
                "title": "Nights",
                "default": 1,
            },
            "breakfast": {"type": "boolean", "title": "Breakfast"},
            "meals": {
                "type": "array",
                "items": {"anyOf": titled("Lunch", "Dinner")},
                "title": "Meals",
            },
        },
        ["guest", "nights"],
    ),
    (FLAT, FLAT["properties"], ["age"]),
    (
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **FLAT},
        FLAT["properties"],
        ["age"],
    ),
    ({"type": "object", "properties": {}}, {}, []),
]


@pytest.mark.parametrize(("source", "properties", "required"), SOURCES)
def test_schemas(source: Any, properties: dict[str, Any], required: list[str]) -> None:
    schema = form_schema(source).schema
    assert schema == {"type": "object", "properties": properties, "required": required}
    schemas.check_schema(schema)


ANSWERS: list[tuple[Any, dict[str, Any], object]] = [
    (
        Order,
        {"name": "a", "day": "2026-01-31", "colour": "blue", "extras": ["milk"]},
        Order("a", dt.date(2026, 1, 31), Colour.BLUE, Size.SMALL, ("milk",)),
    ),
    (
        Order,
        {"name": "a", "day": "2026-01-31", "number": str(UUID(int=1)), "more": 1},
        Order("a", dt.date(2026, 1, 31), number=UUID(int=1)),
    ),
    (
        Payment,
        {"amount": 2, "Currency": "EUR"},
        Payment(amount=Decimal(2), Currency="EUR"),
    ),
    (FLAT, {"age": 20, "more": 1}, {"age": 20}),
]


@pytest.mark.parametrize(("source", "answer", "data"), ANSWERS)
def test_answers_have_the_type_of_the_form(
    source: Any, answer: dict[str, Any], data: object
) -> None:
    assert form_schema(source).parse(answer) == data


def test_the_answer_to_a_django_form_is_the_form() -> None:
    answer = {"guest": "Ada", "day": "2026-01-31", "nights": 2, "meals": ["l", "d"]}
    form = form_schema(Booking).parse(answer)
    assert isinstance(form, Booking)
    read = {"day": dt.date(2026, 1, 31), "breakfast": False}
    assert form.cleaned_data == {**answer, **read}


PLATE: dict[str, Any] = {
    "type": "object",
    "properties": {"plate": {"type": "string", "pattern": "^[A-Z]{2}$"}},
    "required": ["plate"],
}


class Plate(BaseModel):
    plate: str = Field(pattern=r"^\p{Lu}{2}$")


BAD_ANSWERS: list[tuple[Any, dict[str, Any], list[str]]] = [
    (Order, {"name": 1}, ["$", "$.name"]),
    (Order, {"name": "a", "day": "31.1.2026"}, ["$.day"]),
    (Order, {"name": "a", "day": "2026-01-31", "number": "x"}, ["$.number"]),
    (Payment, {"amount": 101}, ["$.amount"]),
    (Payment, {"amount": 0}, ["$.amount"]),
    (Payment, {"amount": 3}, ["$.amount"]),
    (Payment, {"amount": True}, ["$.amount"]),
    (FLAT, {"age": 17, "mail": "nobody"}, ["$.age", "$.mail"]),
    (PLATE, {"plate": "ab"}, ["$.plate"]),
    (Plate, {"plate": "ab"}, ["$.plate"]),
    (Booking, {"guest": "a" * 21, "nights": 1}, ["$.guest"]),
    (Booking, {"guest": " ", "nights": 1}, ["guest"]),
]


@pytest.mark.parametrize(("source", "answer", "places"), BAD_ANSWERS)
def test_answers_that_do_not_fit(
    source: Any, answer: dict[str, Any], places: list[str]
) -> None:
    with pytest.raises(FormError) as refusal:
        form_schema(source).parse(answer)
    problems = refusal.value.problems
    assert sorted(problem.partition(": ")[0] for problem in problems) == places
    assert all(problem.endswith(".") for problem in problems)
    assert str(refusal.value) == " ".join(problems)


class Nested(BaseModel):
    order: Order


class Listed(BaseModel):
    names: list[str]


class Secret(BaseModel):
    code: SecretStr


class Optional(BaseModel):
    orders: Order | None = None


class Upload(django_forms.Form):
    file = django_forms.FileField()


UNFIT: list[tuple[Any, str]] = [
    (Nested, "The field order is of the type 'object'"),
    (Optional, "The field orders is of the type 'object'"),
    (Listed, "The field names is a list"),
    (Secret, "The field code asks for a secret"),
    (Upload, "The field file is a FileField"),
    (int, "The form int has no fields."),
    ({"type": "array"}, "The schema of a form must have the type object"),
    ({**FLAT, "allOf": []}, "without allOf."),
    ({**FLAT, "required": ["name"]}, "The form requires name, but has no such field."),
    (
        {"type": "object", "properties": {"a": {"type": "string", "examples": []}}},
        "The field a has examples, which this kind of field cannot have.",
    ),
]


@pytest.mark.parametrize(("source", "sentence"), UNFIT)
def test_forms_that_no_client_could_show(source: Any, sentence: str) -> None:
    with pytest.raises(UnfitForm) as refusal:
        form_schema(source)
    assert sentence in str(refusal.value)


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"type": "string", "pattern": "("}, "wrong at $.properties.a.pattern"),
    ({"type": "number", "minimum": "x"}, "wrong at $.properties.a.minimum"),
    ({"type": "string", "title": 1}, "wrong at $.properties.a.title"),
]


@pytest.mark.parametrize(("field", "sentence"), BROKEN)
def test_forms_that_no_answer_could_be_checked_with(
    field: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UnfitForm) as refusal:
        form_schema({"type": "object", "properties": {"a": field}})
    assert str(refusal.value).startswith("Answers cannot be checked with this form.")
    assert sentence in str(refusal.value)


@dataclass(frozen=True)
class Misplaced:
    size: Literal["s", "l"] = "m"  # type: ignore[assignment]


def test_a_type_offers_its_default() -> None:
    with pytest.raises(UnfitForm, match="'m' is none of its choices"):
        form_schema(Misplaced)


@pytest.mark.parametrize("source", [PLATE, Plate])
def test_clients_see_no_pattern(source: Any) -> None:
    """The protocol's StringSchema has none: the answer is checked all the same."""
    read = form_schema(source)
    for revision in (V2025_06_18, V2025_11_25, V2026_07_28):
        shown = for_revision(read.schema, revision)
        assert shown["properties"]["plate"]["type"] == "string"
        assert "pattern" not in shown["properties"]["plate"]
    assert read.parse({"plate": "AB"})


CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "a"},
        "age": {"type": "integer", "default": 1},
        "sure": {"type": "boolean", "default": True},
        "plain": {"type": "string", "enum": ["a"], "default": "a"},
        "legacy": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
        "titled": {
            "type": "string",
            "title": "T",
            "oneOf": [{"const": "a", "title": "A"}],
            "default": "a",
        },
    },
    "required": ["name"],
}


def test_newer_revisions_have_it_all() -> None:
    for revision in (V2025_11_25, V2026_07_28):
        assert for_revision(CHOICES, revision) == CHOICES


def test_the_older_revision_has_few_defaults_and_no_titled_choices() -> None:
    legacy = {"type": "string", "enum": ["a"], "enumNames": ["A"]}
    properties = {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "sure": {"type": "boolean", "default": True},
        "plain": {"type": "string", "enum": ["a"]},
        "legacy": legacy,
        "titled": {**legacy, "title": "T"},
    }
    older = for_revision(CHOICES, V2025_06_18)
    assert older == {**CHOICES, "properties": properties}


def test_several_choices_at_once_need_a_newer_client() -> None:
    schema: Mapping[str, Any] = form_schema(Order).schema
    with pytest.raises(ClientCannot, match="The field extras allows several choices"):
        for_revision(dict(schema), V2025_06_18)
