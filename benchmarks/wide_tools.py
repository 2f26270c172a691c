"""Tools that take large arguments, of schemas that are much work; for all callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from mcp_app import mcp


class Line(BaseModel):
    """A line of an order."""

    sku: str
    count: int


_KINDS: Final = [
    {
        "type": "object",
        "properties": {"kind": {"const": f"k{number}"}},
        "required": ["kind"],
    }
    for number in range(50)
]
_SHAPES: Final[Mapping[str, object]] = {
    "wide_open": {},
    "wide_change": {},
    "wide_unique": {"type": "array", "uniqueItems": True},
    "wide_choice": {"type": "array", "items": {"oneOf": _KINDS}},
    "wide_pattern": {
        "type": "array",
        "items": {"type": "string", "pattern": "^(a+)+$"},
    },
}


def _declare(name: str, shape: object) -> None:
    schema = {"type": "object", "properties": {"value": shape}, "required": ["value"]}

    @mcp.tool(name=name, read_only=name != "wide_change", input_schema=schema)
    async def wide(value: Any) -> str:
        """Take a value."""
        return type(value).__name__


for _name, _shape in _SHAPES.items():
    _declare(_name, _shape)


@mcp.tool(read_only=True)
async def wide_numbers(value: list[int]) -> str:
    """Take numbers."""
    return str(len(value))


@mcp.tool(read_only=True)
async def wide_lists(value: list[list[int]]) -> str:
    """Take lists of numbers."""
    return str(len(value))


@mcp.tool(read_only=True)
async def wide_lines(value: list[Line]) -> str:
    """Take the lines of an order."""
    return str(len(value))
