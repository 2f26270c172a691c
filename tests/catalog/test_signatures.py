from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from mcp_app.catalog.callables import Function, inspect_function
from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.signatures import Header, Signature
from mcp_app.interface.context import SyncContext
from mcp_app.interface.errors import RegistrationError
from mcp_app.protocol import schemas
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.schemas import Violation


class Size(enum.Enum):
    """How big."""

    SMALL = "s"
    LARGE = "l"


@dataclass
class Line:
    article: str
    count: int = 1


@dataclass
class Folder:
    name: str
    folders: list[Folder] = field(default_factory=list)


class Address(TypedDict):
    street: str
    floor: NotRequired[int]


class Customer(BaseModel):
    """Who orders."""

    name: str = Field(description="In full", alias="fullName")


def signature(function: Function) -> Signature:
    return Signature(inspect_function(function))


def properties(function: Function) -> Any:
    return signature(function).input_schema["properties"]


def test_two_numbers() -> None:
    def add(a: int, b: int = 2) -> int:
        return a + b

    assert signature(add).input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_no_parameters() -> None:
    def nothing(ctx: SyncContext) -> None: ...

    found = signature(nothing)
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert found.input_schema == empty
    assert found.bind_arguments({}) == {}


HINTS: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (str, {"type": "string"}, "a", "a"),
    (int, {"type": "integer"}, 1.0, 1),
    (float, {"type": "number"}, 1, 1.0),
    (bool, {"type": "boolean"}, True, True),
    (Any, {}, {"a": [None]}, {"a": [None]}),
    (
        Size,
        {"type": "string", "enum": ["s", "l"], "description": "How big."},
        "s",
        Size.SMALL,
    ),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
    (
        set[Literal["a"]],
        {
            "type": "array",
            "items": {"type": "string", "const": "a", "enum": ["a"]},
            "uniqueItems": True,
        },
        ["a"],
        {"a"},
    ),
    (
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"a": 1},
        {"a": 1},
    ),
    (
        Annotated[int, Field(ge=1, description="Many")],
        {"type": "integer", "minimum": 1, "description": "Many"},
        3,
        3,
    ),
    (
        Annotated[str, "A word", Field(max_length=3)],
        {"type": "string", "maxLength": 3, "description": "A word"},
        "abc",
        "abc",
    ),
]


@pytest.mark.parametrize(("hint", "schema", "given", "bound"), HINTS)
def test_hints(hint: Any, schema: Any, given: Any, bound: Any) -> None:
    def function(value) -> None: ...  # type: ignore[no-untyped-def]

    function.__annotations__["value"] = hint
    found = signature(function)
    assert found.input_schema["properties"] == {"value": schema}
    assert schemas.compile_schema(found.input_schema).is_valid({"value": given})
    result = found.bind_arguments({"value": given})["value"]
    assert result == bound
    assert type(result) is type(bound)


def test_classes_stand_in_line() -> None:
    def order(
        lines: list[Line], home: Address, customer: Customer, root: Folder
    ) -> None: ...

    def described(**properties: Any) -> dict[str, Any]:
        """Return the schema of an object whose first member alone is required."""
        needed = {"type": "object", "required": [*properties][:1]}
        return {**needed, "properties": properties, "additionalProperties": False}

    folders = {"type": "array", "items": {"$ref": "#/$defs/Folder"}}
    found = signature(order)
    line = described(
        article={"type": "string"}, count={"type": "integer", "default": 1}
    )
    assert found.input_schema["properties"] == {
        "lines": {"type": "array", "items": line},
        "home": described(street={"type": "string"}, floor={"type": "integer"}),
        "customer": {
            "type": "object",
            "properties": {"fullName": {"type": "string", "description": "In full"}},
            "required": ["fullName"],
            "description": "Who orders.",
        },
        "root": {"$ref": "#/$defs/Folder"},
    }
    # Only what contains itself is named.
    whole = described(name={"type": "string"}, folders=folders)
    assert found.input_schema["$defs"] == {"Folder": whole}
    given = {
        "lines": [{"article": "tea"}],
        "home": {"street": "Main"},
        "customer": {"fullName": "Ada"},
        "root": {"name": "/", "folders": [{"name": "a"}]},
    }
    assert schemas.compile_schema(found.input_schema).is_valid(given)
    assert found.bind_arguments(given) == {
        "lines": [Line("tea")],
        "home": {"street": "Main"},
        "customer": Customer(fullName="Ada"),
        "root": Folder("/", [Folder("a")]),
    }


def test_defaults_stay_with_the_function() -> None:
    def order(
        lines: Sequence[str] = (),
        day: dt.date = dt.date(2026, 1, 31),
        size: Size = Size.SMALL,
        most: float = float("inf"),
        marker: Any = object(),  # noqa: B008
    ) -> None: ...

    assert properties(order) == {
        "lines": {"type": "array", "items": {"type": "string"}, "default": []},
        "day": {"type": "string", "format": "date", "default": "2026-01-31"},
        "size": {
            "type": "string",
            "enum": ["s", "l"],
            "description": "How big.",
            "default": "s",
        },
        "most": {"type": "number"},
        "marker": {},
    }
    assert signature(order).bind_arguments({}) == {}


