"""Bulk operations on a model that resources show: Django sends no signal for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models, router, transaction

from mcp_app.wakeup.changes import MODEL, record

Row = TypeVar("Row", bound=models.Model)


def changed_model(model: type[models.Model], using: str | None = None) -> None:
    """Say that any instance of a model may have changed.

    Every client that watches a resource of the model is told.
    """
    alias = using or router.db_for_write(model)
    record(alias, MODEL, model._meta.label_lower)


class WatchedQuerySet(models.QuerySet[Row]):
    """A queryset whose `update()` and `bulk_…()` say so in the same transaction.

    `objects = WatchedQuerySet.as_manager()` on the model.
    """

    def update(self, **values: Any) -> int:
        self._for_write = True
        with transaction.atomic(using=self.db, savepoint=False):
            count = super().update(**values)
            if count:
                changed_model(self.model, self.db)
        return count

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[Row], *args: Any, **options: Any) -> list[Row]:
        self._for_write = True
        with transaction.atomic(using=self.db, savepoint=False):
            created = super().bulk_create(objs, *args, **options)
            if created:
                changed_model(self.model, self.db)
        return created
