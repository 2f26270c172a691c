"""Records changes, from a view, a command, Celery or the shell.

A change is a row in the caller's transaction, and is announced after its commit.  If a
site commits by hand, it is announced at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import models, router, transaction

from mcp_app.invalidation import row_events
from mcp_app.models import (
    Change,
    Subscription,
    occurrences,
    questions,
    stops,
    streams,
    tasks,
    tokens,
)
from mcp_app.models import sessions as session_rows
from mcp_app.models.changes import ANY, RecordedRows
from mcp_app.models.fields import digest
from mcp_app.models.transactions import in_atomic

RESOURCE = "uri"
LIST = "list"
SESSION = session_rows.SESSION
QUESTION = questions.QUESTION
LOGGED = streams.LOGGED
CALL_CANCELLED = "cancelled"
"""A cancelled request of a session; the ref has the session's key and the digest of the
request's id."""
CALL_STOPPED = "stopped"
"""The same, stopped by staff: the client gets an error."""
MODEL = "model"
"""Any instance of a model of the site; the ref is the model's label."""
STOP = stops.STOP
"""A stop; the ref begins with the kind of what is stopped."""
RIGHTS = tokens.RIGHTS
"""The permissions or the tokens of a user; the ref is the user's primary key."""
TASK = tasks.TASK
"""A task that was ended, parked, answered or taken from its worker."""
EVENT = occurrences.EVENT
"""Something happened that is told to subscribers; the ref is its topic."""
LISTS = ("tools", "prompts", "resources", "events")
EVERYWHERE = "*"


def changed(uri: str) -> None:
    """Record that the resource with this URI has other contents now."""
    Change.objects.record(RESOURCE, digest(uri))


def notify(what: str, server: str | None = None) -> None:
    """Record that a list has changed: "tools", "prompts", "resources" or "events".

    `server` is a slug; None stands for all servers.
    """
    if what not in LISTS:
        raise ValueError(
            f"{what!r} is not the name of a list. Use one of {', '.join(LISTS)}."
        )
    Change.objects.record(LIST, f"{what}:{server or EVERYWHERE}")


def record_cancel(session: int, request_key: str) -> None:
    """Record that a client cancelled a session's request, by the digest of its id."""
    Change.objects.record(CALL_CANCELLED, f"{session}:{request_key}")


def record_stop(session: int, request_key: str) -> None:
    """Record that staff stopped a session's request, by the digest of its id."""
    Change.objects.record(CALL_STOPPED, f"{session}:{request_key}")


def record_resource(using: str, uri: str) -> None:
    """Record that a transaction on this database changes what a resource shows."""
    record_change(using, RESOURCE, digest(uri))


def record_change(using: str, kind: str, ref: str) -> None:
    """Record a change that a transaction on this database makes.

    If our tables are in another database, the row is written after the commit; if the
    site commits by hand, at once.
    """
    our_alias = router.db_for_write(Change)
    if using == our_alias or not in_atomic(using):
        Change.objects.using(our_alias).record(kind, ref)
        return
    for entry in transaction.get_connection(using).run_on_commit:
        # The function of an entry is its second item.
        if isinstance(entry[1], _ChangesAfterCommit):
            entry[1].changes[kind, ref] = None
            return
    after_commit = _ChangesAfterCommit(our_alias)
    after_commit.changes[kind, ref] = None
    transaction.on_commit(after_commit, using=using, robust=True)


class _ChangesAfterCommit:
    """The changes of a transaction on another database, each once."""

    def __init__(self, using: str) -> None:
        self._using = using
        self.changes: dict[tuple[str, str], None] = {}

    def __call__(self) -> None:
        """Write the changes; called after the commit."""
        with transaction.atomic(using=self._using):
            for kind, ref in self.changes:
                Change.objects.using(self._using).record(kind, ref)


async def achanged(uri: str) -> None:
    """`changed` for async code."""
    await sync_to_async(changed)(uri)


async def anotify(what: str, server: str | None = None) -> None:
    """`notify` for async code."""
    await sync_to_async(notify)(what, server)


def record_notification(what: str, server: str) -> None:
    """Record what `ctx.changed` names: a list of that server, or a URI."""
    if what in LISTS:
        notify(what, server)
    else:
        changed(what)


