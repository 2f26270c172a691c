from __future__ import annotations

from typing import Any

import pytest

from mcp_app.catalog.callables import Function
from mcp_app.catalog.errors import RegistrationError
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.interface.context import Context
from mcp_app.interface.questions import (
    Completion,
    PromptMessage,
    PromptOutput,
    ToolOutput,
)
from mcp_app.protocol.content import Text


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


def test_a_completer_takes_nothing_else() -> None:
    def three(value: str, arguments: dict[str, str], third: int) -> list[str]: ...  # type: ignore[empty-body]

    with pytest.raises(RegistrationError, match="completes an argument"):
        RegisteredFunction(three).completion_runnable()


def test_fits() -> None:
    assert RegisteredFunction(greet).fits({}) == [
        "The function greet requires 'name', but the schema does not."
    ]
