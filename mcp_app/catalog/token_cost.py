"""What a definition shows to clients: its texts, and the tokens that they take."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcp_app.catalog.suggestions import SUGGESTING, suggestions_of
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc, listing
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import Path
from mcp_app.protocol.revisions import LATEST, Revision

CHARACTERS_PER_TOKEN: Final = 4

_SHOW: Mapping[type[Definition], Callable[[Any, Revision], JsonObject]] = {
    ToolDefinition: listing.tool,
    ResourceDefinition: listing.resource,
    ResourceTemplateDefinition: listing.resource_template,
    PromptDefinition: listing.prompt,
}


def tokens(definition: Definition) -> int:
    """Estimate what a definition takes of a model's memory in a list.

    About 4 characters of its entry, as the newest revision has it, make a token.
    What has no JSON form, and cannot be listed, takes nothing.
    """
    shown = _SHOW[type(definition)](definition, LATEST)
    return estimate(_encoded(shown).decode())


def estimate(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


class DefinitionText(NamedTuple):
    """A text of a column; `place` says where in it, `lines` if it may have several."""

    field: str
    text: str
    lines: bool = False
    place: str = ""


def texts(definition: Definition) -> Iterator[DefinitionText]:
    """Yield all texts that clients get, those inside JSON with their places.

    Of JSON without any text that could hide something nothing comes.
    """
    yield DefinitionText("name", definition.name)
    yield DefinitionText("title", str(definition.title))
    yield DefinitionText("description", str(definition.description), lines=True)
    yield from _inside("icons", [icon.to_wire() for icon in definition.icons])
    yield from _inside("", definition.meta)
    if isinstance(definition, ToolDefinition):
        yield from _inside("input_schema", definition.input_schema)
        yield from _inside("output_schema", definition.output_schema)
    elif isinstance(definition, PromptDefinition):
        for each in definition.arguments:
            place = visible(each.name)
            yield DefinitionText("arguments", each.name, place=place)
            yield DefinitionText("arguments", str(each.title), place=place)
            yield DefinitionText("arguments", str(each.description), True, place)
    elif isinstance(definition, ResourceDefinition):
        yield DefinitionText("uri", definition.uri)
        yield DefinitionText("mime_type", definition.mime_type)
    elif isinstance(definition, ResourceTemplateDefinition):
        yield DefinitionText("uri_template", definition.uri_template)
        yield DefinitionText("mime_type", definition.mime_type)
    if isinstance(definition, ResourceDefinition | ResourceTemplateDefinition):
        given = definition.annotations
        yield from _inside("annotations", {} if given is None else given.to_wire())
    yield from _suggested(definition)


def _suggested(definition: Definition) -> Iterator[DefinitionText]:
    """Yield what clients get while somebody fills in a name."""
    for name, suggestions in suggestions_of(definition).items():
        for each in suggestions:
            yield DefinitionText(
                SUGGESTING[type(definition)], each, place=visible(name)
            )


def prose(definition: Definition) -> Iterator[tuple[str, str]]:
    """Yield (column, text) of what models read as sentences; schemas as JSON text."""
    yield "description", str(definition.description)
    if isinstance(definition, ToolDefinition):
        yield "input_schema", _encoded(definition.input_schema).decode()
        yield "output_schema", _encoded(definition.output_schema).decode()
    elif isinstance(definition, PromptDefinition):
        for each in definition.arguments:
            yield "arguments", str(each.description)


def _inside(field: str, value: object) -> Iterator[DefinitionText]:
    encoded = _encoded(value)
    # Controls are written with a backslash, but for DEL.
    if encoded.isascii() and b"\\" not in encoded and b"\x7f" not in encoded:
        return
    # As it is written: lazy texts, enumerations and models of code are strings there.
    for path, text in _strings(json.loads(encoded), ()):
        yield DefinitionText(field, text, True, visible(jsonrpc.place(path)))


def _encoded(value: object) -> bytes:
    """Return JSON text; nothing for what is no JSON, which is told elsewhere."""
    try:
        return jsonrpc.write(value)
    except jsonrpc.UnserializableValue:
        return b""


def _strings(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield all strings of a JSON value, keys included."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            inside = (*path, name)
            yield inside, name
            yield from _strings(inner, inside)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, (*path, index))
