from __future__ import annotations

from collections.abc import Callable
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
from mcp_app.catalog.errors import RegistrationError
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


def listed(names: list[str]) -> str:
    return ""


def nested(order: Order) -> str:
    return ""


def odd(size: Annotated[str, Field(alias="a size")]) -> str:
    return size


LISTED = RegisteredFunction(listed)
NESTED = RegisteredFunction(nested)
ODD = RegisteredFunction(odd)
HERE = __name__

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: declared_tool(FOUND, {"name": "find orders"}),
        f"{HERE}.find: “find orders” cannot be a name",
    ),
    (lambda: declared_tool(FOUND, {"name": "a" * 129}), "cannot be a name"),
    (
        lambda: declared_prompt(OVERVIEW, {"name": "a/b"}),
        f"{HERE}.overview: “a/b” cannot be a name",
    ),
    (
        lambda: declared_tool(FOUND, {"permission": "view"}),
        f"{HERE}.find: “view” is not a permission",
    ),
    (
        lambda: declared_tool(FOUND, {"tags": ["a b", "c d"]}),
        "“a b” cannot be a tag: only letters, digits and _ - . : are allowed, at most "
        "64. “c d” cannot be a tag",
    ),
    (
        lambda: declared_tool(FOUND, {"timeout": 0}),
        f"{HERE}.find: The timeout is 0; it must be more than 0 seconds.",
    ),
    (
        lambda: declared_tool(FOUND, {"calls_per_minute": 0}),
        f"{HERE}.find: calls_per_minute is 0: it must be at least 1.",
    ),
    (
        lambda: declared_tool(FOUND, {"input_schema": {"type": "array"}}),
        f"{HERE}.find: the type of the input schema must be \"object\", not 'array'.",
    ),
    (
        lambda: declared_tool(FOUND, {"input_schema": {"type": "object"}}),
        f"{HERE}.find: The function find requires 'customer', but the schema does not.",
    ),
    (
        lambda: declared_tool(FOUND, {"output_schema": {}}),
        f'{HERE}.find: the type of the output schema must be "object", not None.',
    ),
    (
        lambda: declared_tool(
            FOUND, {"output_schema": {"type": "object", "properties": 1}}
        ),
        f"{HERE}.find: the output schema is not allowed. The schema is wrong at",
    ),
    (
        lambda: declared_resource(OVERVIEW, "no uri", {}),
        f"{HERE}.overview: “no uri” is not an absolute URI",
    ),
    (
        lambda: declared_resource(FOUND, "shop://orders", {}),
        f"{HERE}.find needs customer, which shop://orders does not have as variables.",
    ),
    (
        lambda: declared_template(FOUND, "shop://{customer}/{page}", {}),
        f"{HERE}.find has no parameter for the variables page of "
        "shop://{customer}/{page}.",
    ),
    (
        lambda: declared_template(FOUND, "shop://{limit}", {}),
        f"{HERE}.find needs customer, which shop://{{limit}} does not have as",
    ),
    (
        lambda: declared_template(FOUND, "shop/{customer}", {}),
        f"{HERE}.find: “shop/0” is not an absolute URI",
    ),
    (lambda: declared_template(FOUND, "shop://{customer", {}), f"{HERE}.find: "),
    (
        lambda: declared_template(FOUND, "shop://{customer}", {"size": 3}),
        f"{HERE}.find: the resources of the template shop://{{customer}} do not all"
        " have the same size.",
    ),
    (
        lambda: declared_resource(OVERVIEW, "shop://orders", {"ttl_ms": -1}),
        f"{HERE}.overview: The ttl_ms is -1; it must be 0 or more.",
    ),
    (
        lambda: declared_template(FOUND, "shop://{customer}", {"ttl_ms": -1}),
        f"{HERE}.find: The ttl_ms is -1; it must be 0 or more.",
    ),
    (
        lambda: declared_prompt(LISTED, {}),
        f"{HERE}.listed: The argument names of a prompt arrives as a text, but its"
        " type cannot be read from a text.",
    ),
    (
        lambda: declared_prompt(NESTED, {}),
        f"{HERE}.nested: The argument order of a prompt arrives as a text",
    ),
    (
        lambda: declared_prompt(ODD, {}),
        f"{HERE}.odd: “a size” cannot name an argument",
    ),
    (
        lambda: declared_tool(FOUND, {"meta": {"com.example/a": 1, "a b": 2}}),
        f"{HERE}.find: 'a b' cannot be a key of _meta",
    ),
    (
        lambda: declared_resource(OVERVIEW, "shop://a", {"meta": {"dev.mcp/a": 1}}),
        f"{HERE}.overview: The key 'dev.mcp/a' of _meta is reserved",
    ),
]


@pytest.mark.parametrize(("declare", "sentence"), REFUSED)
def test_refused(declare: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(RegistrationError) as refusal:
        declare()
    assert sentence in str(refusal.value)
