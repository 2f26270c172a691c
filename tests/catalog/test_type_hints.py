from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
    get_type_hints,
)

import pytest
import typing_extensions
from pydantic import TypeAdapter

from mcp_app.catalog.type_hints import (
    SCALARS,
    Documentation,
    ScalarOutput,
    bare_hint,
    documentation,
    for_pydantic,
    hint_metadata,
    is_kind,
    or_none,
    scalar_of,
    scalar_schema,
    typed_dict,
    union_members,
    without_metadata,
    without_none,
)
from mcp_app.interface.questions import ToolOutput
from mcp_app.protocol.content import Text
from mcp_app.protocol.jsonrpc import UnserializableValue

Item = TypeVar("Item")
Alias = typing_extensions.TypeAliasType("Alias", Annotated[int, "An alias"])


class Box(Generic[Item]): ...


class Address(TypedDict, total=False):
    """Where somebody lives."""

    street: Required[str]
    city: str


class Person(TypedDict):
    name: str
    born: NotRequired[int]
    homes: list[Address]


def test_bare() -> None:
    twice = Annotated[Annotated[int, "x"], "y"]
    assert {bare_hint(each) for each in (int, Annotated[int, "x"], twice, Alias)} == {
        int
    }
    assert bare_hint(Annotated[int | None, "x"]) == int | None


def test_members() -> None:
    assert [*union_members(int)] == [int]
    assert [*union_members(int | str)] == [int, str]
    assert [*union_members(Annotated[int, 1] | None)] == [int, type(None)]
    assert [*union_members(Annotated[int | str, 1])] == [int, str]
    assert [*union_members(list[int] | Alias)] == [list[int], int]


def test_metadata() -> None:
    assert hint_metadata(Annotated[int, "a", 2]) == ("a", 2)
    assert hint_metadata(Annotated[int, "a"] | None) == ()
    assert without_metadata(Annotated[int, "a"]) is int
    assert without_metadata(int) is int


def test_without_none() -> None:
    assert without_none(int) is without_none(int | None) is int
    assert without_none(int | str | None) == int | str
    assert without_none(type(None)) is type(None)


def test_or_none_keeps_what_annotated_adds() -> None:
    assert or_none(int) == int | None
    assert or_none(Annotated[int, "x"]) == Annotated[int | None, "x"]


def test_is_kind() -> None:
    assert is_kind(bool, int)
    assert not any(is_kind(each, int) for each in (str, int | str, None))
    assert not is_kind(Box[int], Box)


@pytest.mark.parametrize(
    "annotation",
    [
        Person,
        list[Person],
        dict[str, Person] | None,
        Annotated[Person, "somebody"],
        tuple[Person, ...],
    ],
)
def test_pydantic_reads_typed_dicts_of_every_python(annotation: Any) -> None:
    readable = TypeAdapter(for_pydantic(annotation))
    schema = readable.json_schema()
    person = schema.get("$defs", {}).get("Person", schema)
    assert person["required"] == ["name", "homes"]
    assert schema["$defs"]["Address"]["required"] == ["street"]
    assert schema["$defs"]["Address"]["description"] == "Where somebody lives."


def test_other_hints_stay_the_same() -> None:
    for hint in (int, list[int], Literal["a", "b"], Callable[[int], str], Any, None):
        assert for_pydantic(hint) is hint


def test_typed_dict_of_members() -> None:
    made = typed_dict("Made", {"a": Required[int], "b": NotRequired[str]})
    assert get_type_hints(made) == {"a": int, "b": str}


# -- scalars ---------------------------------------------------------------------------


LIMIT = 10**18
"""From here on integers are written in the other way."""


