"""Insert-only rows that say what changed, written with the change itself.

No shared row is locked: a site's own transactions never wait for ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self, TypeVar

from django.db import connections, models, router, transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import Signal

from mcp_app.models.fields import ExactCharField
from mcp_app.models.transactions import in_atomic

ANY = "*"
"""The ref of a change to rows that are not named one by one."""

committed = Signal()
"""Changes were committed in this OS process, in any of its threads.

If a site commits by hand, it is sent earlier: when they are written.
"""
many_written = Signal()
"""Another `RARELY` rows were written, the last by the transaction on `using`."""
RARELY = 1_000
MOST_REFS = 1_000
"""If a transaction changes more rows of one kind, one change stands for them all."""


class ChangeQuerySet(models.QuerySet["Change"]):
    def record(self, kind: str, ref: str = ANY) -> None:
        """Record in the caller's transaction, once, that something changed."""
        self._for_write = True
        recorded = _recorded_changes(self.db)
        if recorded is None:
            self._insert_row(kind, ref)
            committed.send_robust(sender=Change)
            return
        if (kind, ref) not in recorded.rows and recorded.count[kind] >= MOST_REFS:
            # There are too many to name each.
            ref = ANY
        if not self._is_recorded(recorded, kind, ref):
            recorded.rows[kind, ref] = self._insert_row(kind, ref)
            recorded.count[kind] += 1

    def record_all(self, kind: str, refs: Iterable[str]) -> None:
        """Record many changes; two statements, if the database returns their keys."""
        self._for_write = True
        recorded = _recorded_changes(self.db)
        features = connections[self.db].features
        if recorded is None or not features.can_return_rows_from_bulk_insert:
            for ref in refs:
                self.record(kind, ref)
            return
        new = self._unrecorded_refs(recorded, kind, refs)
        if recorded.count[kind] + len(new) > MOST_REFS:
            self.record(kind)
            return
        rows = self.bulk_create([Change(kind=kind, ref=ref) for ref in new])
        recorded.rows |= {(kind, row.ref): row.pk for row in rows}
        recorded.count[kind] += len(rows)
        if any(row.pk % RARELY == 0 for row in rows):
            many_written.send_robust(sender=Change, using=self.db)

    def _unrecorded_refs(
        self, recorded: _TransactionChanges, kind: str, refs: Iterable[str]
    ) -> list[str]:
        """Return the refs of which the transaction has no row yet."""
        requested = dict.fromkeys(refs)
        keys = [
            recorded.rows[kind, ref]
            for ref in (*requested, ANY)
            if (kind, ref) in recorded.rows
        ]
        rows = self.filter(pk__in=keys, kind=kind) if keys else self.none()
        stored = set(rows.values_list("ref", flat=True))
        return [] if ANY in stored else [ref for ref in requested if ref not in stored]

    def _insert_row(self, kind: str, ref: str) -> int:
        """Insert a row and return its key: `create()` would take twice as long."""
        connection = connections[self.db]
        table = connection.ops.quote_name(self.model._meta.db_table)
        statement = f"INSERT INTO {table} (kind, ref) VALUES (%s, %s)"  # noqa: S608 - our own name
        if returns := connection.features.can_return_columns_from_insert:
            statement = f"{statement} RETURNING id"
        with connection.cursor() as cursor:
            cursor.execute(statement, [kind, ref])
            key = int(cursor.fetchone()[0] if returns else cursor.lastrowid)
        if key % RARELY == 0:
            many_written.send_robust(sender=Change, using=self.db)
        return key

    def _is_recorded(self, recorded: _TransactionChanges, kind: str, ref: str) -> bool:
        """Whether the transaction still has a row for this change.

        The rollback of a savepoint deletes rows, and Django does not report savepoints
        that a site makes by hand.  SQLite gives the keys of deleted rows to new ones.
        """
        keys = {each: recorded.rows.get((kind, each)) for each in (ref, ANY)}
        rows = [
            models.Q(pk=key, kind=kind, ref=each)
            for each, key in keys.items()
            if key is not None
        ]
        return bool(rows) and self.filter(reduce(or_, rows)).exists()


class _TransactionChanges:
    """The changes that a transaction has recorded; a callback of its commit."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], int] = {}
        self.count: Counter[str] = Counter()

    def __call__(self) -> None:
        committed.send_robust(sender=Change)


def _recorded_changes(using: str) -> _TransactionChanges | None:
    """Return what the transaction has recorded; None if its end is not reported."""
    if not in_atomic(using):
        return None
    # The second part of an entry is the callback.
    for entry in connections[using].run_on_commit:
        if isinstance(entry[1], _TransactionChanges):
            return entry[1]
    recorded = _TransactionChanges()
    transaction.on_commit(recorded, using=using, robust=True)
    return recorded


class Change(models.Model):
    """`kind` is the changed row's model ("tool"), `ref` its primary key or `*`."""

    id = models.BigAutoField(primary_key=True)
    kind = ExactCharField(max_length=32)
    ref = ExactCharField(max_length=255)

    objects = ChangeQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}"


Row = TypeVar("Row", bound=models.Model)


