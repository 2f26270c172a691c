"""Rows that clients see."""

from __future__ import annotations

from typing import TypeVar

from mcp_app.models import PublishedRow

Row = TypeVar("Row", bound=PublishedRow)


def published(row: Row) -> Row:
    """Save a row where that was not done, and publish it."""
    if row.pk is None:
        row.save()
    row.rows().publish([row])
    return row
