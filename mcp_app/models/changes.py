"""Insert-only rows that say what changed, written with the change itself.

No shared row is locked: a site's own transactions never wait for ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models, router, transaction
from django.db.models.signals import post_delete, post_save

from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.fields import ExactCharField

ANY = "*"
"""The ref of a change to rows that are not named one by one."""


class ChangeQuerySet(models.QuerySet["Change"]):
    def record(self, kind: str, ref: str = ANY) -> None:
        """Say in the caller's transaction that something changed."""
        self.create(kind=kind, ref=ref, created_ms=NowMilliseconds())

    def marker(self) -> tuple[int, int]:
        """Return the count and the greatest id: another pair means a new change.

        The count sees rows that commit later than rows with greater ids.
        """
        found = self.aggregate(count=models.Count("*"), last=models.Max("id"))
        return found["count"], found["last"] or 0


class Change(models.Model):
    """`kind` is the changed row's model ("tool"), `ref` its primary key or `*`."""

    id = models.BigAutoField(primary_key=True)
    kind = ExactCharField(max_length=32)
    ref = ExactCharField(max_length=255)
    created_ms = models.BigIntegerField(db_index=True)

    objects = ChangeQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}"


Row = TypeVar("Row", bound=models.Model)


class WatchedRows(models.QuerySet[Row]):
    """A queryset whose bulk operations record their change, in one transaction.

    `delete()` needs nothing here: it sends a signal for every row.
    """

    def update(self, **values: Any) -> int:
        self._refuse_sources_of_digests(values)
        values.setdefault("lock_version", models.F("lock_version") + 1)
        with transaction.atomic(using=self._write_alias()):
            count = super().update(**values)
            if count:
                self._record()
        return count

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[Row], *args: Any, **options: Any) -> list[Row]:
        with transaction.atomic(using=self._write_alias()):
            created = super().bulk_create(objs, *args, **options)
            if created:
                self._record()
        return created

    def _write_alias(self) -> str:
        self._for_write = True
        return self.db

    def _record(self) -> None:
        changes = Change.objects.using(self._write_alias())
        changes.record(str(self.model._meta.model_name))

    def _refuse_sources_of_digests(self, values: dict[str, Any]) -> None:
        for field in self.model._meta.concrete_fields:
            source = getattr(field, "of", "")
            if source in values and field.name not in values:
                raise ValueError(
                    f"update() cannot change {source}: its digest would stay the old "
                    "one. Save the rows one by one."
                )


class WatchedRow(models.Model):
    """A row that clients notice: saving or deleting it records a change.

    `lock_version` counts the changes of the row.
    """

    lock_version = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        """Save the row and its change in one transaction."""
        if not self._state.adding:
            self.lock_version += 1
        if options.get("update_fields") is not None:
            options["update_fields"] = {*options["update_fields"], "lock_version"}
        using = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=using):
            super().save(*args, **options)


def watch(model: type[Row]) -> type[Row]:
    """Record each save and deletion of rows of a model; a class decorator."""
    post_save.connect(_record, sender=model, dispatch_uid=f"save {model.__name__}")
    post_delete.connect(_record, sender=model, dispatch_uid=f"delete {model.__name__}")
    return model


def _record(
    sender: type[models.Model], instance: models.Model, using: str, **_: object
) -> None:
    Change.objects.using(using).record(str(sender._meta.model_name), str(instance.pk))
