"""Definitions as the lists of each revision show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcp_app.protocol.content import Annotations, Icon
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision


class _DescriptionMembers(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def icons(self) -> Sequence[Icon]: ...
    @property
    def meta(self) -> Mapping[str, object]: ...


class _Hints(Protocol):
    def to_wire(self) -> JsonObject: ...


class _Tool(_DescriptionMembers, Protocol):
    @property
    def input_schema(self) -> Mapping[str, object]: ...
    @property
    def output_schema(self) -> Mapping[str, object] | None: ...
    @property
    def hints(self) -> _Hints: ...


class _Readable(_DescriptionMembers, Protocol):
    @property
    def mime_type(self) -> str: ...
    @property
    def annotations(self) -> Annotations | None: ...


class _Resource(_Readable, Protocol):
    @property
    def uri(self) -> str: ...
    @property
    def size(self) -> int | None: ...


class _Template(_Readable, Protocol):
    @property
    def uri_template(self) -> str: ...


class _Argument(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def required(self) -> bool: ...


class _Prompt(_DescriptionMembers, Protocol):
    @property
    def arguments(self) -> Sequence[_Argument]: ...


def _icon_members(icons: Iterable[Icon]) -> list[JsonObject]:
    return [icon.to_wire() for icon in icons]


def _describe_members(definition: _DescriptionMembers, **members: object) -> JsonObject:
    described = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        **members,
        "icons": _icon_members(definition.icons),
        "_meta": dict(definition.meta),
    }
    # Empty texts, lists and objects say nothing; schemas are never empty.
    return {
        name: value
        for name, value in described.items()
        if value not in ("", [], {}, None)
    }


def tool_to_wire(definition: _Tool, revision: Revision) -> JsonObject:
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
    result["properties"] = {
        name: _as_object(value) for name, value in properties.items()
    }
    return result


def _as_object(subschema: object) -> object:
    if isinstance(subschema, bool):
        return {} if subschema else {"not": {}}
    return subschema


def _readable_members(definition: _Readable, **members: object) -> JsonObject:
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


def resource_to_wire(definition: _Resource, revision: Revision) -> JsonObject:
    """Return a `Resource`."""
    members = _readable_members(definition, uri=definition.uri, size=definition.size)
    return _filter_members("resource", members, revision)


def template_to_wire(definition: _Template, revision: Revision) -> JsonObject:
    """Return a `ResourceTemplate`."""
    members = _readable_members(definition, uriTemplate=definition.uri_template)
    return _filter_members("template", members, revision)


def prompt_to_wire(definition: _Prompt, revision: Revision) -> JsonObject:
    """Return a `Prompt`."""
    arguments = [_argument_to_wire(each, revision) for each in definition.arguments]
    return revision.known_members(
        "prompt", _describe_members(definition, arguments=arguments)
    )


def _argument_to_wire(argument: _Argument, revision: Revision) -> JsonObject:
    members = {
        "name": argument.name,
        "title": argument.title,
        "description": argument.description,
        "required": argument.required,
    }
    non_empty = {name: value for name, value in members.items() if value != ""}
    return revision.known_members("prompt_argument", non_empty)
