from __future__ import annotations

from collections.abc import Mapping

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import (
    Definition,
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.questions import ToolOutput
from mcp_app.kinds.function import FunctionKind
from mcp_app.kinds.kind import KindError
from mcp_app.protocol.content import Text

ORDERS = {"function": "shop.find_orders"}
SCHEMA = {
    "type": "object",
    "properties": {"customer": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["customer"],
}


@pytest.fixture
def kind() -> FunctionKind:
    registry = Registry()

    @registry.function("shop.find_orders")
    def find_orders(customer: str, limit: int = 10) -> int:
        return limit

    @registry.function("shop.policy")
    def policy() -> str:
        return "No returns."

    @registry.function("shop.free")
    def free():  # type: ignore[no-untyped-def]
        return {"a": 1}

    return FunctionKind(registry)


def tool(schema: Mapping[str, object] = SCHEMA) -> ToolDefinition:
    return ToolDefinition(name="t", input_schema=schema)


def test_a_tool_runs_its_function(kind: FunctionKind) -> None:
    runnable = kind.tool_runnable(tool(), ORDERS)
    given = runnable.bind({"customer": "a", "limit": 3})
    assert runnable.style == "sync"
    expected = ToolOutput((Text("3"),), structured={"result": 3})
    assert runnable.convert(runnable.run(**given)) == expected


def test_a_row_may_say_that_a_function_returns_an_object(kind: FunctionKind) -> None:
    definition = ToolDefinition(name="t", output_schema={"type": "object"})
    runnable = kind.tool_runnable(definition, {"function": "shop.free"})
    assert runnable.convert({"a": 1}).structured == {"a": 1}
    plain = kind.tool_runnable(ToolDefinition(name="t"), {"function": "shop.free"})
    assert plain.convert({"a": 1}).structured is None


def test_resources_templates_and_prompts_run_it_too(kind: FunctionKind) -> None:
    policy = {"function": "shop.policy"}
    resource = kind.resource_runnable(ResourceDefinition(name="r", uri="x:r"), policy)
    assert resource.run() == "No returns."
    template = ResourceTemplateDefinition(name="t", uri_template="x:{customer}")
    assert kind.template_runnable(template, ORDERS).bind({"customer": "a"}) == {
        "customer": "a"
    }
    prompt = kind.prompt_runnable(PromptDefinition(name="p"), policy)
    [message] = prompt.convert(prompt.run()).messages
    assert message.content == Text("No returns.")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "Choose a function."),
        ({"function": 7}, "Choose a function."),
        (
            {"function": "shop.find_order"},
            "No function is registered as “shop.find_order”. Similar names:"
            " shop.find_orders, shop.free.",
        ),
        (
            {"function": "os.system"},
            "Registered: shop.find_orders, shop.free, shop.policy.",
        ),
        ({"function": "shop.policy", "module": "os"}, "“module” is not allowed here"),
    ],
)
def test_only_registered_functions(
    kind: FunctionKind, config: dict[str, object], said: str
) -> None:
    [problem] = kind.config_problems(tool(), config)
    assert problem.field == "config"
    assert said in problem.message
    with pytest.raises(KindError) as caught:
        kind.tool_runnable(tool(), config)
    assert caught.value.message == problem.message


def test_without_functions_the_way_to_one_is_told() -> None:
    [problem] = FunctionKind(Registry()).config_problems(tool(), ORDERS)
    assert "A developer registers one with @mcp.function" in problem.message


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        (tool({"type": "object", "properties": {}}), "input_schema"),
        (PromptDefinition(name="p"), "arguments"),
        (
            PromptDefinition(
                name="p",
                arguments=[
                    PromptArgument(name="customer", required=True),
                    PromptArgument(name="colour"),
                ],
            ),
            "arguments",
        ),
        (
            ResourceTemplateDefinition(name="t", uri_template="x:{order}"),
            "uri_template",
        ),
        (ResourceDefinition(name="r", uri="x:r"), "config"),
    ],
)
def test_what_does_not_fit_the_function_is_told_at_its_column(
    kind: FunctionKind, definition: Definition, field: str
) -> None:
    problems = kind.config_problems(definition, ORDERS)
    assert {problem.field for problem in problems} == {field}
    with pytest.raises(KindError) as caught:
        kind.definition_runnable(definition, ORDERS)
    assert caught.value.field == field


def test_what_fits_has_no_problem(kind: FunctionKind) -> None:
    assert kind.config_problems(tool(), ORDERS) == []
