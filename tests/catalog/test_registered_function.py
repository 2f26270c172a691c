from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.catalog.callables import Function
from mcp_app.catalog.registered_function import PlainTool, RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.snapshot import ToolEntry, tool_entry
from mcp_app.interface.context import Context
from mcp_app.interface.questions import (
    Completion,
    PromptMessage,
    PromptOutput,
    ToolOutput,
)
from mcp_app.interface.rules import AccessRequirements
from mcp_app.protocol.content import Text
from mcp_app.protocol.revisions import LATEST
from mcp_app.protocol.schemas import compile_schema as compiled


async def add(ctx: Context, a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def greet(name: str) -> str:
    return f"Hello, {name}"


def bare(a):  # type: ignore[no-untyped-def]
    return {"a": a}


def test_what_a_function_says_of_itself() -> None:
    registered = RegisteredFunction(add, key="shop.add", atomic=True, database=True)
    assert registered.key == "shop.add"
    assert registered.function is add
    assert registered.qualified_name == f"{__name__}.add"
    assert registered.style == "async"
    assert registered.description == "Add two numbers."
    assert repr(registered) == f"<RegisteredFunction 'shop.add': {__name__}.add>"
    assert RegisteredFunction(add).key == "add"


def test_as_a_tool() -> None:
    runnable = RegisteredFunction(add, atomic=True, database=True).tool_runnable()
    assert runnable.run is add
    assert runnable.style == "async"
    assert runnable.context == "ctx"
    assert runnable.atomic is True
    assert runnable.database is True
    assert runnable.bind({"a": 1}) == {"a": 1}
    assert runnable.convert(3) == ToolOutput((Text("3"),), structured={"result": 3})


def test_a_return_type_that_is_not_there_can_be_given() -> None:
    runnable = RegisteredFunction(bare, returns=dict).tool_runnable()
    assert runnable.convert({"a": 1}).structured == {"a": 1}
    kept = RegisteredFunction(greet, returns=dict).tool_runnable()
    assert kept.convert("a").structured == {"result": "a"}


def test_as_a_resource() -> None:
    runnable = RegisteredFunction(add).resource_runnable()
    assert runnable.bind({"a": "1", "b": "2"}) == {"a": 1, "b": 2}
    assert runnable.convert(b"as it is") == b"as it is"


def test_as_a_prompt() -> None:
    runnable = RegisteredFunction(greet).prompt_runnable()
    assert runnable.bind({"name": "Ada"}) == {"name": "Ada"}
    assert runnable.convert("Hi") == PromptOutput((PromptMessage(Text("Hi")),))


def nothing() -> list[str]: ...  # type: ignore[empty-body]
def value_only(value: str) -> list[str]: ...  # type: ignore[empty-body]
def both(text: str, others: dict[str, str]) -> list[str]: ...  # type: ignore[empty-body]
def more(value: str, arguments: dict[str, str], limit: int = 3) -> list[str]: ...  # type: ignore[empty-body]
async def with_context(ctx: Context, value: str) -> list[str]: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "bound"),
    [
        (nothing, {}),
        (value_only, {"value": "par"}),
        (both, {"text": "par", "others": {"country": "fr"}}),
        (more, {"value": "par", "arguments": {"country": "fr"}}),
        (with_context, {"value": "par"}),
    ],
)
def test_as_a_completer(function: Function, bound: dict[str, Any]) -> None:
    runnable = RegisteredFunction(function).completion_runnable()
    assert runnable.bind({"value": "par", "arguments": {"country": "fr"}}) == bound
    assert runnable.convert(["Paris"]) == Completion(["Paris"])


# -- plain tool ------------------------------------------------------------------------


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
    made = found.as_plain_tool(LATEST)
    assert made is not None
    assert found.as_plain_tool(LATEST) is made
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
    assert entry(adding, **changes).as_plain_tool(LATEST) is None


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
