from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from mcp_app.catalog.decorators import (
    declared_prompt,
    declared_resource,
    declared_template,
    declared_tool,
)
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import (
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.rules import AccessRequirements
from mcp_app.protocol.content import Annotations, Icon

ICON = Icon(src="https://example.com/icon.png")


@dataclass
class Order:
    number: int


def find(ctx: SyncContext, customer: str, limit: int = 10) -> Order:
    """Find orders.

    Args:
        customer: Whose.
    """
    return Order(limit)


def overview() -> str:
    """Say how it goes."""
    return "well"


FOUND = RegisteredFunction(find)
OVERVIEW = RegisteredFunction(overview)
INPUT = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "description": "Whose."},
        "limit": {"type": "integer", "default": 10},
    },
    "required": ["customer"],
    "additionalProperties": False,
}
OUTPUT = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}


def test_a_tool_is_described_by_its_function() -> None:
    tool = declared_tool(FOUND, {})
    assert tool.function is FOUND
    assert tool.definition == ToolDefinition(
        name="find",
        description="Find orders.",
        input_schema=INPUT,
        output_schema=OUTPUT,
    )


def test_a_tool_with_all_options() -> None:
    schema = {"type": "object", "required": ["customer"]}
    tool = declared_tool(
        FOUND,
        {
            "name": "find.orders",
            "title": "Find",
            "description": "Described.",
            "icons": [ICON],
            "meta": {"a": 1},
            "permission": "shop.view_order",
            "timeout": 2.5,
            "tags": ["shop"],
            "position": 3,
            "atomic": True,
            "database": False,
            "read_only": True,
            "destructive": False,
            "idempotent": True,
            "open_world": False,
            "input_schema": schema,
            "output_schema": {"type": "object"},
            "calls_per_minute": 30,
        },
    )
    assert tool.definition == ToolDefinition(
        name="find.orders",
        title="Find",
        description="Described.",
        icons=(ICON,),
        meta={"a": 1},
        demands=AccessRequirements(permissions=("shop.view_order",)),
        timeout=2.5,
        tags=frozenset({"shop"}),
        position=3,
        hints=ToolHints(
            read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        input_schema=schema,
        output_schema={"type": "object"},
        calls_per_minute=30,
    )


def test_a_description_may_be_empty() -> None:
    assert declared_tool(FOUND, {"description": ""}).definition.description == ""


def test_a_resource() -> None:
    annotations = Annotations(priority=1)
    resource = declared_resource(
        OVERVIEW,
        "shop://overview",
        {
            "mime_type": "text/plain",
            "size": 4,
            "annotations": annotations,
            "ttl_ms": 1000,
            "public": True,
        },
    )
    assert resource.definition == ResourceDefinition(
        name="overview",
        description="Say how it goes.",
        uri="shop://overview",
        mime_type="text/plain",
        size=4,
        annotations=annotations,
        ttl_ms=1000,
        public=True,
    )


def test_a_template() -> None:
    template = declared_template(
        FOUND, "shop://{customer}{?limit}", {"title": "Orders"}
    )
    assert template.definition == ResourceTemplateDefinition(
        name="find",
        title="Orders",
        description="Find orders.",
        uri_template="shop://{customer}{?limit}",
    )
    assert declared_template(FOUND, "shop://{customer}", {}).function is FOUND


def test_a_prompt_has_the_parameters_as_arguments() -> None:
    def review(
        code: Annotated[str, Field(title="The code", description="Whole")],
        language: Literal["python", "rust"] = "python",
        depth: int | None = None,
    ) -> str:
        """Review."""
        return code

    prompt = declared_prompt(RegisteredFunction(review), {"name": "review-code"})
    assert prompt.definition == PromptDefinition(
        name="review-code",
        description="Review.",
        arguments=(
            PromptArgument(
                name="code", title="The code", description="Whole", required=True
            ),
            PromptArgument(name="language"),
            PromptArgument(name="depth"),
        ),
    )


def nested(order: Order) -> str:
    return ""


def odd(size: Annotated[str, Field(alias="a size")]) -> str:
    return size


NESTED = RegisteredFunction(nested)
ODD = RegisteredFunction(odd)
HERE = __name__

REFUSED: list[tuple[Any, RegisteredFunction, str, Any, str]] = [
    (declared_tool, FOUND, "", {"name": "a" * 129}, "cannot be a name"),
    (declared_prompt, OVERVIEW, "", {"name": "a/b"}, "“a/b” cannot be a name"),
    (declared_tool, FOUND, "", {"permission": "view"}, "“view” is not a permission"),
    (
        *(declared_tool, FOUND, "", {"tags": ["a b", "c d"]}),
        "“a b” cannot be a tag: only letters, digits and _ - . : are allowed, at most "
        "64. “c d” cannot be a tag",
    ),
    (
        *(declared_tool, FOUND, "", {"timeout": 0}),
        "The timeout is 0; it must be more than 0 seconds.",
    ),
    (
        *(declared_tool, FOUND, "", {"calls_per_minute": 0}),
        "calls_per_minute is 0: it must be at least 1.",
    ),
    (
        *(declared_tool, FOUND, "", {"input_schema": {"type": "array"}}),
        "the type of the input schema must be \"object\", not 'array'.",
    ),
    (
        *(declared_tool, FOUND, "", {"input_schema": {"type": "object"}}),
        "The function find requires 'customer', but the schema does not.",
    ),
    (
        *(declared_tool, FOUND, "", {"output_schema": {}}),
        'the type of the output schema must be "object", not None.',
    ),
    (
        *(declared_tool, FOUND, ""),
        {"output_schema": {"type": "object", "properties": 1}},
        "the output schema is not allowed. The schema is wrong at",
    ),
    (declared_resource, OVERVIEW, "no uri", {}, "“no uri” is not an absolute URI"),
    (
        *(declared_template, FOUND, "shop://{limit}", {}),
        " needs customer, which shop://{limit} does not have as",
    ),
    (declared_template, FOUND, "shop/{customer}", {}, "“shop/0” is not an absolute"),
    (declared_template, FOUND, "shop://{customer", {}, ": "),
    (
        *(declared_template, FOUND, "shop://{customer}", {"size": 3}),
        "the resources of the template shop://{customer} do not all have the same"
        " size.",
    ),
    (
        *(declared_resource, OVERVIEW, "shop://orders", {"ttl_ms": -1}),
        "The ttl_ms is -1; it must be 0 or more.",
    ),
    (
        *(declared_template, FOUND, "shop://{customer}", {"ttl_ms": -1}),
        "The ttl_ms is -1; it must be 0 or more.",
    ),
    (declared_prompt, NESTED, "", {}, "The argument order of a prompt arrives as a"),
    (declared_prompt, ODD, "", {}, "“a size” cannot name an argument"),
    (
        *(declared_tool, FOUND, "", {"meta": {"com.example/a": 1, "a b": 2}}),
        "'a b' cannot be a key of _meta",
    ),
    (
        *(declared_resource, OVERVIEW, "shop://a", {"meta": {"dev.mcp/a": 1}}),
        "The key 'dev.mcp/a' of _meta is reserved",
    ),
]


@pytest.mark.parametrize(("declare", "function", "uri", "options", "said"), REFUSED)
def test_refused(
    declare: Any, function: RegisteredFunction, uri: str, options: Any, said: str
) -> None:
    with pytest.raises(RegistrationError) as refusal:
        declare(function, *filter(None, [uri]), options)
    assert str(refusal.value).startswith(function.qualified_name)
    assert said in str(refusal.value)
