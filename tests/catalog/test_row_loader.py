from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import (
    MODELS,
    NO_GROUP,
    StoredDefinition,
    StoredOverlay,
    demands_of,
    load_rows,
    load_servers,
    served_versions,
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
from mcp_app.interface.rules import AccessRequirements
from mcp_app.interface.server import ServerDefinition
from mcp_app.kinds import complete_definition, usable_kinds
from mcp_app.models import (
    Blob,
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    Stop,
    Tool,
)
from mcp_app.models.fields import digest
from mcp_app.models.stops import By, Scope
from mcp_app.protocol.content import Annotations, Icon
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

Row = TypeVar("Row", bound=PublishedRow)

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


def make(model: type[Row], **columns: Any) -> Row:
    """Publish a row."""
    return published(model(**columns))


def loaded(registry: Registry) -> list[StoredDefinition[Definition]]:
    """Return all that is served and not declared in code, in the order of lists."""
    found: list[StoredDefinition[Definition]] = []
    kinds = usable_kinds(registry)
    for kind in MODELS:
        stored = load_rows(served_versions(kind))
        made_here = [
            complete_definition(each, kinds)
            for each in stored
            if isinstance(each, StoredDefinition)
        ]
        found += sorted(
            made_here, key=lambda each: (each.definition.position, each.definition.name)
        )
    return found


def definitions(registry: Registry) -> list[Definition]:
    return [stored.definition for stored in loaded(registry)]


def test_every_column_arrives(registry: Registry) -> None:
    shared: dict[str, Any] = {
        "title": "Title",
        "description": "Text.",
        "icons": ICONS,
        "timeout": 2.5,
        "tags": "b, a",
        "position": 3,
    }
    expected: dict[str, Any] = {
        **shared,
        "demands": AccessRequirements(permissions=("shop.view_order",)),
        "icons": (Icon(src="https://example.org/i.png"),),
        "tags": frozenset("ab"),
    }
    readable: dict[str, Any] = {"mime_type": "text/plain", "ttl_ms": 5, "public": True}
    audience = Annotations(audience=["user"])
    make(
        Tool,
        name="tool",
        input_schema='{"type": "object", "properties": {"z": {}, "a": {}}}',
        output_schema='{"type": "object"}',
        read_only=True,
        destructive=False,
        idempotent=None,
        open_world=True,
        permission="shop.view_order",
        calls_per_minute=30,
        **shared,
    )
    make(
        Resource,
        name="resource",
        uri="x:a",
        size=7,
        annotations='{"audience": ["user"]}',
        **readable,
        permission="shop.view_order",
        **shared,
    )
    make(
        ResourceTemplate,
        name="template",
        uri_template="x:{a}",
        annotations='{"audience": ["user"]}',
        **readable,
        permission="shop.view_order",
        **shared,
    )
    make(
        Prompt,
        name="prompt",
        arguments='[{"name": "order", "required": true}]',
        permission="shop.view_order",
        **shared,
    )
    assert definitions(registry) == [
        ToolDefinition(
            name="tool",
            input_schema={"type": "object", "properties": {"z": {}, "a": {}}},
            output_schema={"type": "object"},
            hints=ToolHints(read_only=True, destructive=False, open_world=True),
            calls_per_minute=30,
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
    make(Tool, name="a", input_schema=schema)
    [tool] = definitions(registry)
    assert isinstance(tool, ToolDefinition)
    assert list(tool.input_schema["properties"]) == ["zebra", "apple", "mango"]  # type: ignore[call-overload]


def test_kind_config_and_row_come_along(registry: Registry) -> None:
    row = make(Tool, name="a", config='{"content": []}')
    [stored] = loaded(registry)
    assert (stored.kind, stored.config) == ("text", {"content": []})
    assert stored.row_label == f"tool {row.pk}"


def test_uploaded_content_comes_along(registry: Registry) -> None:
    Blob.objects.keep(b"\xff")
    name = digest(b"\xff")
    make(Resource, name="a", uri="x:a", config=f'{{"upload": "{name}"}}')
    content = f'[{{"upload": "{name}"}}, {{"upload": "x"}}]'
    make(Tool, name="b", config=f'{{"content": {content}}}')
    uploads = [dict(each.uploads) for each in loaded(registry)]
    assert uploads == [{name: b"\xff"}] * 2


def test_a_functions_signature_is_the_default(registry: Registry) -> None:
    config = '{"function": "shop.find"}'
    make(Tool, name="a", kind="function", config=config)
    make(Prompt, name="b", kind="function", config=config)
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
    make(Tool, name="a", kind="function", config=config, input_schema=schema)
    make(Prompt, name="b", kind="function", config=config, arguments="[]")
    tool, prompt = definitions(registry)
    assert isinstance(tool, ToolDefinition)
    assert tool.input_schema["properties"] == {"customer": {"maxLength": 5}}
    assert isinstance(prompt, PromptDefinition)
    assert prompt.arguments == ()


def test_what_is_not_published_is_not_there(registry: Registry) -> None:
    Tool.objects.create(name="a")
    assert loaded(registry) == []


def test_what_is_served_is_what_was_published(registry: Registry) -> None:
    row = make(Tool, name="a", title="Then")
    row.title, row.name = "Now", "b"
    row.save()
    [tool] = definitions(registry)
    assert (tool.name, tool.title) == ("a", "Then")


def test_only_some_rows() -> None:
    rows = [make(Tool, name=name) for name in "abc"]
    keys = served_versions("tool", [str(rows[1].pk), "99", "no key"])
    assert keys == {("tool", str(rows[1].pk)): rows[1].published_id}
    [one] = load_rows(keys)
    assert isinstance(one, StoredDefinition)
    assert (one.definition.name, one.version) == ("b", 1)


def test_an_overlay_has_only_what_staff_published() -> None:
    row = Tool.objects.create(name="declared", source="code", title="Better")
    key = ("tool", str(row.pk))
    assert load_rows([key]) == [StoredOverlay(key, "declared", {})]
    assert served_versions("tool") == {key: 0}
    published(row)
    [overlay] = load_rows(served_versions("tool"))
    assert overlay == StoredOverlay(key, "declared", {"title": "Better"}, 1)


def test_lists_are_ordered_by_position_then_name(registry: Registry) -> None:
    for name, position in (("b", 0), ("a", 0), ("0", 5), ("z", -1)):
        make(Tool, name=name, position=position)
    assert [each.name for each in definitions(registry)] == ["z", "a", "b", "0"]


def test_a_row_that_cannot_be_read_takes_no_others_along(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    make(Tool, name="bad", icons='[{"src": "ftp://x"}]')
    make(Tool, name="good")
    assert [each.name for each in definitions(registry)] == ["good"]
    assert "'bad' is not served: The src of an icon" in caplog.text


def test_the_number_of_statements_does_not_grow(
    registry: Registry,
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    Blob.objects.keep(b"a")
    Blob.objects.keep(b"b")
    for number in range(20):
        make(Tool, name=f"t{number}")
        name = digest(b"ab"[number % 2 : number % 2 + 1])
        make(Resource, name="r", uri=f"x:{number}", config=f'{{"upload": "{name}"}}')
    with django_assert_num_queries(5 + 2 + 1):
        assert len(loaded(registry)) == 40


def test_one_row_as_the_admin_asks_for_it() -> None:
    stored: StoredDefinition[Definition] = stored_definition(Tool(name="a"))
    assert stored.definition == ToolDefinition(name="a")


def test_servers(
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    Server.objects.filter(slug="default").update(access="public")
    make(
        Server,
        slug="shop",
        title="Shop",
        description="Sells.",
        instructions="Be kind.",
        version="2",
        website_url="https://example.org",
        icons=ICONS,
        access="token, site",
        page_size=5,
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
            selection="tags",
            tags=frozenset("ab"),
        ),
    }


def test_servers_without_those_that_are_stopped(
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    stopped(make(Server, slug="shop"))
    Stop.objects.make(Scope.EVERYTHING, by=By("lee"))
    with django_assert_num_queries(1):
        assert load_servers(stopped=False).keys() == {"default"}
    assert load_servers().keys() == {"default", "shop"}


def test_a_server_with_odd_icons_is_still_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Server.objects.filter(slug="default").update(icons="[7]")
    published(Server.objects.get())
    assert load_servers()["default"].icons == ()
    assert "'default' is served without icons" in caplog.text


@pytest.mark.parametrize("groups", [" ", "\n", "\u00a0\n\t"])
def test_groups_that_name_nothing_let_nobody_in(groups: str) -> None:
    assert demands_of({"groups": groups}).groups == (frozenset({NO_GROUP}),)
    assert not demands_of({"groups": ""})