def test_a_schema_promises_its_type() -> None:
    assert [scalar_of(scalar_schema(kind)) for kind in SCALARS] == [*SCALARS]
    for schema in (
        None,
        {},
        {**scalar_schema(int), "title": "Sum"},
        {**scalar_schema(int), "required": []},
        {**scalar_schema(str), "properties": {"result": {"type": "string", "x": 1}}},
        {**scalar_schema(str), "properties": {"result": {"type": "null"}}},
    ):
        assert scalar_of(schema) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ('a "quoted" é\n', 'a "quoted" é\n'),
        (True, "true"),
        (False, "false"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e300, "1e+300"),
        (0, "0"),
        (-7, "-7"),
        *((each, str(each)) for each in (LIMIT - 1, LIMIT, LIMIT + 1)),
        *((each, str(each)) for each in (1 - LIMIT, -LIMIT, -LIMIT - 1)),
    ],
)
def test_a_result_as_json(value: Any, text: str) -> None:
    output = ScalarOutput(value)
    read = json.loads(output.encoded_members() + b"}")
    assert read == {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"result": value},
    }
    # 1 and True are equal, but not the same JSON.
    assert type(read["structuredContent"]["result"]) is type(value)
    assert output.content == (Text(text),)


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800"])
def test_what_is_no_json(value: Any) -> None:
    with pytest.raises(UnserializableValue):
        ScalarOutput(value).encoded_members()


def test_it_is_equal_to_the_output_that_it_stands_for() -> None:
    output = ScalarOutput(3)
    assert output == ScalarOutput(3)
    assert hash(output) == hash(ScalarOutput(3))
    assert output != ScalarOutput(4)
    assert (output.is_error, output.meta) == (False, None)
    whole = ToolOutput((Text("3"),), structured={"result": 3})
    assert output == whole
    assert output != replace(whole, is_error=True)
    assert output != replace(whole, meta={"shop/x": 1})
    assert output != "3"


# -- docstrings ------------------------------------------------------------------------


GOOGLE = """Find orders.

    Newest first.

    Args:
        customer (str): The customer's
            number.
        limit: How many: at most 100.
        **rest (dict[str, int], optional): The rest.

    Returns:
        The orders.
    """
NUMPY = """
    Find orders.

    Parameters
    ----------
    customer : str
        The customer's
        number.
    first, last : date, optional
        The days.
    silent

    Returns
    -------
    list
        The orders.
    """
REST = """Find orders.

    :param str customer: The customer's
        number.
    :param limit: How many.
    :type limit: int
    :returns: The orders.
    """

CASES = [
    (None, Documentation()),
    ("", Documentation()),
    ("One line.", Documentation("One line.")),
    ("Two.\n\n    Paragraphs: here.", Documentation("Two.\n\nParagraphs: here.")),
    (
        GOOGLE,
        Documentation(
            "Find orders.\n\nNewest first.",
            {
                "customer": "The customer's number.",
                "limit": "How many: at most 100.",
                "rest": "The rest.",
            },
        ),
    ),
    (
        NUMPY,
        Documentation(
            "Find orders.",
            {
                "customer": "The customer's number.",
                "first": "The days.",
                "last": "The days.",
            },
        ),
    ),
    (
        REST,
        Documentation(
            "Find orders.", {"customer": "The customer's number.", "limit": "How many."}
        ),
    ),
    ("Text.\n\nArgs:\n", Documentation("Text.")),
    ("T.\n\nArgs:\n    No item.\n    a: First.", Documentation("T.", {"a": "First."})),
    (
        "T.\n\nParameters\n----------\n\na\n    First.",
        Documentation("T.", {"a": "First."}),
    ),
    ("T.\n\nParameters\n----------\n", Documentation("T.")),
    ("\n    Args:\n        a: First.\n    ", Documentation("", {"a": "First."})),
    ("Text.\n\n:returns: it", Documentation("Text.")),
    (
        "Say it::\n\nArgs: here is no section",
        Documentation("Say it::\n\nArgs: here is no section"),
    ),
    ("Parameters\nare many.", Documentation("Parameters\nare many.")),
    (
        "T.\n\nParameters\n----------\na\n    First.",
        Documentation("T.", {"a": "First."}),
    ),
    (
        "T.\n\nArgs:\n    a: First.\n\nKeyword Args:\n    b: Second.",
        Documentation("T.", {"a": "First.", "b": "Second."}),
    ),
]


@pytest.mark.parametrize(("docstring", "expected"), CASES)
def test_documentation(docstring: str | None, expected: Documentation) -> None:
    assert documentation(docstring) == expected