def test_fields_of_pydantic_as_defaults() -> None:
    def order(
        count: int = Field(3, ge=1, description="How many"),
        name: str = Field(description="Whose"),
        sort: Annotated[str, Field(alias="from", default="here")] = "there",
    ) -> None: ...

    found = signature(order)
    assert found.input_schema["properties"] == {
        "count": {
            "type": "integer",
            "minimum": 1,
            "default": 3,
            "description": "How many",
        },
        "name": {"type": "string", "description": "Whose"},
        "from": {"type": "string", "default": "there"},
    }
    assert found.input_schema["required"] == ["name"]
    assert found.bind_arguments({"name": "a"}) == {
        "count": 3,
        "name": "a",
        "sort": "here",
    }
    assert found.bind_arguments({"name": "a", "count": 1, "from": "x"}) == {
        "count": 1,
        "name": "a",
        "sort": "x",
    }


def test_descriptions_come_from_the_docstring_unless_the_hint_has_one() -> None:
    def order(
        a: int, b: Annotated[int, "hint"], c: Annotated[int, Field(gt=0)]
    ) -> None:
        """Order.

        Args:
            a: First.
            b: Second.
            c: Third.
        """

    described = {name: each["description"] for name, each in properties(order).items()}
    assert described == {"a": "First.", "b": "hint", "c": "Third."}


def test_headers() -> None:
    def query(
        region: Annotated[str, Header("Region")],
        size: Annotated[Size | None, "Big?", Header("Size")] = None,
    ) -> None: ...

    found = signature(query)
    assert found.input_schema["properties"] == {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "size": {
            "type": "string",
            "enum": ["s", "l"],
            "description": "Big?",
            "x-mcp-header": "Size",
        },
    }
    assert len(mirrored_parameters(found.input_schema)) == 2


def test_names_that_pydantic_models_could_not_have() -> None:
    def odd(_private: int, model_config: int, json: int, schema: int) -> None: ...

    given = {"_private": 1, "model_config": 2, "json": 3, "schema": 4}
    assert signature(odd).bind_arguments(given) == given


def test_strings_become_what_the_hint_says() -> None:
    def read(id: int, day: dt.date, deep: bool) -> None: ...

    bound = signature(read).bind_arguments(
        {"id": "7", "day": "2026-01-31", "deep": "true"}
    )
    assert bound == {"id": 7, "day": dt.date(2026, 1, 31), "deep": True}


def test_refused_arguments_are_named() -> None:
    def order(lines: list[Line], day: dt.date) -> None: ...

    with pytest.raises(ArgumentsRefused) as refusal:
        signature(order).bind_arguments({"lines": [{"article": 1}], "more": 1})
    assert refusal.value.violations == [
        Violation(
            "$.lines[0].article", "string_type", "Input should be a valid string."
        ),
        Violation("$.day", "missing", "Field required."),
        Violation("$.more", "extra_forbidden", "Extra inputs are not permitted."),
    ]


def test_a_partial_argument_is_optional() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    assert signature(partial(add, b=2)).input_schema["required"] == ["a"]


class Opaque: ...


def opaque(value: Opaque) -> None: ...
def number_in_header(value: Annotated[float, Header("Value")]) -> None: ...
def bad_header(value: Annotated[str, Header("no token")]) -> None: ...
def same_headers(
    a: Annotated[str, Header("Same")], b: Annotated[str, Header("same")]
) -> None: ...


@pytest.mark.parametrize(
    "function", [opaque, number_in_header, bad_header, same_headers]
)
def test_refused_at_registration(function: Function) -> None:
    with pytest.raises(RegistrationError, match=f"{function.__name__}: "):
        signature(function)


def test_what_it_returns_is_read_when_it_is_asked_for() -> None:
    def make() -> Opaque:
        return Opaque()

    found = signature(make)
    with pytest.raises(RegistrationError, match="Opaque cannot be written as JSON"):
        assert found.output_schema


def one(a: int, b: int = 2) -> int:
    return a + b


NEEDS_A = "The function one requires 'a', but the schema does not."
NO_C = "The function one has no parameter 'c'."


@pytest.mark.parametrize(
    ("schema", "sentences"),
    [
        ({"properties": {"a": {}}, "required": ["a"]}, []),
        ({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}, []),
        ({"properties": {"a": {}}}, [NEEDS_A]),
        ({"properties": {"a": {}, "c": {}}, "required": ["a"]}, [NO_C]),
        ({}, [NEEDS_A]),
    ],
)
def test_fits(schema: dict[str, Any], sentences: list[str]) -> None:
    assert signature(one).schema_problems(schema) == sentences
