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


def _icons(icons: Iterable[Icon]) -> list[JsonObject]:
    return [icon.to_wire() for icon in icons]


def _described(definition: _DescriptionMembers, **members: object) -> JsonObject:
    shown = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        **members,
        "icons": _icons(definition.icons),
        "_meta": dict(definition.meta),
    }
    # Empty texts, lists and objects say nothing; schemas are never empty.
    return {
        name: value for name, value in shown.items() if value not in ("", [], {}, None)
    }


def tool(definition: _Tool, revision: Revision) -> JsonObject:
    """Return a `Tool`."""
    hints = definition.hints.to_wire()
    if definition.title and "title" not in revision.fields["tool"]:
        # 2025-03-26 knows a tool's title as an annotation only.
        hints["title"] = definition.title
    shown = _described(
        definition,
        inputSchema=input_schema(definition.input_schema, revision),
        outputSchema=definition.output_schema,
        annotations=hints,
    )
    return revision.keep("tool", shown)


def input_schema(schema: Mapping[str, object], revision: Revision) -> JsonObject:
    """Return a tool's schema as that revision's own schema wants it.

    Until 2025-11-25 a property's schema is an object: `true` becomes `{}`.
    """
    shown = {"type": "object", **schema}
    properties = schema.get("properties")
    if revision.boolean_subschemas or not isinstance(properties, Mapping):
        return shown
    shown["properties"] = {
        name: _as_object(value) for name, value in properties.items()
    }
    return shown


def _as_object(subschema: object) -> object:
    if isinstance(subschema, bool):
        return {} if subschema else {"not": {}}
    return subschema


def _readable(definition: _Readable, **members: object) -> JsonObject:
    return _described(
        definition,
        mimeType=definition.mime_type,
        annotations=definition.annotations and definition.annotations.to_wire(),
        **members,
    )


def _kept(kind: str, shown: JsonObject, revision: Revision) -> JsonObject:
    kept = revision.keep(kind, shown)
    if isinstance(annotations := kept.get("annotations"), dict):
        kept["annotations"] = revision.keep("annotations", annotations)
    return kept


def resource(definition: _Resource, revision: Revision) -> JsonObject:
    """Return a `Resource`."""
    shown = _readable(definition, uri=definition.uri, size=definition.size)
    return _kept("resource", shown, revision)


def resource_template(definition: _Template, revision: Revision) -> JsonObject:
    """Return a `ResourceTemplate`."""
    shown = _readable(definition, uriTemplate=definition.uri_template)
    return _kept("template", shown, revision)


def prompt(definition: _Prompt, revision: Revision) -> JsonObject:
    """Return a `Prompt`."""
    arguments = [_argument(each, revision) for each in definition.arguments]
    return revision.keep("prompt", _described(definition, arguments=arguments))


def _argument(argument: _Argument, revision: Revision) -> JsonObject:
    shown = {
        "name": argument.name,
        "title": argument.title,
        "description": argument.description,
        "required": argument.required,
    }
    kept = {name: value for name, value in shown.items() if value != ""}
    return revision.keep("prompt_argument", kept)
