from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.stored import (
    StoredDefinition,
    load,
    load_servers,
    stored_definition,
)
from mcp_app.interface.definitions import (
    Definition,
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import (
    Blob,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.models.fields import digest
from mcp_app.protocol.content import Annotations, Icon

pytestmark = pytest.mark.django_db

ICONS = '[{"src": "https://example.org/i.png"}]'


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @registry.function("shop.find")
    def find(customer: str, limit: int = 10) -> int:
        """Find orders.

        Args:
            customer: Who ordered.
        """
        return limit

    return registry


def definitions(registry: Registry, slug: str = "default") -> list[Definition]:
    return [stored.definition for stored in load(slug, registry)]


def test_every_column_arrives(registry: Registry) -> None:
    shared: dict[str, Any] = {
        "title": "Title",
        "description": "Text.",
        "icons": ICONS,
        "permission": "shop.view_order",
        "timeout": 2.5,
        "tags": "b, a",
        "position": 3,
    }
    expected: dict[str, Any] = {
        **shared,
        "icons": (Icon(src="https://example.org/i.png"),),
        "tags": frozenset("ab"),
    }
    readable: dict[str, Any] = {"mime_type": "text/plain", "ttl_ms": 5, "public": True}
    audience = Annotations(audience=["user"])
    Tool.objects.create(
        name="tool",
        input_schema='{"type": "object", "properties": {"z": {}, "a": {}}}',
        output_schema='{"type": "object"}',
        read_only=True,
        destructive=False,
        idempotent=None,
        open_world=True,
        **shared,
    )
    Resource.objects.create(
        name="resource",
        uri="x:a",
        size=7,
        annotations='{"audience": ["user"]}',
        **readable,
        **shared,
    )
    ResourceTemplate.objects.create(
        name="template",
        uri_template="x:{a}",
        annotations='{"audience": ["user"]}',
        **readable,
        **shared,
    )
    Prompt.objects.create(
        name="prompt", arguments='[{"name": "order", "required": true}]', **shared
    )
    assert definitions(registry) == [
        ToolDefinition(
            name="tool",
            input_schema={"type": "object", "properties": {"z": {}, "a": {}}},
            output_schema={"type": "object"},
            hints=ToolHints(read_only=True, destructive=False, open_world=True),
            **expected,
        ),
        ResourceDefinition(
            name="resource",
            uri="x:a",
            size=7,
            annotations=audience,
            **readable,
            **expected,
        ),
        ResourceTemplateDefinition(
            name="template",
            uri_template="x:{a}",
            annotations=audience,
            **readable,
            **expected,
        ),
        PromptDefinition(
            name="prompt",
            arguments=(PromptArgument(name="order", required=True),),
            **expected,
        ),
    ]


def test_the_order_of_keys_is_kept(registry: Registry) -> None:
    schema = '{"type":"object","properties":{"zebra":{},"apple":{},"mango":{}}}'
    Tool.objects.create(name="a", input_schema=schema)
    [tool] = definitions(registry)
    assert isinstance(tool, ToolDefinition)
    assert list(tool.input_schema["properties"]) == ["zebra", "apple", "mango"]  # type: ignore[call-overload]


def test_kind_config_and_row_come_along(registry: Registry) -> None:
    row = Tool.objects.create(name="a", config='{"content": []}')
    [stored] = load("default", registry)
    assert (stored.kind, stored.config) == ("text", {"content": []})
    assert stored.row == f"tool {row.pk}"


def test_uploaded_content_comes_along(registry: Registry) -> None:
    Blob.objects.keep(b"\xff")
    name = digest(b"\xff")
    Resource.objects.create(name="a", uri="x:a", config=f'{{"upload": "{name}"}}')
    Tool.objects.create(
        name="b", config=f'{{"content": [{{"upload": "{name}"}}, {{"upload": "x"}}]}}'
    )
    assert [dict(each.uploads) for each in load("default", registry)] == [
        {name: b"\xff"},
        {name: b"\xff"},
    ]


def test_a_functions_signature_is_the_default(registry: Registry) -> None:
    config = '{"function": "shop.find"}'
    Tool.objects.create(name="a", kind="function", config=config)
    Prompt.objects.create(name="b", kind="function", config=config)
    tool, prompt = definitions(registry)
    signature = registry.functions["shop.find"].signature
    assert isinstance(tool, ToolDefinition)
    assert tool.input_schema == signature.input_schema
    assert tool.output_schema == signature.output_schema
    assert isinstance(prompt, PromptDefinition)
    assert [(each.name, each.required) for each in prompt.arguments] == [
        ("customer", True),
        ("limit", False),
    ]
    assert prompt.arguments[0].description == "Who ordered."


def test_a_row_says_more_than_the_signature(registry: Registry) -> None:
    config = '{"function": "shop.find"}'
    schema = '{"type": "object", "properties": {"customer": {"maxLength": 5}}}'
    Tool.objects.create(name="a", kind="function", config=config, input_schema=schema)
    Prompt.objects.create(name="b", kind="function", config=config, arguments="[]")
    tool, prompt = definitions(registry)
    assert isinstance(tool, ToolDefinition)
    assert tool.input_schema["properties"] == {"customer": {"maxLength": 5}}
    assert isinstance(prompt, PromptDefinition)
    assert prompt.arguments == ()


def test_a_function_that_code_lacks_still_loads(registry: Registry) -> None:
    Tool.objects.create(name="a", kind="function", config='{"function": "gone"}')
    [tool] = definitions(registry)
    assert tool.name == "a"


def test_what_is_switched_off_is_not_there(registry: Registry) -> None:
    Tool.objects.create(name="a", enabled=False)
    assert load("default", registry) == []


def test_an_unknown_server_has_nothing(registry: Registry) -> None:
    Tool.objects.create(name="a")
    assert load("nobody", registry) == []


def test_a_server_offers_all_or_what_has_its_tags(registry: Registry) -> None:
    Server.objects.create(slug="some", selection="tags", tags="a, b")
    Tool.objects.create(name="1", tags="b c")
    Tool.objects.create(name="2", tags="c")
    Prompt.objects.create(name="3", tags="a")
    Prompt.objects.create(name="4")
    assert [each.name for each in definitions(registry, "some")] == ["1", "3"]
    assert [each.name for each in definitions(registry)] == ["1", "2", "3", "4"]


def test_lists_are_ordered_by_position_then_name(registry: Registry) -> None:
    for name, position in (("b", 0), ("a", 0), ("0", 5), ("z", -1)):
        Tool.objects.create(name=name, position=position)
    assert [each.name for each in definitions(registry)] == ["z", "a", "b", "0"]


def test_a_row_that_cannot_be_read_takes_no_others_along(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    Tool.objects.create(name="bad", icons='[{"src": "ftp://x"}]')
    Tool.objects.create(name="good")
    assert [each.name for each in definitions(registry)] == ["good"]
    assert "'bad' is left out: The src of an icon" in caplog.text


def test_the_number_of_statements_does_not_grow(
    registry: Registry,
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    Blob.objects.keep(b"a")
    Blob.objects.keep(b"b")
    for number in range(20):
        Tool.objects.create(name=f"t{number}")
        name = digest(b"ab"[number % 2 : number % 2 + 1])
        Resource.objects.create(
            name="r", uri=f"x:{number}", config=f'{{"upload": "{name}"}}'
        )
    with django_assert_num_queries(6):
        assert len(load("default", registry)) == 40


def test_one_row_as_the_admin_asks_for_it(registry: Registry) -> None:
    stored: StoredDefinition[Definition] = stored_definition(Tool(name="a"), registry)
    assert stored.definition == ToolDefinition(name="a")


def test_servers(
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    Server.objects.filter(slug="default").update(access="public")
    Server.objects.create(
        slug="shop",
        title="Shop",
        description="Sells.",
        instructions="Be kind.",
        version="2",
        website_url="https://example.org",
        icons=ICONS,
        access="token, site",
        page_size=5,
        enabled=False,
        selection="tags",
        tags="a b",
    )
    with django_assert_num_queries(1):
        servers = load_servers()
    assert servers == {
        "default": ServerDefinition(slug="default", access=("public",)),
        "shop": ServerDefinition(
            slug="shop",
            title="Shop",
            description="Sells.",
            instructions="Be kind.",
            version="2",
            website_url="https://example.org",
            icons=(Icon(src="https://example.org/i.png"),),
            access=("token", "site"),
            page_size=5,
            enabled=False,
            selection="tags",
            tags=frozenset("ab"),
        ),
    }


def test_a_server_with_odd_icons_is_still_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Server.objects.filter(slug="default").update(icons="[7]")
    assert load_servers()["default"].icons == ()
    assert "'default' has no icons" in caplog.text
