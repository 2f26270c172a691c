"""Bulk operations on a model that resources show: Django sends no signals for them."""

from __future__ import annotations

from typing import TypeVar

from django.db import models, router

from mcp_app.invalidation.changes import MODEL, record
from mcp_app.models.changes import ANY, RecordedRows

Row = TypeVar("Row", bound=models.Model)


def changed_model(model: type[models.Model], using: str | None = None) -> None:
    """Record that any instance of a model may have changed.

    Every client that watches a resource of the model is notified.
    """
    alias = using or router.db_for_write(model)
    record(alias, MODEL, model._meta.label_lower)


class WatchedQuerySet(RecordedRows[Row]):
    """A queryset whose `update()` and `bulk_…()` record a change.

    Both are in the same transaction.  Use `objects = WatchedQuerySet.as_manager()`.
    """

    def _record_change(self, ref: str = ANY) -> None:
        """Record in the caller's transaction that any row may have changed."""
        changed_model(self.model, self._write_alias())
