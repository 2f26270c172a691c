from __future__ import annotations

from collections.abc import Callable
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
    bare,
    for_pydantic,
    is_kind,
    members,
    metadata,
    or_none,
    typed_dict,
    without_metadata,
    without_none,
)

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


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, int),
        (Annotated[int, "x"], int),
        (Annotated[Annotated[int, "x"], "y"], int),
        (Alias, int),
        (Annotated[int | None, "x"], int | None),
    ],
)
def test_bare(annotation: Any, expected: Any) -> None:
    assert bare(annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, [int]),
        (int | str, [int, str]),
        (Annotated[int, 1] | None, [int, type(None)]),
        (Annotated[int | str, 1], [int, str]),
        (list[int] | Alias, [list[int], int]),
    ],
)
def test_members(annotation: Any, expected: list[Any]) -> None:
    assert list(members(annotation)) == expected


def test_metadata() -> None:
    assert metadata(Annotated[int, "a", 2]) == ("a", 2)
    assert metadata(Annotated[int, "a"] | None) == ()
    assert without_metadata(Annotated[int, "a"]) is int
    assert without_metadata(int) is int


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, int),
        (int | None, int),
        (int | str | None, int | str),
        (type(None), type(None)),
    ],
)
def test_without_none(annotation: Any, expected: Any) -> None:
    assert without_none(annotation) == expected


def test_or_none_keeps_what_annotated_adds() -> None:
    assert or_none(int) == int | None
    assert or_none(Annotated[int, "x"]) == Annotated[int | None, "x"]


@pytest.mark.parametrize(
    ("annotation", "kind", "expected"),
    [
        (bool, int, True),
        (str, int, False),
        (int | str, int, False),
        (Box[int], Box, False),
        (None, int, False),
    ],
)
def test_is_kind(annotation: Any, kind: type, expected: bool) -> None:
    assert is_kind(annotation, kind) is expected


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


@pytest.mark.parametrize(
    "annotation", [int, list[int], Literal["a", "b"], Callable[[int], str], Any, None]
)
def test_other_hints_stay_the_same(annotation: Any) -> None:
    assert for_pydantic(annotation) is annotation


def test_typed_dict_of_members() -> None:
    made = typed_dict("Made", {"a": Required[int], "b": NotRequired[str]})
    assert get_type_hints(made) == {"a": int, "b": str}
