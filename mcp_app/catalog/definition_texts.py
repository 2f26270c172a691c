"""Texts of definitions: how many tokens they take, and how they are searched."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cache
from typing import Any, Final, NamedTuple

from mcp_app.catalog.suggestions import SUGGESTING, suggestions_of
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc, results
from mcp_app.protocol.events import POLL, event_type_to_wire
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import Path
from mcp_app.protocol.revisions import LATEST, Revision

# -- token cost ------------------------------------------------------------------------
# The texts of a definition that clients get, and the tokens that they take.

CHARACTERS_PER_TOKEN: Final = 4

_SHOW: Mapping[type[Definition], Callable[[Any, Revision], JsonObject]] = {
    ToolDefinition: results.tool_to_wire,
    ResourceDefinition: results.resource_to_wire,
    ResourceTemplateDefinition: results.template_to_wire,
    PromptDefinition: results.prompt_to_wire,
    EventDefinition: lambda definition, _: event_type_to_wire(definition, [POLL]),
}


def tokens(definition: Definition) -> int:
    """Estimate how many tokens of a model's context a definition takes in a list.

    A token is about 4 characters of its list entry in the newest revision.  A
    definition without a JSON form cannot be listed, and takes 0.
    """
    entry = _SHOW[type(definition)](definition, LATEST)
    return estimate_tokens(_json_bytes(entry).decode())


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


class DefinitionText(NamedTuple):
    """A text in a column, or at a `place` in it; `lines` allows line breaks."""

    field: str
    text: str
    lines: bool = False
    place: str = ""


def texts_of_definition(definition: Definition) -> Iterator[DefinitionText]:
    """Yield all texts that clients get, those inside JSON with their places.

    JSON that is visible ASCII without escapes is left out: nothing can hide in it.
    """
    yield DefinitionText("name", definition.name)
    yield DefinitionText("title", str(definition.title))
    yield DefinitionText("description", str(definition.description), lines=True)
    yield from _texts_inside("icons", [icon.to_wire() for icon in definition.icons])
    # No column has the meta: a finding there is about the whole definition.
    yield from _texts_inside("", definition.meta)
    if isinstance(definition, ToolDefinition):
        yield from _texts_inside("input_schema", definition.input_schema)
        yield from _texts_inside("output_schema", definition.output_schema)
    elif isinstance(definition, PromptDefinition):
        for argument in definition.arguments:
            name = visible(argument.name)
            yield DefinitionText("arguments", argument.name, place=name)
            yield DefinitionText("arguments", str(argument.title), place=name)
            yield DefinitionText("arguments", str(argument.description), True, name)
    elif isinstance(definition, EventDefinition):
        yield from _texts_inside("config", definition.input_schema)
        yield from _texts_inside("config", definition.payload_schema)
    elif isinstance(definition, ResourceDefinition):
        yield DefinitionText("uri", definition.uri)
    elif isinstance(definition, ResourceTemplateDefinition):
        yield DefinitionText("uri_template", definition.uri_template)
    if isinstance(definition, ResourceDefinition | ResourceTemplateDefinition):
        yield DefinitionText("mime_type", definition.mime_type)
        annotations = definition.annotations
        written = {} if annotations is None else annotations.to_wire()
        yield from _texts_inside("annotations", written)
    yield from _suggestion_texts(definition)


def _suggestion_texts(definition: Definition) -> Iterator[DefinitionText]:
    for name, suggestions in suggestions_of(definition).items():
        column = SUGGESTING[type(definition)]
        for suggestion in suggestions:
            yield DefinitionText(column, suggestion, place=visible(name))


def prose_texts(definition: Definition) -> Iterator[tuple[str, str]]:
    """Yield (column, text) of what models read as sentences; schemas as JSON text."""
    yield "description", str(definition.description)
    if isinstance(definition, ToolDefinition):
        yield "input_schema", _json_bytes(definition.input_schema).decode()
        yield "output_schema", _json_bytes(definition.output_schema).decode()
    elif isinstance(definition, PromptDefinition):
        for argument in definition.arguments:
            yield "arguments", str(argument.description)


def _texts_inside(field: str, value: object) -> Iterator[DefinitionText]:
    encoded = _json_bytes(value)
    # JSON writes each control character but DEL with a backslash.
    if encoded.isascii() and b"\\" not in encoded and b"\x7f" not in encoded:
        return
    # In the encoded form, lazy texts, enumerations and models are plain JSON.
    for path, text in _json_strings(json.loads(encoded), ()):
        yield DefinitionText(field, text, True, visible(jsonrpc.path_text(path)))


def _json_bytes(value: object) -> bytes:
    # Another rule reports values that have no JSON form.
    try:
        return jsonrpc.write(value)
    except jsonrpc.UnserializableValue:
        return b""


def _json_strings(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            inside = (*path, name)
            yield inside, name
            yield from _json_strings(inner, inside)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _json_strings(inner, (*path, index))


# -- search index ----------------------------------------------------------------------
# Full-text search in the tools of one list, by SQLite's FTS5 in memory.
#
# Callers who see different lists use different indexes.  So neither the order nor the
# number of results tells callers anything about tools that they cannot see.

MAX_WORDS: Final = 50
MAX_COLUMN_LENGTH: Final = 20_000
"""Characters of a column that are indexed."""

_TABLE: Final = (
    "CREATE VIRTUAL TABLE tools USING"
    " fts5(name, title, description, parameters, tokenize='porter unicode61')"
)
_INSERT: Final = (
    "INSERT INTO tools (rowid, name, title, description, parameters)"
    " VALUES (?, ?, ?, ?, ?)"
)
_FIND: Final = (
    "SELECT rowid FROM tools WHERE tools MATCH ?"
    " ORDER BY bm25(tools, 10.0, 5.0, 1.0, 0.5), rowid LIMIT ?"
)
"""The best matches first; the numbers are the weights of the columns in _TABLE."""
_COUNT: Final = "SELECT count(*) FROM tools WHERE tools MATCH ?"
_WORD: Final = re.compile(r"[^\W_]+")
_VERBS: Final = {
    **dict.fromkeys(("make", "new", "open", "publish"), "create"),
    **dict.fromkeys(("edit", "change", "modify"), "update"),
    **dict.fromkeys(("read", "show", "view"), "get"),
    "remove": "delete",
}
"""Verbs that names of tools have, by the words that people use."""
_HUMP: Final = re.compile(r"([a-z0-9])([A-Z])")
"""Where a word begins inside another one, as in “getOrder”."""


@cache
def has_full_text() -> bool:
    """Whether this Python's SQLite has FTS5."""
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute(_TABLE)
    except sqlite3.OperationalError:
        return False
    return True


