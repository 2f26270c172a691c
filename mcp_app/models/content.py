"""The columns of a row that are published together, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from django.db import models

from mcp_app.models.fields import JSONTextField, parse
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject


def content_of(row: models.Model, columns: Iterable[str]) -> JsonObject:
    """Return columns by name, JSON texts as their values.

    What has its default is left out, so that a new column changes no hash.
    """
    content: JsonObject = {}
    for column in _fields(row, columns):
        value = getattr(row, column.attname)
        if value in ("", None) or value == column.get_default():
            continue
        content[column.name] = _value(column, value)
    return content


def put_content(
    row: models.Model, columns: Iterable[str], content: Mapping[str, Any]
) -> None:
    """Set columns to what `content_of` gave, and the others to their defaults."""
    for column in _fields(row, columns):
        value = column.get_default()
        if column.name in content:
            value = content[column.name]
            if isinstance(column, JSONTextField):
                value = jsonrpc.write(value).decode()
        setattr(row, column.attname, value)


def _fields(
    row: models.Model, columns: Iterable[str]
) -> Iterator[models.Field[Any, Any]]:
    for name in columns:
        yield cast("models.Field[Any, Any]", row._meta.get_field(name))


def _value(column: models.Field[Any, Any], value: Any) -> Any:
    if not isinstance(column, JSONTextField):
        # As it comes back from the database: a whole number of seconds is a float.
        return column.to_python(value)
    # Nothing but a hand in the database can have made it unreadable.
    return None if column.problem(value) else parse(value)
