"""Which tools have plain calls, and when the types of arguments are all that counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.catalog.registered_function import PlainTool
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.snapshot import ToolEntry, tool_entry
from mcp_app.interface.context import Context
from mcp_app.interface.rules import AccessRequirements
from mcp_app.protocol.revisions import LATEST
from mcp_app.protocol.schemas import compile as compiled

NUMBER = {"type": "integer"}
OF_TWO = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}}


def entry(registry: Registry, **changes: Any) -> ToolEntry:
    """Return the only tool of a registry, with changes to its definition."""
    (declared,) = registry.tools.values()
    definition = replace(declared.definition, **changes)
    return tool_entry(definition, declared.function.tool_runnable())


@pytest.fixture
def adding() -> Registry:
    registry = Registry()

    @registry.tool
    async def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    return registry


def plain(found: ToolEntry) -> PlainTool:
    made = found.plain(LATEST)
    assert made is not None
    assert found.plain(LATEST) is made
    return made


def test_an_async_function_is_plain(adding: Registry) -> None:
    made = plain(entry(adding))
    assert (made.names, made.types) == (("a", "b"), (int, int))
    assert made.scalar is int


@pytest.mark.parametrize(
    "changes",
    [
        {"demands": AccessRequirements(rules=("a",))},
        {"name": "größer"},
        {"name": "=?base64?YQ==?="},
        {
            "input_schema": {
                "type": "object",
                "properties": {"a": {**NUMBER, "x-mcp-header": "A"}, "b": NUMBER},
            }
        },
    ],
)
def test_what_is_not_plain(adding: Registry, changes: Mapping[str, Any]) -> None:
    assert entry(adding, **changes).plain(LATEST) is None


def test_functions_that_run_in_threads_are_plain() -> None:
    async def stores() -> int:
        return 1

    def blocks() -> int:
        return 1

    with_database, atomic, blocking = Registry(), Registry(), Registry()
    with_database.tool(database=True)(stores)
    atomic.tool(atomic=True)(stores)
    blocking.tool(blocks)
    for registry in (with_database, atomic, blocking):
        assert plain(entry(registry)).scalar is int


@pytest.mark.parametrize(
    ("schema", "sufficient"),
    [
        (OF_TWO, True),
        ({**OF_TWO, "required": ["a"], "additionalProperties": False}, True),
        ({**OF_TWO, "title": "Two", "description": "numbers"}, True),
        ({**OF_TWO, "required": ["a", "c"]}, False),
        ({**OF_TWO, "minProperties": 3}, False),
        ({**OF_TWO, "properties": {"a": NUMBER}}, False),
        ({**OF_TWO, "properties": {"a": NUMBER, "b": {}}}, False),
        ({**OF_TWO, "properties": {"a": NUMBER, "b": {"type": "number"}}}, False),
        ({**OF_TWO, "properties": {"a": {**NUMBER, "minimum": 3}, "b": NUMBER}}, False),
        ({"properties": OF_TWO["properties"]}, False),
        ({"$ref": "#/$defs/x", "$defs": {"x": OF_TWO}}, False),
    ],
)
def test_types_suffice_if_the_schema_asks_for_nothing_else(
    adding: Registry, schema: dict[str, Any], sufficient: bool
) -> None:
    made = plain(entry(adding, input_schema=schema))
    assert made.types == ((int, int) if sufficient else None)
    assert made.names == (("a", "b") if sufficient else ())
    if sufficient:
        for a in (0, -1, 2**70):
            assert compiled(schema).is_valid({"a": a, "b": a})


def test_other_parameters_are_bound_each_time() -> None:
    registry = Registry()

    @registry.tool
    async def lists(ctx: Context, names: list[str]) -> dict[str, Any]:
        return {"names": names, "id": ctx.request_id}

    made = plain(entry(registry))
    assert (made.types, made.context, made.scalar) == (None, "ctx", None)


def test_another_schema_of_the_output_is_checked(adding: Registry) -> None:
    promised = {
        "type": "object",
        "properties": {"result": {"type": "integer", "maximum": 9}},
        "required": ["result"],
    }
    assert plain(entry(adding, output_schema=promised)).scalar is None
