"""Input schemas in a form that the models of all clients accept.

OpenAI and VS Code require `items` for every list.  Gemini requires one `type`, and an
`enum` of non-empty texts; some clients accept no `$ref`.  One refused tool fails the
whole request.  A changed schema may allow more than before, never less.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schema_graph import every_subschema, subschemas

MAX_NODES: Final = 20_000
"""If a schema would have more nodes without its references, it keeps them."""
_ABOUT: Final = {"title", "description", "default", "examples", "x-mcp-header"}
"""Keywords that describe a schema, but are no rule for its values."""
_KINDS: Final = {bool: "boolean", type(None): "null", list: "array", dict: "object"}


def inline_references(root: JsonObject) -> JsonObject:
    """Return a schema without references, except to parts that contain themselves."""
    written: dict[str, Any] = root.get("$defs", {})
    definitions = {f"#/$defs/{name}": each for name, each in written.items()}
    if not _references_in(root) <= definitions.keys():
        return root
    reached = {name: _references_in(each) for name, each in definitions.items()}
    # Add what a definition reaches through others: then some reach themselves.
    for name in definitions:
        for other, names in reached.items():
            reached[other] = names | (reached[name] if name in names else set())
    targets = {n: each for n, each in definitions.items() if n not in reached[n]}
    recursive = {n: e for n, e in written.items() if f"#/$defs/{n}" not in targets}
    schema = {name: each for name, each in root.items() if name != "$defs"}
    schema |= {"$defs": recursive} if recursive else {}
    try:
        return dict(_inline(schema, targets, iter(range(MAX_NODES))))
    except StopIteration:
        return root


def _references_in(schema: JsonObject) -> set[str]:
    references = (each.schema.get("$ref") for each in every_subschema(schema))
    return {each for each in references if isinstance(each, str)}


def _inline(node: Any, targets: Mapping[str, JsonObject], left: Iterator[int]) -> Any:
    """Return a node with its targets inserted; `left` has an item for each node."""
    next(left)
    if isinstance(node, list):
        return [_inline(each, targets, left) for each in node]
    if not isinstance(node, dict):
        return node
    target = targets.get(str(node.get("$ref")))
    if target is None:
        return {name: _inline(each, targets, left) for name, each in node.items()}
    beside = {name: each for name, each in node.items() if name != "$ref"}
    # If both have a rule of the same name, both must hold.
    if beside.keys() & target.keys() - _ABOUT:
        target = {"allOf": [target]}
    return _inline({**target, **beside}, targets, left)


def portable_schema(root: JsonObject) -> JsonObject:
    """Return an input schema that no client refuses, unless it contains itself."""
    return with_portable_keywords(inline_references(root))


def with_portable_keywords(schema: JsonObject) -> JsonObject:
    """Do what `portable_schema` does, but keep the references."""
    written = _with_alternatives(schema)
    # With a key, the inner schema is an entry of the list or object of the keyword.
    for (keyword, *key), inner in [*subschemas(written)]:
        if isinstance(inner, dict) and key:
            written[str(keyword)] = entries = written[str(keyword)].copy()
            entries[key[0]] = with_portable_keywords(inner)
        elif isinstance(inner, dict):
            written[str(keyword)] = with_portable_keywords(inner)
    if written.get("type") == "array" and not isinstance(written.get("items"), dict):
        return _with_items(written)
    return written


def _with_alternatives(schema: JsonObject) -> JsonObject:
    """Return a schema whose alternatives have one type each; only texts keep `enum`."""
    empty = {name for name in ("enum", "type") if schema.get(name) == []}
    schema = {name: each for name, each in schema.items() if name not in empty}
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    kinds = schema.get("type")
    about = {name: each for name, each in schema.items() if name in _ABOUT}
    if isinstance(values, list):
        if all(isinstance(value, str) and value for value in values):
            # The library AutoGen does not read `const`.
            return {**schema, "type": "string", "enum": values}
        branches = [*_schemas_of(values)]
        text = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
        description = f"{about.get('description', '').rstrip('.')}. One of: {text}."
        about["description"] = description.lstrip(". ")
    elif isinstance(kinds, list):
        limits = {n: e for n, e in schema.items() if n != "type" and n not in about}
        branches = [{"type": k} | (limits if k != "null" else {}) for k in kinds]
    else:
        return schema
    return {**(branches[0] if len(branches) == 1 else {"anyOf": branches}), **about}


def _schemas_of(values: list[Any]) -> Iterator[JsonObject]:
    """Yield a schema for each type of these values."""
    if texts := [value for value in values if isinstance(value, str) and value]:
        yield {"type": "string", "enum": texts}
    if "" in values:
        yield {"type": "string", "maxLength": 0}
    if numbers := [value for value in values if type(value) in (int, float)]:
        kind = "integer" if all(type(number) is int for number in numbers) else "number"
        yield {"type": kind, "minimum": min(numbers), "maximum": max(numbers)}
    types = {*map(type, values)}
    yield from ({"type": name} for kind, name in _KINDS.items() if kind in types)


def _with_items(schema: JsonObject) -> JsonObject:
    prefix = schema.get("prefixItems", [])
    if schema.get("items") is False:
        schema = {"maxItems": len(prefix), **schema}
    # Items behind the prefix may be anything.
    if not prefix or schema.get("maxItems", len(prefix) + 1) > len(prefix):
        return {**schema, "items": {}}
    different = [each for n, each in enumerate(prefix) if each not in prefix[:n]]
    if len(different) > 1:
        return {**schema, "items": {"anyOf": different}}
    members = {name: each for name, each in schema.items() if name != "prefixItems"}
    return {**members, "items": different[0]}