class SearchIndex:
    """The index of some tools; building it takes long, a search is quick."""

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        # A thread builds the index; the event loop searches it.
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(_TABLE)
        rows = (
            (at, *(text[:MAX_COLUMN_LENGTH] for text in _indexed_texts(tool)))
            for at, tool in enumerate(tools)
        )
        self._database.executemany(_INSERT, rows)

    def __del__(self) -> None:
        self._database.close()

    def find_tools(self, query: str, limit: int) -> tuple[list[int], int]:
        """Return the indexes of the best tools, and how many fit in all."""
        words = _WORD.findall(_HUMP.sub(r"\1 \2", query))[:MAX_WORDS]
        if not words:
            return [], 0
        # Each word is quoted, so that FTS5 takes none of them as an operator.
        match = " OR ".join(f'"{word}"' for word in words)
        verbs = {_VERBS[word.lower()] for word in words if word.lower() in _VERBS}
        with_verb = f"({match}) AND ({' OR '.join(sorted(verbs))})"
        # A verb ranks the tools that have it higher, but adds none to the results.
        ranked = f"{match} OR ({with_verb})" if verbs else match
        places = [row[0] for row in self._database.execute(_FIND, (ranked, limit))]
        ((total,),) = self._database.execute(_COUNT, (match,))
        return places, total


def _indexed_texts(tool: ToolDefinition) -> tuple[str, str, str, str]:
    parameters = " ".join(_parameters(tool.input_schema))
    return (
        _with_split_words(tool.name),
        _with_split_words(tool.title),
        tool.description,
        _with_split_words(parameters),
    )


def _with_split_words(text: str) -> str:
    split_text = _HUMP.sub(r"\1 \2", text)
    return text if split_text == text else f"{text} {split_text}"


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, property_schema in properties.items():
        yield name
        if isinstance(property_schema, Mapping):
            for member in ("title", "description"):
                if isinstance(property_schema.get(member), str):
                    yield property_schema[member]
