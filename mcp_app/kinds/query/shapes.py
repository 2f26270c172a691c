"""Rows as objects: which expressions are read, and how their values become members.

A relation that is shown is its key; with members beside it, it is an object with the
key as `key`.  Where a row on the way is hidden or missing, the relation is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_app.kinds.query.paths import Hop, Path
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.values import output_schema, to_json
from mcp_app.protocol.json_types import JsonObject

KEY: Final = "key"


@dataclass
class Columns:
    """Expressions by the names under which they are read."""

    expressions: dict[str, Any] = field(default_factory=dict)

    def add(self, expression: Any) -> str:
        """Return the name of a further expression."""
        name = f"mcp_{len(self.expressions)}"
        self.expressions[name] = expression
        return name

    def names(self) -> list[str]:
        return list(self.expressions)


class Shape:
    """How values of columns become the object of a row."""

    def __init__(
        self,
        paths: Sequence[Path],
        scopes: Scopes,
        columns: Columns,
        before: tuple[Hop, ...] = (),
    ) -> None:
        self._parts: list[tuple[Path, str]] = []
        self._keys: dict[str, str] = {}
        self._expanded = _expanded(paths)
        for path in paths:
            self._add_keys(path, scopes, columns, before)
            value = scopes.value(path.behind(before))
            self._parts.append((path, columns.add(value)))

    def _add_keys(
        self, path: Path, scopes: Scopes, columns: Columns, before: tuple[Hop, ...]
    ) -> None:
        """Add the keys of the rows on the way, which tell whether they are there."""
        for place, hops in _ways(path):
            if place not in self._keys:
                key = scopes.key((*before, *hops))
                self._keys[place] = columns.add(key)

    def object(self, values: dict[str, Any]) -> JsonObject:
        """Return a row, from values by the names of the columns."""
        row: JsonObject = {}
        for path, column in self._parts:
            self._set(row, path, values[column], values)
        return row

    def _set(
        self, row: JsonObject, path: Path, value: Any, values: dict[str, Any]
    ) -> None:
        for place, hops in _ways(path):
            name = hops[-1].field.name
            if values[self._keys[place]] is None:
                row[name] = None
                return
            row = row.setdefault(name, {})
        shown = to_json(path.field, value)
        name = path.field.name
        if path.is_relation and path.text in self._expanded:
            if value is None:
                row[name] = None
            else:
                row.setdefault(name, {})[KEY] = shown
            return
        row[name] = shown


def _ways(path: Path) -> list[tuple[str, tuple[Hop, ...]]]:
    """Return the hops on the way to a field, by the text of the path up to each."""
    hops = path.hops[:-1] if path.is_relation else path.hops
    names = [hop.field.name for hop in hops]
    return [
        (".".join(names[:count]), hops[:count]) for count in range(1, len(hops) + 1)
    ]


def _expanded(paths: Sequence[Path]) -> frozenset[str]:
    return frozenset(place for path in paths for place, _hops in _ways(path))


def row_schema(paths: Sequence[Path]) -> JsonObject:
    """Return the JSON Schema of the objects that a `Shape` of these paths makes."""
    expanded = _expanded(paths)
    properties: JsonObject = {}
    for path in paths:
        here = properties
        for _place, hops in _ways(path):
            here = _members(here, hops[-1].field.name)
        schema = output_schema(path.field, nullable=path.field.nullable)
        if path.is_relation and path.text in expanded:
            _members(here, path.field.name)[KEY] = schema
        else:
            here[path.field.name] = schema
    return {"type": "object", "properties": properties}


def _members(properties: JsonObject, name: str) -> JsonObject:
    within = properties.setdefault(name, {"type": ["object", "null"], "properties": {}})
    members: JsonObject = within["properties"]
    return members
