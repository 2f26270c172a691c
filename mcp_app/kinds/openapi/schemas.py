"""Schemas of OpenAPI as JSON Schema of 2020-12, complete in themselves.

References into the document are put in line where that is short; what refers to itself,
or is long, is a definition of the operation's schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from django.utils.translation import gettext as _

from mcp_app.kinds.openapi.reading import DEEPEST, MOST_NODES, DocumentError
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

IN_LINE_DEPTH: Final = 16
"""Deeper than so many schemas within schemas, references become definitions."""
IN_LINE: Final = 32 * 1024
"""Bytes of a referenced schema that is still put in line."""

_DROPPED: Final = frozenset(
    {"discriminator", "example", "examples", "externalDocs", "xml", "deprecated"}
)
_OF_SCHEMAS: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LISTS_OF_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS_OF_SCHEMAS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)


class Unusable(ValueError):
    """A part of a document that cannot become a tool; the message is a remark."""


def target_of(document: JsonObject, reference: object) -> Any:
    """Return what a local reference leads to (RFC 6901); raise `Unusable`."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise Unusable(_leads_nowhere(reference))
    value: Any = document
    pointer = unquote(reference[1:])
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,8}", name):
            if int(name) >= len(value):
                raise Unusable(_leads_nowhere(reference))
            value = value[int(name)]
        else:
            raise Unusable(_leads_nowhere(reference))
    return value


def _leads_nowhere(reference: object) -> str:
    shown = repr(reference)[:100]
    return _("its reference %(reference)s leads nowhere") % {"reference": shown}


def resolve(document: JsonObject, value: Any) -> JsonObject:
    """Follow the references of a part that is no schema; raise `Unusable`."""
    for _step in range(10):
        if not isinstance(value, dict):
            raise Unusable(_("a part of it is no object"))
        if "$ref" not in value:
            return value
        value = target_of(document, value["$ref"])
    raise Unusable(_("its references lead in a circle"))


@dataclass
class _Piece:
    """A translated schema that a reference leads to, and how many values it has."""

    schema: Any
    nodes: int
    name: str = ""
    """Of its definition; "" if it is put in line."""


