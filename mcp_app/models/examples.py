"""Examples of definitions: values that staff keep, and what the answer must have."""

from __future__ import annotations

from typing import Any, Final

from django.db import models

from mcp_app.models.fields import ExactCharField, JSONTextField, parse_json
from mcp_app.protocol.json_types import JsonObject

MAX_NAME_LENGTH: Final = 100


class ExampleRows(models.QuerySet["Example"]):
    def of(self, row: Any) -> ExampleRows:
        return self.filter(kind=row.kind_of_row, ref=str(row.pk)).order_by("name")


class Example(models.Model):
    """`kind` and `ref` name the row as a `Change` does.

    `expect` is a text that the answer must contain; "" asks only for an answer.
    """

    id = models.BigAutoField(primary_key=True)
    kind = ExactCharField(max_length=32)
    ref = ExactCharField(max_length=64)
    name = ExactCharField(max_length=MAX_NAME_LENGTH)
    values = JSONTextField()
    expect = models.CharField(max_length=255, blank=True)

    objects = ExampleRows.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "ref", "name"], name="mcp_example_name"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def read(self) -> JsonObject:
        """Return the values."""
        values: Any = parse_json(self.values)
        return dict(values)
