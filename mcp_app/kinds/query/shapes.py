"""Rows as objects: which expressions are read, and how their values become members.

A relation is shown as its text.  If other members of it are shown, it is an object,
with the text as `text` and the key as `pk`, if they are shown.  If a row on the way is
hidden or missing, the relation is null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from django.utils.duration import duration_iso_string

from mcp_app import conf
from mcp_app.catalog.open_models import FieldKind, OpenField
from mcp_app.interface.log_secrets import hide_members
from mcp_app.kinds.query.scoping import TEXT, Hop, Path, Scopes
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.cursors import Sealer
from mcp_app.protocol.json_types import JsonObject

# -- values ----------------------------------------------------------------------------
# Values of columns, converted to JSON and back.

AVERAGE_PLACES: Final = 6


def field_to_json(field: OpenField, value: Any) -> Any:
    """Return a column's value in its JSON form; choices are their raw values.

    Decimals are texts with the places of the field; times are in the site's zone.
    """
    if isinstance(value, Decimal):
        return decimal_text(value, getattr(field.value_column, "decimal_places", None))
    return plain_to_json(value)


def decimal_text(value: Decimal, places: int | None) -> str:
    """Return a decimal with this many `places`: databases give more or fewer."""
    if places is None or not value.is_finite():
        return str(value)
    return f"{value:.{places}f}"


def plain_to_json(value: Any) -> Any:
    """Return the JSON form of a value other than a decimal."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime) and timezone.is_aware(value):
        return timezone.localtime(value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_iso_string(value)
    return str(value) if isinstance(value, UUID) else hide_members(value)


def exact_to_json(value: Any) -> Any:
    """Return a value as JSON that `column.to_python` reads back without loss."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | UUID | timedelta) else value


def field_schema(field: OpenField, *, nullable: bool) -> JsonObject:
    """Return the JSON Schema of what `field_to_json` returns for a field."""
    schema: JsonObject = {}
    if field.kind is not FieldKind.CHOICE:
        internal = field.value_column.get_internal_type()
        schema = dict(_SCHEMAS.get(_KIND_OF.get(internal, field.kind), {}))
    if nullable and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    return schema


_KIND_OF: Final[Mapping[str, FieldKind]] = {
    "AutoField": FieldKind.NUMBER,
    "BigAutoField": FieldKind.NUMBER,
    "SmallAutoField": FieldKind.NUMBER,
    "DurationField": FieldKind.TEXT,
    "UUIDField": FieldKind.TEXT,
    "GenericIPAddressField": FieldKind.TEXT,
    "CharField": FieldKind.TEXT,
}
"""The types of keys, and of columns without a kind of their own."""
_TEXT: Final[JsonObject] = {"type": "string"}
_SCHEMAS: Final[Mapping[FieldKind, JsonObject]] = {
    # FLOAT has no type here, because infinite numbers are written as texts.
    FieldKind.TEXT: _TEXT,
    FieldKind.YES_NO: {"type": "boolean"},
    FieldKind.NUMBER: {"type": "integer"},
    FieldKind.DECIMAL: _TEXT,
    FieldKind.DATE: {"type": "string", "format": "date"},
    FieldKind.DATETIME: _TEXT,
    FieldKind.TIME: _TEXT,
}


def measure_to_json(aggregate: str, field: OpenField | None, value: Any) -> Any:
    """Return the JSON form of a measure; without a field it is a count."""
    if field is None:
        return value
    if aggregate != "avg":
        return field_to_json(field, value)
    if isinstance(value, Decimal):
        return decimal_text(value, AVERAGE_PLACES)
    if isinstance(value, float):
        value = round(value, AVERAGE_PLACES)
    return plain_to_json(value)


# -- cursor ----------------------------------------------------------------------------
# Cursors: the place where the next page begins, sealed for one caller and one query.

FORMAT: Final = 1
LARGEST: Final = 8_192
"""Characters of a cursor: enough for three texts of 255 four-byte characters."""


class ForeignCursor(Exception):
    """A text that is not a cursor for this caller, tool, arguments and config."""


@dataclass(frozen=True, slots=True)
class Total:
    """How many rows there are; if not `exact`, there are at least this many."""

    count: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after the row with these values to sort by and this key.

    The total and the day are those of the first page.
    """

    after: tuple[Any, ...]
    key: Any
    day: date
    total: Total | None


def cursor_binding(
    principal: str, server: str, tool: str, arguments: JsonObject, config: JsonObject
) -> bytes:
    """Return the bytes that a cursor is bound to; `arguments` have no cursor."""
    digest = sha256(jsonrpc.canonical([arguments, config])).hexdigest()
    return jsonrpc.canonical([principal, server, tool, digest])


def seal_cursor(place: Place, bound: bytes) -> str:
    """Return a place as an opaque text."""
    total = place.total
    payload = {
        "v": FORMAT,
        "a": [exact_to_json(each) for each in place.after],
        "k": exact_to_json(place.key),
        "d": place.day.isoformat(),
        "t": None if total is None else [total.count, total.exact],
    }
    return _cursor_sealer().seal(payload, bound)


def open_cursor(text: object, bound: bytes, columns: Sequence[Any], key: Any) -> Place:
    """Return the place that `seal_cursor` wrote, with values in the columns' types.

    Raises `ForeignCursor` if the text is no cursor that fits.
    """
    payload = _cursor_sealer().open(text, bound)
    if payload is None or payload["v"] != FORMAT:
        raise ForeignCursor
    total, pairs = payload["t"], zip(columns, payload["a"], strict=True)
    return Place(
        after=tuple(
            None if value is None else column.to_python(value)
            for column, value in pairs
        ),
        key=key.to_python(payload["k"]),
        day=date.fromisoformat(payload["d"]),
        total=None if total is None else Total(*total),
    )


def _cursor_sealer() -> Sealer:
    return Sealer(conf.secret_keys(), "query cursors", size=LARGEST)


# -- shapes ----------------------------------------------------------------------------


@dataclass
class Columns:
    """Expressions by the names under which they are read."""

    expressions: dict[str, Any] = field(default_factory=dict)

    def add_column(self, expression: Any) -> str:
        """Add an expression, and return its name."""
        name = f"mcp_{len(self.expressions)}"
        self.expressions[name] = expression
        return name


class Shape:
    """Adds the columns of paths, and makes the object of a row from their values."""

    def __init__(
        self,
        paths: Sequence[Path],
        scopes: Scopes,
        columns: Columns,
        before: tuple[Hop, ...] = (),
    ) -> None:
        self._parts: list[tuple[Path, str]] = []
        self._keys: dict[str, str] = {}
        self._expanded = _expanded_places(paths)
        for path in paths:
            # The keys of rows on the way show whether these rows are visible.
            for prefix, hops in _hop_prefixes(path):
                if prefix not in self._keys:
                    key = scopes.key_of_row((*before, *hops))
                    self._keys[prefix] = columns.add_column(key)
            value = scopes.path_value(path.prepend_hops(before))
            self._parts.append((path, columns.add_column(value)))

    def row_object(self, values: dict[str, Any]) -> JsonObject:
        """Return the object of a row; `values` are by the names of columns."""
        row: JsonObject = {}
        for path, column in self._parts:
            self._set_member(row, path, values[column], values)
        return row

    def _set_member(
        self, row: JsonObject, path: Path, value: Any, values: dict[str, Any]
    ) -> None:
        for prefix, hops in _hop_prefixes(path):
            name = hops[-1].field.name
            if values[self._keys[prefix]] is None:
                row[name] = None
                return
            row = row.setdefault(name, {})
        json_value = field_to_json(path.field, value)
        name = path.text.rpartition(".")[2]
        if path.text not in self._expanded:
            row[name] = json_value
        elif values[self._keys[path.text]] is None:
            row[name] = None
        else:
            row.setdefault(name, {})[path.stand_in] = json_value


def _hop_prefixes(path: Path) -> list[tuple[str, tuple[Hop, ...]]]:
    """Return, for each relation on the way to a member, its path's text and hops."""
    *names, _last = path.text.split(".")
    return [(".".join(names[:at]), path.hops[:at]) for at in range(1, len(names) + 1)]


def _expanded_places(paths: Sequence[Path]) -> frozenset[str]:
    """Return the paths of relations that are shown as objects, not as their texts."""
    return frozenset(prefix for path in paths for prefix, _hops in _hop_prefixes(path))


def row_schema(paths: Sequence[Path]) -> JsonObject:
    """Return the JSON Schema of the objects that a `Shape` of these paths makes."""
    expanded = _expanded_places(paths)
    properties: JsonObject = {}
    for path in paths:
        members = properties
        for _place, hops in _hop_prefixes(path):
            members = _member_schemas(members, hops[-1].field.name)
        name, is_nullable = path.text.rpartition(".")[2], path.field.nullable
        if path.text in expanded:
            members, name = _member_schemas(members, name), path.stand_in
        elif path.stand_in == TEXT:
            # The text is also null if the row is hidden or missing.
            is_nullable = True
        members[name] = field_schema(path.field, nullable=is_nullable)
    return {"type": "object", "properties": properties}


def _member_schemas(properties: JsonObject, name: str) -> JsonObject:
    within = properties.setdefault(name, {"type": ["object", "null"], "properties": {}})
    members: JsonObject = within["properties"]
    return members
