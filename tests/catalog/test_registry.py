from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypedDict, assert_type

import pytest

from mcp_app import AccessRequest, mcp
from mcp_app.catalog.findings import collecting
from mcp_app.catalog.registry import Registry
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.questions import ToolOutput
from mcp_app.protocol.content import Text
from tests.drill.models import Ledger


class Closed(TypedDict):
    key: str


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_a_function_stays_as_it_is(registry: Registry) -> None:
    @registry.tool
    def add(a: int, b: int) -> int:
        return a + b

    @registry.resource("shop://{name}")
    def read(name: str) -> str:
        return name

    assert_type(add(1, 2), int)
    assert add(1, 2) == 3
    assert read(name="a") == "a"
    tool: Any = registry.tools["add"].function
    template: Any = registry.templates["shop://{name}"].function
    assert (tool.function, template.function) == (add, read)


def test_the_ways_to_write_a_decorator(registry: Registry) -> None:
    @registry.tool
    @registry.tool()
    @registry.tool("by.position", read_only=True)
    @registry.tool(name="by.name", title="Named")
    @registry.prompt
    @registry.prompt()
    @registry.prompt("position")
    @registry.prompt(name="named", tags={"a"})
    def plain() -> str:
        return ""

    assert registry.tools.keys() == {"plain", "by.position", "by.name"}
    assert registry.prompts.keys() == {"plain", "position", "named"}
    assert registry.tools["by.position"].definition.hints.read_only is True
    assert registry.tools["by.name"].definition.title == "Named"


def test_a_resource_or_a_template(registry: Registry) -> None:
    @registry.resource("shop://overview", name="all", mime_type="text/plain")
    @registry.resource("shop://overview/{part}")
    def overview(part: str = "") -> str:
        return part

    assert registry.resources["shop://overview"].definition.name == "all"
    assert registry.templates.keys() == {"shop://overview/{part}"}


def test_how_a_function_is_run(registry: Registry) -> None:
    @registry.tool(atomic=False, database=True)
    @registry.complete("a", "b", atomic=True)
    @registry.function("key", database=True)
    async def run() -> str:
        return ""

    tool: Any = registry.tools["run"].function
    assert (tool.atomic, tool.database) == (False, True)
    completer = registry.completers["a", "b"]
    assert (completer.atomic, completer.database) == (True, False)
    function = registry.functions["key"]
    assert (function.key, function.atomic, function.database) == ("key", None, True)


def test_an_output_schema_stands_in_for_a_return_type(registry: Registry) -> None:
    schema = {"type": "object", "required": ["a"]}

    @registry.tool(output_schema=schema)
    def bare(a):  # type: ignore[no-untyped-def]
        return {"a": a}

    tool = registry.tools["bare"]
    assert tool.definition.output_schema == schema
    output = tool.function.tool_runnable().convert({"a": 1})
    assert output == ToolOutput((Text('{"a":1}'),), structured={"a": 1})


def first(a: str = "") -> str:
    return a


def second(a: str = "") -> str:
    return a


@pytest.mark.parametrize(
    ("declare", "what"),
    [
        (lambda registry: registry.tool("a"), "tool 'a'"),
        (lambda registry: registry.prompt("a"), "prompt 'a'"),
        (lambda registry: registry.resource("a:b"), "resource 'a:b'"),
        (lambda registry: registry.resource("a:{a}"), "resource template 'a:{a}'"),
        (lambda registry: registry.complete("a", "b"), "completer ('a', 'b')"),
        (lambda registry: registry.function("a"), "function 'a'"),
    ],
)
def test_nothing_is_declared_by_two(registry: Registry, declare, what: str) -> None:  # type: ignore[no-untyped-def]
    declare(registry)(first)
    declare(registry)(first)
    with pytest.raises(RegistrationError) as refusal:
        declare(registry)(second)
    said, _, advice = str(refusal.value).rpartition(":")
    assert said == (
        f"{__name__}.second: the {what} is already declared by {__name__}.first"
        f" ({__file__}"
    )
    assert re.fullmatch(r"\d+\)\. Give one of the two another \w+\.", advice)


def test_refusals_come_at_import(registry: Registry) -> None:
    def several(*numbers: int) -> int:
        return sum(numbers)

    for declare in (
        registry.tool,
        registry.prompt,
        registry.resource("a:b"),
        registry.complete("a", "b"),
        registry.function("a"),
    ):
        with pytest.raises(RegistrationError, match="takes \\*numbers"):
            declare(several)


def test_a_completer_is_checked_at_import(registry: Registry) -> None:
    with pytest.raises(RegistrationError, match="completes an argument"):

        @registry.complete("a", "b")
        def three(value: str, arguments: dict[str, str], third: int) -> list[str]:
            return []


def test_clear(registry: Registry) -> None:
    for declare in (
        registry.tool,
        registry.prompt,
        registry.resource("a:{a}"),
        registry.complete("first", "a"),
        registry.function("a"),
    ):
        declare(first)
    registry.resource("ledger://all", model=Ledger)(lambda: [])
    registry.rule("weekdays")(lambda asked: True)
    registry.event("ledger.closed")(Closed)
    registry.open_model(Ledger, fields=["key"], rows="all")
    registry.model_tools(Ledger, only=["never"])
    registry.openapi({"openapi": "3.1.0", "paths": {"/lost": {"get": {}}}})
    assert registry.tools
    with collecting(registry.problems):
        registry.tool(3)  # type: ignore[call-overload]
    assert all(vars(registry).values())
    registry.clear()
    assert not any(vars(registry).values())


def test_one_registry_is_served() -> None:
    assert isinstance(mcp, Registry)


async def _asks_later(asked: AccessRequest) -> bool:
    return True


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (
            lambda: Registry().rule(_asks_later),  # type: ignore[arg-type]
            'It takes a key, as in @mcp.rule("key")',
        ),
        (
            lambda: Registry().tool(rule=_asks_later)(lambda: "a"),
            "a rule runs in a thread",
        ),
        (
            lambda: Registry().tool(groups="staff")(lambda: "a"),
            "The option groups is 'staff': write a list.",
        ),
        (
            lambda: Registry().resource("a://all", object_permission="a.b")(lambda: []),
            "Add the option “model”, and a URI with variables",
        ),
        (
            lambda: Registry().resource(
                "a://{objects}", model=Ledger, object_permission="a.b"
            )(lambda objects: objects),
            "cannot find the instance, because 'objects'",
        ),
    ],
)
def test_rules_that_are_refused(declare: Callable[[], object], said: str) -> None:
    with pytest.raises(RegistrationError, match=re.escape(said)):
        declare()


def test_a_function_is_one_rule_however_it_is_named() -> None:
    registry = Registry()

    def on_weekdays(asked: AccessRequest) -> bool:
        return True

    registry.tool("a", rule=on_weekdays)(lambda: "a")
    registry.tool("b", rule=on_weekdays)(lambda: "b")
    named = {tool.definition.demands.rules for tool in registry.tools.values()}
    assert named == {tuple(registry.rules)}
    registry.rule("weekdays")(on_weekdays)
    assert len(registry.rules) == 2

    def another(asked: AccessRequest) -> bool:
        return False

    with pytest.raises(RegistrationError, match="the rule 'weekdays' is already"):
        registry.rule("weekdays")(another)
