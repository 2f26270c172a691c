"""Definitions as the lists of each revision show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision

Definition: TypeAlias = Any
"""One of `interface.definitions`, which this room does not import."""


def _describe_members(definition: Definition, **members: object) -> JsonObject:
    described = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        **members,
        "icons": [icon.to_wire() for icon in definition.icons],
        "_meta": dict(definition.meta),
    }
    # Empty texts, lists and objects say nothing; schemas are never empty.
    return {
        name: value
        for name, value in described.items()
        if value not in ("", [], {}, None)
    }


def tool_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `Tool`."""
    hints = definition.hints.to_wire()
    if definition.title and "title" not in revision.fields["tool"]:
        # 2025-03-26 knows a tool's title as an annotation only.
        hints["title"] = definition.title
    members = _describe_members(
        definition,
        inputSchema=input_schema(definition.input_schema, revision),
        outputSchema=definition.output_schema,
        annotations=hints,
    )
    return revision.known_members("tool", members)


def input_schema(schema: Mapping[str, object], revision: Revision) -> JsonObject:
    """Return a tool's schema as that revision's own schema wants it.

    Until 2025-11-25 a property's schema is an object: `true` becomes `{}`.
    """
    result = {"type": "object", **schema}
    properties = schema.get("properties")
    if revision.boolean_subschemas or not isinstance(properties, Mapping):
        return result
    objects: dict[bool, JsonObject] = {True: {}, False: {"not": {}}}
    result["properties"] = {
        name: objects[value] if isinstance(value, bool) else value
        for name, value in properties.items()
    }
    return result


def _readable_members(definition: Definition, **members: object) -> JsonObject:
    return _describe_members(
        definition,
        mimeType=definition.mime_type,
        annotations=definition.annotations and definition.annotations.to_wire(),
        **members,
    )


def _filter_members(kind: str, members: JsonObject, revision: Revision) -> JsonObject:
    known = revision.known_members(kind, members)
    if isinstance(annotations := known.get("annotations"), dict):
        known["annotations"] = revision.known_members("annotations", annotations)
    return known


def resource_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `Resource`."""
    members = _readable_members(definition, uri=definition.uri, size=definition.size)
    return _filter_members("resource", members, revision)


def template_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `ResourceTemplate`."""
    members = _readable_members(definition, uriTemplate=definition.uri_template)
    return _filter_members("template", members, revision)


def prompt_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `Prompt`."""
    arguments = [_argument_to_wire(each, revision) for each in definition.arguments]
    return revision.known_members(
        "prompt", _describe_members(definition, arguments=arguments)
    )


def _argument_to_wire(argument: Definition, revision: Revision) -> JsonObject:
    members = {
        "name": argument.name,
        "title": argument.title,
        "description": argument.description,
        "required": argument.required,
    }
    non_empty = {name: value for name, value in members.items() if value != ""}
    return revision.known_members("prompt_argument", non_empty)