class RecordedRows(models.QuerySet[Row]):
    """A queryset whose bulk operations record their change, in one transaction.

    `delete()` needs nothing here: it sends a signal for every row.  Sites derive from
    this class, so names that are not Django's are private and long.
    """

    _change_kind: ClassVar[str] = ""
    """The kind of the changes; "" stands for the model's name."""
    _private_columns: ClassVar[frozenset[str]] = frozenset()
    """Columns whose change is not recorded."""

    def update(self, **values: Any) -> int:
        if values.keys() <= self._private_columns:
            return super().update(**values)
        with transaction.atomic(using=self._write_alias(), savepoint=False):
            count = super().update(**values)
            if count:
                self._record_change()
        return count

    def bulk_create(self, objs: Iterable[Row], *args: Any, **options: Any) -> list[Row]:
        with transaction.atomic(using=self._write_alias(), savepoint=False):
            created = super().bulk_create(objs, *args, **options)
            if created:
                self._record_change()
        return created

    def _record_change(self, ref: str = ANY) -> None:
        changes = Change.objects.using(self._write_alias())
        changes.record(self._change_kind or str(self.model._meta.model_name), ref)

    def _write_alias(self) -> str:
        self._for_write = True
        return self.db


class WatchedRows(RecordedRows[Row]):
    """Rows that count their changes; only what clients notice is recorded."""

    def update(self, **values: Any) -> int:
        for field in self.model._meta.concrete_fields:
            source = getattr(field, "of", "")
            if source in values and field.name not in values:
                raise ValueError(
                    f"update() cannot change {source}, because its digest would not"
                    " change with it. Save the rows one by one."
                )
        served = self.model.SERVED  # type: ignore[attr-defined]
        # A foreign key has two names: `bulk_update` says `published_id`.
        columns = {self.model._meta.get_field(name).name for name in values}
        if columns <= self.model.PRIVATE:  # type: ignore[attr-defined]
            return models.QuerySet.update(self, **values)
        if not columns <= served:
            values.setdefault("lock_version", models.F("lock_version") + 1)
        if columns & served:
            return super().update(**values)
        return models.QuerySet.update(self, **values)

    def bulk_create(self, objs: Iterable[Row], *args: Any, **options: Any) -> list[Row]:
        rows = list(objs)
        if any(row.is_served() for row in rows):  # type: ignore[attr-defined]
            return super().bulk_create(rows, *args, **options)
        return models.QuerySet.bulk_create(self, rows, *args, **options)


class WatchedRow(models.Model):
    """A row of which clients notice some columns: changing these records a change.

    `save()` writes those columns only if this instance changed them.  So a working
    copy that was read earlier does not undo what somebody published or stopped since.
    `lock_version` counts the changes of the other columns.
    """

    SERVED: ClassVar[frozenset[str]] = frozenset()
    """Columns that clients notice: a new value holds as soon as it is saved."""
    PRIVATE: ClassVar[frozenset[str]] = frozenset()
    """Columns that are computed, and stand in no form."""

    lock_version = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        if not self._state.adding and not options.get("force_insert"):
            options["update_fields"] = self._columns_to_save(
                options.get("update_fields")
            )
        using = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=using, savepoint=False):
            super().save(*args, **options)
        self.note_served()

    @classmethod
    def from_db(cls, *args: Any, **options: Any) -> Self:
        row = super().from_db(*args, **options)
        row.note_served()
        return row

    def refresh_from_db(self, *args: Any, **options: Any) -> None:
        super().refresh_from_db(*args, **options)
        self.note_served()

    def note_served(self) -> None:
        """Note that the present values are those that are stored."""
        self._stored = self._served_values()

    def is_served(self) -> bool:
        return True

    def _columns_to_save(self, requested: Iterable[str] | None) -> set[str]:
        if requested is None:
            deferred = self.get_deferred_fields()
            columns = {
                field.name
                for field in self._meta.concrete_fields
                if not field.primary_key and field.attname not in deferred
            }
            columns -= self.SERVED - self._changed_columns()
            # Others may have computed them anew since this instance was read.
            columns -= self.PRIVATE
        else:
            columns = set(requested)
        if columns - self.SERVED:
            self.lock_version += 1
            columns.add("lock_version")
        return columns

    def _changed_columns(self) -> set[str]:
        now = self._served_values()
        stored = getattr(self, "_stored", {})
        return {name for name in now if name not in stored or now[name] != stored[name]}

    def _served_values(self) -> dict[str, Any]:
        columns = map(self._meta.get_field, self.SERVED)
        return {
            column.name: self.__dict__[column.attname]
            for column in columns
            if isinstance(column, models.Field) and column.attname in self.__dict__
        }


def watch_model(model: type[Row]) -> type[Row]:
    """Record what clients notice of a model's rows; a class decorator."""
    name = model.__name__
    post_save.connect(_record_saved, sender=model, dispatch_uid=f"save {name}")
    post_delete.connect(_record_row_change, sender=model, dispatch_uid=f"delete {name}")
    return model


def _record_saved(
    sender: type[models.Model],
    instance: WatchedRow,
    created: bool,
    using: str,
    update_fields: frozenset[str] | None,
    **_: object,
) -> None:
    columns = instance.SERVED if update_fields is None else update_fields
    # Clients notice a new row only if it is served, an old one by these columns.
    if instance.is_served() if created else columns & instance.SERVED:
        _record_row_change(sender, instance, using)


def _record_row_change(
    sender: type[models.Model], instance: models.Model, using: str, **_: object
) -> None:
    Change.objects.using(using).record(str(sender._meta.model_name), str(instance.pk))