# -- bulk ------------------------------------------------------------------------------
# Bulk operations on a model that resources show: Django sends no signals for them.

Row = TypeVar("Row", bound=models.Model)
_BULK_OPTIONS = (
    "batch_size",
    "ignore_conflicts",
    "update_conflicts",
    "update_fields",
    "unique_fields",
)
"""What `bulk_create` takes after the rows, in the order of its parameters."""


def changed_model(model: type[models.Model], using: str | None = None) -> None:
    """Record that any instance of a model may have changed.

    Every client that watches a resource of the model is notified.
    """
    record_change(using or router.db_for_write(model), MODEL, model._meta.label_lower)


class WatchedQuerySet(RecordedRows[Row]):
    """A queryset whose `update()` and `bulk_…()` record a change, and row events.

    Rows, change and events are in one transaction.  Use
    `objects = WatchedQuerySet.as_manager()`.
    """

    def update(self, **values: Any) -> int:
        run = partial(super().update, **values)
        return row_events.run_update(self, self._write_alias(), run, values)

    def bulk_update(
        self, objs: Iterable[Row], fields: Iterable[str], batch_size: int | None = None
    ) -> int:
        rows, names = [*objs], [*fields]
        run = partial(super().bulk_update, rows, names, batch_size)
        keys = [row.pk for row in rows]
        return row_events.run_update(self, self._write_alias(), run, names, keys)

    def bulk_create(self, objs: Iterable[Row], *args: Any, **options: Any) -> list[Row]:
        alias = self._write_alias()
        all_options = {**dict(zip(_BULK_OPTIONS, args, strict=False)), **options}
        with transaction.atomic(using=alias, savepoint=False):
            created = super().bulk_create(objs, **all_options)
            if created:
                row_events.record_creation(self.model, created, alias, all_options)
        return created

    def _record_change(self, ref: str = ANY) -> None:
        # `RecordedRows` calls this, without a ref: any row may have changed.
        changed_model(self.model, self._write_alias())


# -- subscriptions ---------------------------------------------------------------------
# The resources that the listen streams of this process watch, a row for each.
#
# Compaction keeps the number of a resource only if somebody watches it.  The rows are
# written before a stream is acknowledged, so that no later change is lost.

AT_ONCE = 500
"""Resources or topics in one statement."""


class ResourceSubscriptions:
    """Counts the streams of a process by URI, and writes the rows.

    Call `begin` and `end` on the loop; call the methods that block in one thread, in
    the order in which they were requested.
    """

    def __init__(self, worker_id: str) -> None:
        self._worker_id = worker_id
        self._streams: Counter[str] = Counter()

    def begin(self, uris: Iterable[str]) -> None:
        """Count one more stream that watches these URIs."""
        self._streams.update(uris)

    def end(self, uris: Iterable[str]) -> list[str]:
        """Count one stream less; return the URIs that no stream watches any more."""
        self._streams.subtract(uris)
        unwatched = [uri for uri in uris if self._streams[uri] <= 0]
        for uri in unwatched:
            del self._streams[uri]
        return unwatched

    def insert_rows(self, uris: Iterable[str] | None = None) -> None:
        """Insert the missing rows of these URIs, or of all; blocks."""
        rows = Subscription.objects.using(router.db_for_write(Subscription))
        names = list(self._streams if uris is None else uris)
        with transaction.atomic(using=rows.db):
            for batch in batches(names):
                worker_rows = rows.of_worker(self._worker_id)
                digests = worker_rows.watched(digest(uri) for uri in batch)
                new = [uri for uri in batch if digest(uri) not in digests]
                rows.watch(self._worker_id, new)

    def delete_rows(self, uris: Iterable[str]) -> None:
        """Delete the rows of these URIs; blocks."""
        rows = Subscription.objects.of_worker(self._worker_id)
        for batch in batches(list(uris)):
            rows.filter(uri_digest__in=[digest(each) for each in batch]).unwatch()


def batches(names: list[str]) -> Iterator[list[str]]:
    """Yield the names in lists of at most `AT_ONCE`."""
    for start in range(0, len(names), AT_ONCE):
        yield names[start : start + AT_ONCE]
