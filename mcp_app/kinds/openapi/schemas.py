"""Translates schemas of OpenAPI into JSON Schema 2020-12 without outer references.

A short target of a reference is put in line.  A target that is long or refers to itself
becomes a definition of the operation's schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from django.utils.translation import gettext as _

from mcp_app.conf import MIB
from mcp_app.kinds.openapi.reading import DEEPEST, MOST_NODES, DocumentError, Names
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

IN_LINE_DEPTH: Final = 16
"""At a greater depth of nested schemas, references become definitions."""
IN_LINE: Final = 32 * 1024
"""The most bytes of a referenced schema that is put in line."""
MOST_WRITTEN: Final = 64 * MIB
"""The most bytes that references of a document put in line, or that offers take."""

_DROPPED: Final = frozenset(
    {"discriminator", "example", "examples", "externalDocs", "xml", "deprecated"}
    # Keywords of JSON Schema 2019-09, which 2020-12 does not have any more.
    | {"$recursiveAnchor", "$recursiveRef"}
)
_OF_SCHEMAS: Final = frozenset(
    {
        *("additionalProperties", "contains", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords whose value is a schema."""
_LISTS_OF_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS_OF_SCHEMAS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

_Steps: TypeAlias = tuple[str, ...]


class Unusable(ValueError):
    """A part of a document that cannot become a tool; the message is a remark."""


def pointer_steps(reference: object) -> _Steps:
    """Return the steps of a local reference (RFC 6901), decoded.

    Raises `Unusable` for any other reference, also for anchors.
    """
    if not isinstance(reference, str):
        raise Unusable(_leads_nowhere(reference))
    if not reference.startswith("#"):
        message = _(
            "its reference %(reference)s leads to another document: make one document"
            " of all first, for example with “redocly bundle”"
        )
        raise Unusable(message % {"reference": repr(reference)[:100]})
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        raise Unusable(_leads_nowhere(reference))
    steps = pointer.split("/")[1:]
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def target_of(document: JsonObject, reference: object) -> Any:
    """Return the target of a local reference; raise `Unusable` if there is none."""
    value: Any = document
    for name in pointer_steps(reference):
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
    text = repr(reference)[:100]
    return _("its reference %(reference)s leads nowhere") % {"reference": text}


def resolve_references(document: JsonObject, value: Any) -> JsonObject:
    """Follow the references of a part that is no schema; raise `Unusable`."""
    # Ten references in a row count as a circle.
    for _step in range(10):
        if not isinstance(value, dict):
            raise Unusable(_("a part of it is no object"))
        if "$ref" not in value:
            return value
        value = target_of(document, value["$ref"])
    raise Unusable(_("its references lead in a circle"))


def serialize_schema(schema: Any) -> bytes:
    """Return a schema as JSON; raise `Unusable` if it has no JSON form."""
    try:
        return jsonrpc.write(schema)
    except jsonrpc.UnserializableValue as error:
        message = _("its schema is refused: %(error)s") % {"error": str(error)[:300]}
        raise Unusable(message) from None


@dataclass
class _Piece:
    """A translated target of a reference, and its size if it is put in line."""

    schema: Any
    nodes: int
    size: int = 0
    name: str = ""
    """The name of its definition; "" if it is put in line."""


