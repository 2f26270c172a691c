"""Writes into the outbox what happens to rows of models for which code opens events.

The transaction that changes the row writes the event.  Only the row's key is kept: a
receiver reads the row, with the receiver's own rights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeGuard

from django.core.exceptions import ValidationError
from django.db import connections, router, transaction
from django.db.models import FileField, Model, QuerySet
from django.db.models.signals import post_delete, post_save, pre_save

from mcp_app.invalidation.events import new_occurrence
from mcp_app.models import Occurrence
from mcp_app.models.transactions import in_atomic, tells_of_commits
from mcp_app.protocol import jsonrpc

MAX_KEYS: Final = 1_000
"""If a bulk operation changes more rows, one event stands for them all."""
CREATED, CHANGED, DELETED = "created", "changed", "deleted"
connected: Final[dict[str, RowEvents]] = {}
"""The events that are written, by topic; empty on a site that opens none."""
_in_bulk: ContextVar[bool] = ContextVar("mcp_bulk", default=False)
"""Whether `run_update` runs, so that updates inside it write no events."""


@dataclass(frozen=True, slots=True, eq=False)
class RowEvents:
    """The events of a model's rows: `on` says which, `watch` has columns by name.

    `cause` returns whose call runs.  Rows of proxies and subclasses count, too.
    """

    topic: str
    model: type[Model]
    on: Collection[str]
    watch: Mapping[str, Any]
    cause: Callable[[], str]

    def connect(self) -> None:
        """Write events from now on."""
        connected[self.topic] = self
        for sender in self.model._meta.apps.get_models(include_auto_created=True):
            # Without a sender, Django would read all rows of any model to delete them.
            if issubclass(sender, self.model):
                to: Any = {"sender": sender, "weak": False, "dispatch_uid": self.topic}
                if self.watch:
                    pre_save.connect(self._note_values, **to)
                if {CREATED, CHANGED} & {*self.on}:
                    post_save.connect(self._record_save, **to)
                # The model's part of a subclass's row is deleted with its own signal.
                if DELETED in self.on and sender._meta.concrete_model is self.model:
                    post_delete.connect(self._record_delete, **to)

    # -- single rows -------------------------------------------------------------------

    def _note_values(self, instance: Model, using: str, raw: bool, **_: Any) -> None:
        """Keep the watched columns' values before a save; a save may be nested."""
        if not raw:
            rows = self.model._base_manager.using(using)
            values = self.watched_values(rows.filter(pk=self._key_of(instance)))
            before = vars(instance._state).setdefault(self.topic, [])
            before.append(next(iter(values.values()), None))

    def _record_save(
        self,
        instance: Model,
        created: bool,
        using: str,
        raw: bool,
        update_fields: Collection[str] | None = None,
        **_: Any,
    ) -> None:
        if raw:
            return
        noted = vars(instance._state).get(self.topic)
        before = noted.pop() if noted else None
        changed = []
        for index, (name, column) in enumerate(() if created else self.watch.items()):
            saved = update_fields is None or _is_among(name, column, update_fields)
            if saved and column.attname in vars(instance):
                value = vars(instance)[column.attname]
                if before is None or _differs(column, before[index], value):
                    changed.append(name)
        on = CREATED if created else CHANGED
        if on in self.on:
            self._write_single(on, instance, using, changed)

    def _record_delete(self, instance: Model, using: str, **_: Any) -> None:
        self._write_single(DELETED, instance, using)

    def _write_single(
        self, on: str, instance: Model, using: str, changed: Sequence[str] = ()
    ) -> None:
        """Write an event; after `MAX_KEYS` in one transaction, one for all the others.

        So an import costs no more than a bulk operation.
        """
        count = _count_in_transaction(using, (self.topic, on))
        if count.rows < MAX_KEYS:
            self._write(using, [self._data(on, self._key_of(instance), changed)])
            count.rows += 1
        elif count.rows == MAX_KEYS:
            self.record_many(on, using, self.watch)
            # If a savepoint is rolled back, this is undone with it.
            transaction.on_commit(_Count(count.of, MAX_KEYS + 1), using=using)

    def _key_of(self, instance: Model) -> Any:
        return getattr(instance, self.model._meta.pk.attname)

    # -- many rows ---------------------------------------------------------------------

    def record_creation(self, rows: Sequence[Model], using: str) -> None:
        """Write that rows were inserted together; their keys may be unknown."""
        keys = [self._key_of(row) for row in rows]
        if len(keys) > MAX_KEYS or None in keys:
            self.record_many(CREATED, using)
        else:
            self._write(using, [self._data(CREATED, key) for key in keys])

    def record_update(self, before: Mapping[Any, Sequence[Any]], using: str) -> None:
        """Write that rows were updated; the watched columns had the values `before`."""
        rows = self.model._base_manager.using(using).filter(pk__in=[*before])
        after = self.watched_values(rows) if self.watch else before
        data = []
        for key, values in before.items():
            pairs = zip(self.watch, values, after.get(key, values), strict=True)
            changed = [name for name, old, new in pairs if old != new]
            data.append(self._data(CHANGED, key, changed))
        self._write(using, data)

    def record_many(self, on: str, using: str, fields: Collection[str] = ()) -> None:
        """Write that this happened to rows that are not named one by one."""
        changed = [n for n, each in self.watch.items() if _is_among(n, each, fields)]
        self._write(using, [{"on": on, "changed": changed, "many": True}])

    def watched_values(self, rows: QuerySet[Any]) -> Mapping[Any, Sequence[Any]]:
        """Return the values by key, of at most one row more than `MAX_KEYS`."""
        columns = [each.attname for each in self.watch.values()]
        key = self.model._meta.pk.attname
        values = rows.order_by().values_list(key, *columns)[: MAX_KEYS + 1]
        return {pk: each for pk, *each in values}

    # -- writing -----------------------------------------------------------------------

    def _data(self, on: str, key: Any, changed: Sequence[str] = ()) -> dict[str, Any]:
        pk = key if type(key) in (int, str) else str(key)
        return {"pk": pk, "on": on, "changed": [*changed]}

    def _write(self, using: str, data: Iterable[Mapping[str, Any]]) -> None:
        cause, topic = self.cause(), self.topic
        texts = map(jsonrpc.write, data)
        rows = [new_occurrence(topic, text, cause=cause) for text in texts]
        if using == router.db_for_write(Occurrence) or not tells_of_commits(using):
            Occurrence.objects.record(rows)
        else:
            # One callback for each: a savepoint that is rolled back drops its own.
            write = partial(Occurrence.objects.record, rows)
            transaction.on_commit(write, using=using, robust=True)


