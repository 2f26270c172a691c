"""Values of columns as JSON has them, and as they come back from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from django.utils.duration import duration_iso_string

from mcp_app.catalog.open_models import FieldKind, OpenField
from mcp_app.protocol.json_types import JsonObject

AVERAGE_PLACES: Final = 6


def to_json(field: OpenField, value: Any) -> Any:
    """Return what a column holds in its JSON form; raw values of choices.

    Decimals are texts with the places of the field, times in the site's zone.
    """
    if isinstance(value, Decimal):
        return decimal_text(value, getattr(field.column, "decimal_places", None))
    return plain(value)


def decimal_text(value: Decimal, places: int | None) -> str:
    """Return a decimal with so many places: databases write more, or fewer."""
    if places is None or not value.is_finite():
        return str(value)
    return f"{value:.{places}f}"


def plain(value: Any) -> Any:
    """Return a value that is no decimal in its JSON form."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime) and timezone.is_aware(value):
        return timezone.localtime(value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_iso_string(value)
    return str(value) if isinstance(value, UUID) else value


def exact(value: Any) -> Any:
    """Return a value as JSON that `column.to_python` reads back without loss."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | UUID) else value


def output_schema(field: OpenField, *, nullable: bool) -> JsonObject:
    """Return the JSON Schema of what `to_json` returns for a field."""
    schema: JsonObject = {}
    if field.kind is not FieldKind.CHOICE:
        internal = field.column.get_internal_type()
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
"""What keys are, and what has no kind of its own."""
_TEXT: Final[JsonObject] = {"type": "string"}
_SCHEMAS: Final[Mapping[FieldKind, JsonObject]] = {
    # A number with a fraction may be infinite, and is a text then: it has no type.
    FieldKind.TEXT: _TEXT,
    FieldKind.YES_NO: {"type": "boolean"},
    FieldKind.NUMBER: {"type": "integer"},
    FieldKind.DECIMAL: _TEXT,
    FieldKind.DATE: {"type": "string", "format": "date"},
    FieldKind.DATETIME: _TEXT,
    FieldKind.TIME: _TEXT,
}


def measure_to_json(do: str, field: OpenField | None, value: Any) -> Any:
    """Return what a measure of a field is in JSON; without a field it is a count."""
    if field is None:
        return value
    if do != "average":
        return to_json(field, value)
    if isinstance(value, Decimal):
        return decimal_text(value, AVERAGE_PLACES)
    return plain(round(value, AVERAGE_PLACES) if isinstance(value, float) else value)