@dataclass
class Translator:
    """Translates the schemas of one document; `old` is its version 3.0."""

    document: JsonObject
    old: bool
    nodes: int = 0
    _pieces: dict[str, _Piece] = field(default_factory=dict)
    _open: dict[str, str] = field(default_factory=dict)
    """References that are being translated, with the name of each that met itself."""
    _definitions: dict[str, Any] = field(default_factory=dict)
    _new: list[str] = field(default_factory=list)
    """The references that the translation of now was the first to meet."""
    _waiting: dict[str, Any] = field(default_factory=dict)
    """Targets of references that stand too deep to be put in line, by their names."""

    def translate(self, schema: Any) -> Any:
        """Return a schema whose references lead into `$defs`; raise `Unusable`."""
        self._open.clear()
        self._new.clear()
        try:
            translated = self._schema(schema, 0)
            while self._waiting:
                name, target = self._waiting.popitem()
                self._definitions[name] = self._schema(target, 0)
        except Unusable:
            # Each may refer to one that is no definition now: others try again.
            self._waiting.clear()
            for key in self._new:
                del self._pieces[key]
            raise
        return translated

    def definitions_of(self, schema: Any) -> JsonObject:
        """Return the definitions that a translated schema needs, by their names."""
        needed: JsonObject = {}
        waiting = [schema]
        while waiting:
            for name in _names_in(waiting.pop()):
                if name not in needed and name in self._definitions:
                    needed[name] = self._definitions[name]
                    waiting.append(needed[name])
        return needed

    def _count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MOST_NODES:
            raise DocumentError(
                _("The document has more than %d values, references counted each time.")
                % MOST_NODES
            )

    def _schema(self, schema: Any, depth: int) -> Any:
        self._count(1)
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise Unusable(_("a part of its schema is neither an object nor a boolean"))
        if depth > DEEPEST:
            raise Unusable(_("its schema is nested too deep"))
        if "$ref" in schema:
            return self._referenced(schema, depth)
        return self._members(schema, depth)

    def _referenced(self, schema: JsonObject, depth: int) -> Any:
        target = self._reference(schema["$ref"], depth)
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        own = {} if self.old else self._members(beside, depth)
        if not own:
            return target
        # What stands beside a reference holds, too (JSON Schema 2020-12, 8.2.3.1).
        if isinstance(target, dict) and not own.keys() & target.keys():
            return {**target, **own}
        if own.keys() <= {"description", "title", "default"}:
            return {**target, **own} if isinstance(target, dict) else target
        return {"allOf": [target, own]}

    def _reference(self, reference: object, depth: int) -> Any:
        target = target_of(self.document, reference)
        key = str(reference)
        if key in self._open:
            self._open[key] = self._open[key] or self._new_name(key)
            return {"$ref": f"#/$defs/{self._open[key]}"}
        piece = self._pieces.get(key)
        if piece is None and depth > IN_LINE_DEPTH:
            name = self._new_name(key)
            piece = self._keep(key, _Piece(None, 1, name))
            self._waiting[name] = target
        elif piece is None:
            piece = self._keep(key, self._piece(key, target, depth))
        else:
            self._count(piece.nodes)
        return {"$ref": f"#/$defs/{piece.name}"} if piece.name else piece.schema

    def _keep(self, key: str, piece: _Piece) -> _Piece:
        self._new.append(key)
        self._pieces[key] = piece
        return piece

    def _piece(self, key: str, target: Any, depth: int) -> _Piece:
        before = self.nodes
        self._open[key] = ""
        try:
            schema = self._schema(target, depth + 1)
        finally:
            name = self._open.pop(key)
        if not name and len(jsonrpc.write(schema)) > IN_LINE:
            name = self._new_name(key)
        if name:
            self._definitions[name] = schema
        return _Piece(schema, 1 if name else self.nodes - before, name)

    def _new_name(self, key: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", key.rpartition("/")[2]).strip("_")[:40]
        name, number = base or "schema", 1
        taken = {*self._definitions, *self._open.values(), *self._waiting}
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return name

    def _members(self, schema: JsonObject, depth: int) -> JsonObject:
        members: JsonObject = {}
        for name, value in schema.items():
            if name in _DROPPED or name.startswith("x-"):
                continue
            members[name] = self._member(name, value, depth)
        _without_read_only(schema, members, self)
        return _of_old(members) if self.old else members

    def _member(self, name: str, value: Any, depth: int) -> Any:
        if name in _OF_SCHEMAS and isinstance(value, dict | bool):
            return self._schema(value, depth + 1)
        if name in _LISTS_OF_SCHEMAS and isinstance(value, list):
            return [self._schema(each, depth + 1) for each in value]
        if name in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            return {
                inner: self._schema(each, depth + 1) for inner, each in value.items()
            }
        return value


def _without_read_only(
    schema: JsonObject, members: JsonObject, translator: Translator
) -> None:
    """Leave out members that only the other site writes."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    hidden = {
        name for name, each in properties.items() if _is_read_only(each, translator)
    }
    if not hidden:
        return
    kept = members["properties"]
    members["properties"] = {k: v for k, v in kept.items() if k not in hidden}
    required = members.get("required")
    if isinstance(required, list):
        members["required"] = [each for each in required if each not in hidden]


def _is_read_only(schema: Any, translator: Translator) -> bool:
    if isinstance(schema, dict) and "$ref" in schema and "readOnly" not in schema:
        try:
            schema = target_of(translator.document, schema["$ref"])
        except Unusable:
            return False
    return isinstance(schema, dict) and schema.get("readOnly") is True


def _of_old(members: JsonObject) -> JsonObject:
    """Translate what only OpenAPI 3.0 says in its own way."""
    nullable = members.pop("nullable", False)
    if nullable is True and "type" in members:
        kinds = members["type"]
        kinds = kinds if isinstance(kinds, list) else [kinds]
        members["type"] = [*kinds, *(() if "null" in kinds else ("null",))]
        if isinstance(members.get("enum"), list) and None not in members["enum"]:
            members["enum"] = [*members["enum"], None]
    for exclusive, bound in (
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ):
        if not isinstance(members.get(exclusive), bool):
            continue
        if members.pop(exclusive) and bound in members:
            members[exclusive] = members.pop(bound)
    return members


def _names_in(value: Any) -> list[str]:
    """Return the definitions that the references of a schema name."""
    names: list[str] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, Mapping):
            reference = each.get("$ref")
            if isinstance(reference, str):
                names.append(reference.rpartition("/")[2])
            waiting += each.values()
    return names
