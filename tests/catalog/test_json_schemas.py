from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from mcp_app.catalog.json_schemas import json_schema, type_adapter
from mcp_app.interface.errors import RegistrationError


class Colour(enum.StrEnum):
    RED = "red"


@dataclass
class Node:
    """A node."""

    colour: Colour
    nodes: list[Node] = field(default_factory=list)


class Titled(BaseModel):
    model_config = ConfigDict(title="Its own title")

    plain: int
    named: Annotated[int, Field(title="A name")]


class Rate(enum.Enum):
    NORMAL = Decimal("0.19")


class Opaque: ...


def schema_of(annotation: Any) -> dict[str, Any]:
    return json_schema("here", type_adapter("here", annotation), "validation")


def test_the_root_is_no_reference() -> None:
    node = {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red"]},
            "nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        },
        "required": ["colour"],
        "description": "A node.",
    }
    assert schema_of(Node) == {**node, "$defs": {"Node": node}}


def test_only_titles_that_somebody_wrote() -> None:
    assert schema_of(Titled) == {
        "title": "Its own title",
        "type": "object",
        "properties": {
            "plain": {"type": "integer"},
            "named": {"type": "integer", "title": "A name"},
        },
        "required": ["plain", "named"],
    }


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], Callable[[int], int]])
def test_types_without_json_are_refused(annotation: Any) -> None:
    with pytest.raises(RegistrationError, match=r"^here: .* cannot be written as JSON"):
        schema_of(annotation)


def test_parameters_need_choices_that_json_has() -> None:
    with pytest.raises(RegistrationError, match="the enumeration Rate needs values"):
        schema_of(list[Rate])
    given = json_schema("here", type_adapter("here", Rate), "serialization")
    assert given == {"enum": ["0.19"], "type": "string"}
