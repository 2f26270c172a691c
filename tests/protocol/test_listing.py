"""Definitions as the lists of each revision show them, held against its schema."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.interface.definitions import (
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.protocol import results
from mcp_app.protocol.content import Annotations, Icon
from mcp_app.protocol.revisions import Revision
from tests.wire.validation import wire_validator

COMMON: Final[dict[str, Any]] = {
    "title": "Title",
    "description": "Described.",
    "icons": [Icon(src="https://example.org/i.png")],
    "meta": {"example.org/a": 1},
}
NOTED: Final = Annotations(priority=1, last_modified="2026-01-02T03:04:05Z")

READABLE: Final[dict[str, Any]] = {
    "name": "readable",
    "mime_type": "text/plain",
    "annotations": NOTED,
    **COMMON,
}
RESOURCE: Final = ResourceDefinition(uri="a:b", size=0, **READABLE)
TEMPLATE: Final = ResourceTemplateDefinition(uri_template="a:{b}", **READABLE)
PROMPT: Final = PromptDefinition(
    name="prompt",
    arguments=[
        PromptArgument(name="a", title="A", description="An a.", required=True),
        PromptArgument(name="b"),
    ],
    **COMMON,
)


def judged(
    revision: Revision, method: str, member: str, shown: dict[str, Any]
) -> list[str]:
    result: dict[str, Any] = {member: [shown]}
    if revision.cache_hints:
        result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    message = {"jsonrpc": "2.0", "id": 1, "result": result}
    return wire_validator(revision.version).check(message, method=method)


def added(revision: Revision) -> set[str]:
    newer = {"title", "_meta"} if revision.version >= "2025-06-18" else set()
    return newer | ({"icons"} if revision.version >= "2025-11-25" else set())


def test_bare_definitions(revision: Revision) -> None:
    tool = results.tool_to_wire(ToolDefinition(name="t"), revision)
    assert tool.keys() == {"name", "inputSchema"}
    assert tool["inputSchema"]["type"] == "object"
    resource = results.resource_to_wire(
        ResourceDefinition(name="r", uri="a:b"), revision
    )
    assert resource == {"name": "r", "uri": "a:b"}
    template = ResourceTemplateDefinition(name="r", uri_template="a:{b}")
    shown = results.template_to_wire(template, revision)
    assert shown == {"name": "r", "uriTemplate": "a:{b}"}
    assert results.prompt_to_wire(PromptDefinition(name="p"), revision) == {"name": "p"}
    for method, member, each in (
        ("tools/list", "tools", tool),
        ("resources/list", "resources", resource),
        ("resources/templates/list", "resourceTemplates", shown),
    ):
        assert judged(revision, method, member, each) == []


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({}, {"type": "object"}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        ({"$ref": "#/$defs/a"}, {"type": "object", "$ref": "#/$defs/a"}),
        (
            {"type": "object", "properties": True},
            {"type": "object", "properties": True},
        ),
    ],
)
def test_odd_schemas(
    revision: Revision, schema: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert results.input_schema(schema, revision) == shown


def test_resources(revision: Revision) -> None:
    shown = results.resource_to_wire(RESOURCE, revision)
    assert judged(revision, "resources/list", "resources", shown) == []
    common = {"name", "description", "mimeType", "annotations"} | added(revision)
    assert shown.keys() == common | {"uri", "size"}
    assert shown["size"] == 0
    template = results.template_to_wire(TEMPLATE, revision)
    method, member = "resources/templates/list", "resourceTemplates"
    assert judged(revision, method, member, template) == []
    assert template.keys() == common | {"uriTemplate"}
    for each in (shown, template):
        assert ("lastModified" in each["annotations"]) == (
            revision.version >= "2025-06-18"
        )


def test_prompts(revision: Revision) -> None:
    shown = results.prompt_to_wire(PROMPT, revision)
    assert judged(revision, "prompts/list", "prompts", shown) == []
    assert shown.keys() == {"name", "description", "arguments"} | added(revision)
    first, second = shown["arguments"]
    titled = {"title": "A"} if revision.version >= "2025-06-18" else {}
    assert first == {"name": "a", "description": "An a.", "required": True, **titled}
    assert second == {"name": "b", "required": False}