@dataclass(slots=True)
class _Count:
    """How many single rows of a topic a transaction has written."""

    of: tuple[str, str]
    rows: int = 0

    def __call__(self) -> None:
        """Do nothing: it is a commit callback only to end with the transaction."""


def _count_in_transaction(using: str, of: tuple[str, str]) -> _Count:
    if not in_atomic(using):
        return _Count(of)
    connection = connections[using]
    entries = connection.run_on_commit
    # A site may add callbacks for each row, too: remember where the count stands.
    places: dict[Any, int] = vars(connection).setdefault("mcp_counts", {})
    place = places.get(of, 0)
    candidate: object = entries[place][1] if place < len(entries) else None
    # After a full count may come a newer one (`_write_single`).
    if _is_count(candidate, of) and candidate.rows != MAX_KEYS:
        return candidate
    # The loop remembers the place of each entry that it looks at.
    for places[of], (_savepoints, each, *_) in reversed([*enumerate(entries)]):
        if _is_count(each, of):
            return each
    places[of], count = len(entries), _Count(of)
    transaction.on_commit(count, using=using)
    return count


def _is_count(waiting: object, of: tuple[str, str]) -> TypeGuard[_Count]:
    return isinstance(waiting, _Count) and waiting.of == of


def _is_among(name: str, column: Any, fields: Collection[str]) -> bool:
    return not {name, column.name, column.attname}.isdisjoint(fields)


def _differs(column: Any, before: Any, value: Any) -> bool:
    """Whether a value differs; one that the database computes counts as different."""
    if isinstance(column, FileField):
        return str(value or "") != (before or "")
    try:
        expression = hasattr(value, "resolve_expression")
        return expression or bool(column.to_python(value) != before)
    except ValidationError:
        return True


def _events_of(model: type[Model], on: str) -> list[RowEvents]:
    return [e for e in connected.values() if on in e.on and issubclass(model, e.model)]


def run_update(
    rows: QuerySet[Any],
    using: str,
    run: Callable[[], int],
    fields: Collection[str],
    keys: Collection[Any] | None = None,
) -> int:
    """Run an update of rows, or of those with these keys; write what it changed."""
    events = [] if _in_bulk.get() else _events_of(rows.model, CHANGED)
    if not events:
        return run()
    few = keys is None or len(keys) <= MAX_KEYS
    rows = rows.using(using) if keys is None else rows.using(using).filter(pk__in=keys)
    token = _in_bulk.set(True)
    try:
        with transaction.atomic(using=using, savepoint=False):
            before = [event.watched_values(rows) if few else {} for event in events]
            count = run()
            for each, values in zip(events, before, strict=True):
                if 0 < count == len(values) <= MAX_KEYS:
                    each.record_update(values, using)
                elif count:
                    each.record_many(CHANGED, using, fields)
    finally:
        _in_bulk.reset(token)
    return count


def record_creation(
    model: type[Model], rows: Sequence[Model], using: str, options: Mapping[str, Any]
) -> None:
    """Write that `bulk_create` with these options inserted rows."""
    updates = bool(options.get("update_conflicts"))
    for each in _events_of(model, CREATED):
        if updates or options.get("ignore_conflicts"):
            each.record_many(CREATED, using)
        else:
            each.record_creation(rows, using)
    for each in _events_of(model, CHANGED) if updates else ():
        each.record_many(CHANGED, using, options.get("update_fields") or ())