@dataclass
class Translator:
    """Translates the schemas of one document; `old` says that it is OpenAPI 3.0."""

    document: JsonObject
    old: bool
    nodes: int = 0
    size: int = 0
    """Bytes that references put in line."""
    _pieces: dict[_Steps, _Piece] = field(default_factory=dict)
    _open: dict[_Steps, str] = field(default_factory=dict)
    """References that are being translated; one that contains itself has a name."""
    _definitions: dict[str, Any] = field(default_factory=dict)
    _names: Names = field(default_factory=Names)
    _new: list[_Steps] = field(default_factory=list)
    """The references that no translation before the current one has met."""
    _waiting: dict[str, Any] = field(default_factory=dict)
    """Targets of references that are too deep to be put in line, by their names."""

    def translate(self, schema: Any) -> Any:
        """Return a schema whose references lead into `$defs`; raise `Unusable`."""
        self._open.clear()
        self._new.clear()
        try:
            translated = self._translate_schema(schema, 0)
            while self._waiting:
                name, target = self._waiting.popitem()
                self._definitions[name] = self._translate_schema(target, 0)
        except Exception:
            # New pieces may refer to definitions that were not made: forget them.
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
            for name in _referenced_names(waiting.pop()):
                if name not in needed and name in self._definitions:
                    needed[name] = self._definitions[name]
                    waiting.append(needed[name])
        return needed

    def definition(self, name: str) -> Any:
        """Return the definition with this name; None if there is none."""
        return self._definitions.get(name)

    def count_nodes(self, nodes: int) -> None:
        """Count values that are read again; raise `DocumentError` for too many."""
        self.nodes += nodes
        if self.nodes > MOST_NODES:
            raise DocumentError(
                _("The document has more than %d values, references counted each time.")
                % MOST_NODES
            )

    def _translate_schema(self, schema: Any, depth: int) -> Any:
        self.count_nodes(1)
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise Unusable(_("a part of its schema is neither an object nor a boolean"))
        if depth > DEEPEST:
            raise Unusable(_("its schema is nested too deep"))
        if "$ref" in schema:
            return self._translate_reference(schema, depth)
        return self._translate_members(schema, depth)

    def _translate_reference(self, schema: JsonObject, depth: int) -> Any:
        target = self._reference(schema["$ref"], depth)
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        siblings = {} if self.old else self._translate_members(beside, depth)
        if not siblings:
            return target
        # Keywords beside a reference count, too (JSON Schema 2020-12, 8.2.3.1).
        if isinstance(target, dict) and not siblings.keys() & target.keys():
            return {**target, **siblings}
        if siblings.keys() <= {"description", "title", "default"}:
            return {**target, **siblings} if isinstance(target, dict) else target
        return {"allOf": [target, siblings]}

    def _reference(self, reference: object, depth: int) -> Any:
        target = target_of(self.document, reference)
        key = pointer_steps(reference)
        if key in self._open:
            self._open[key] = self._open[key] or self._new_definition_name(key)
            return {"$ref": f"#/$defs/{self._open[key]}"}
        piece = self._pieces.get(key)
        if piece is None and depth > IN_LINE_DEPTH:
            name = self._new_definition_name(key)
            piece = self._store_piece(key, _Piece(None, 1, name=name))
            self._waiting[name] = target
        elif piece is None:
            piece = self._store_piece(key, self._translate_target(key, target, depth))
        else:
            self.count_nodes(piece.nodes)
            self.size += piece.size
            if self.size > MOST_WRITTEN:
                message = _("The operations of the document take more than %d MiB.")
                raise DocumentError(message % (MOST_WRITTEN // MIB))
        return {"$ref": f"#/$defs/{piece.name}"} if piece.name else piece.schema

    def _store_piece(self, key: _Steps, piece: _Piece) -> _Piece:
        self._new.append(key)
        self._pieces[key] = piece
        return piece

    def _translate_target(self, key: _Steps, target: Any, depth: int) -> _Piece:
        nodes_before = self.nodes
        self._open[key] = ""
        try:
            schema = self._translate_schema(target, depth + 1)
        finally:
            name = self._open.pop(key)
        size = 0 if name else len(serialize_schema(schema))
        if size > IN_LINE:
            name = self._new_definition_name(key)
        if name:
            self._definitions[name] = schema
            return _Piece(schema, 1, name=name)
        return _Piece(schema, self.nodes - nodes_before, size)

    def _new_definition_name(self, key: _Steps) -> str:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", "".join(key[-1:])).strip("_")[:40]
        return self._names.reserve_name(name or "schema")

    def _translate_members(self, schema: JsonObject, depth: int) -> JsonObject:
        members: JsonObject = {
            name: self._translate_member(name, value, depth)
            for name, value in schema.items()
            if name not in _DROPPED and not name.startswith("x-")
        }
        _without_read_only(schema, members, self)
        # Documents of newer versions often have the old bounds, too.
        members = _translate_old_bounds(members)
        return _translate_old_keywords(members) if self.old else members

    def _translate_member(self, name: str, value: Any, depth: int) -> Any:
        if name in _OF_SCHEMAS and isinstance(value, dict | bool):
            return self._translate_schema(value, depth + 1)
        if name in _LISTS_OF_SCHEMAS and isinstance(value, list):
            return [self._translate_schema(each, depth + 1) for each in value]
        if name in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            pairs = value.items()
            return {n: self._translate_schema(each, depth + 1) for n, each in pairs}
        return value


def _without_read_only(
    schema: JsonObject, members: JsonObject, translator: Translator
) -> None:
    """Remove what only answers have from `members`, the translation of `schema`."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    hidden = [n for n, each in properties.items() if _is_read_only(each, translator)]
    if not hidden:
        return
    translated = members["properties"]
    members["properties"] = {k: v for k, v in translated.items() if k not in hidden}
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


def _translate_old_keywords(members: JsonObject) -> JsonObject:
    nullable = members.pop("nullable", False) is True
    if nullable and members.keys() & {"allOf", "anyOf", "oneOf"}:
        return {"anyOf": [_translate_old_keywords(members), {"type": "null"}]}
    if nullable and "type" in members:
        kinds = members["type"]
        kinds = kinds if isinstance(kinds, list) else [kinds]
        members["type"] = [*kinds, *(() if "null" in kinds else ("null",))]
        if isinstance(members.get("enum"), list) and None not in members["enum"]:
            members["enum"] = [*members["enum"], None]
    return members


def _translate_old_bounds(members: JsonObject) -> JsonObject:
    """Translate bounds of OpenAPI 3.0, where `exclusiveMinimum` is a boolean."""
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if not isinstance(members.get(exclusive), bool):
            continue
        if members.pop(exclusive) and bound in members:
            members[exclusive] = members.pop(bound)
    return members


def _referenced_names(value: Any) -> list[str]:
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
