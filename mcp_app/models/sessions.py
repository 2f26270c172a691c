"""Sessions of the stateful era and what they watch; the id itself is never stored."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db import connections, models, router, transaction
from django.db.models.expressions import CombinedExpression
from django.db.models.signals import post_delete, post_save, pre_delete
from django.utils.translation import gettext_lazy as _

from mcp_app.interface.context import LEVELS
from mcp_app.interface.principal import Principal, parts_of_key
from mcp_app.interface.rules import visible
from mcp_app.models import erasing
from mcp_app.models.changes import Change, RecordedRows
from mcp_app.models.expiry import claim_rows, delete_rows
from mcp_app.models.fields import (
    DigestField,
    ExactCharField,
    JSONTextField,
    digest,
    parse_json,
)
from mcp_app.models.transactions import NowMilliseconds, own_transaction, persistently
from mcp_app.models.workers import Worker

SESSION = "session"
"""The kind of a change of a session, of its level, or of what it watches."""
RECENT_MS = 15 * 60_000
"""How long a client counts as recent after its last request, and a failure as new."""
AT_ONCE = 50
"""How many sessions one transaction deletes, or empties of messages."""


class SessionQuerySet(RecordedRows["Session"]):
    _private_columns = frozenset(
        {
            *("seen_ms", "initialized", "stream", "streams", "seen", "logged"),
            # They change once, and code that lacks them reads the row.
            *("revision", "client_info", "capabilities"),
        }
    )

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete sessions with their rows; no row is added meanwhile.

        A transaction that adds a stream waits for the lock, and finds no session.  If
        it has locked a stream of the session already, one of the two begins again.
        Most messages are deleted before, so that nobody waits for long.
        """
        using = self._write_alias()
        self.empty()
        return persistently(lambda: self._delete_locked(using))

    def _delete_locked(self, using: str) -> tuple[int, dict[str, int]]:
        with own_transaction(using):
            keys = self._erased(using)
            delete_rows(using, Subscription, keys, "session_id")
            delete_rows(using, Session, keys)
            # Signals would take five statements for each session.
            Change.objects.using(using).record_all(SESSION, map(str, keys))
        return len(keys), {Session._meta.label: len(keys)}

    def _erased(self, using: str) -> list[int]:
        """Lock the sessions, and delete what belongs to them; return their keys."""
        locked = self.using(using).select_for_update().order_by("pk")
        keys = list(locked.values_list("pk", flat=True))
        erasing.erase_session_rows(using, keys)
        return keys

    delete.queryset_only = True  # type: ignore[attr-defined]

    def empty(self) -> None:
        """Delete messages, a portion in each transaction, until few are left."""
        while self.empty_some():
            continue

    def empty_some(self) -> bool:
        """Delete a portion of messages; return False if few are left."""
        using = self._write_alias()
        keys = list(self.using(using).values_list("pk", flat=True))
        parts = (keys[n : n + AT_ONCE] for n in range(0, len(keys), AT_ONCE))
        return any(
            persistently(partial(erasing.empty_some, using, part)) for part in parts
        )

    def remove_some(self) -> int | None:
        """Delete some sessions, or some of their messages; None if there are none."""
        using = self._write_alias()
        with own_transaction(using):
            claims = claim_rows(self.using(using)).values_list("pk", flat=True)
            keys = list(claims[:AT_ONCE])
            if keys and not erasing.empty_some(using, keys):
                self.filter(pk__in=keys)._delete_locked(using)
                return len(keys)
        return 0 if keys else None

    def current(self) -> SessionQuerySet:
        """Read where sessions are written: a replica may not have them yet."""
        return self.using(self._write_alias())

    def add(self, rows: list[Session]) -> None:
        """Insert new sessions, and set their keys; no change is recorded."""
        using = self._write_alias()
        models.QuerySet.bulk_create(self, rows)
        if any(row.pk is None for row in rows):
            # MySQL does not return keys.
            stored = self.using(using).filter(digest__in=[row.digest for row in rows])
            keys = dict(stored.values_list("digest", "pk"))
            for row in rows:
                row.pk = keys[row.digest]

    def update_together(self, **columns: object) -> list[int]:
        """Update rows in the order of keys, against deadlocks; return the keys."""
        using = self._write_alias()
        # If the key is not locked, others may insert rows that refer to this one.
        no_key = connections[using].features.has_select_for_no_key_update

        def update_locked() -> list[int]:
            with own_transaction(using):
                rows = self.using(using).order_by("pk").select_for_update(no_key=no_key)
                keys = list(rows.values_list("pk", flat=True))
                Session.objects.using(using).filter(pk__in=keys).update(**columns)
            return keys

        return persistently(update_locked)

    def named(self, session_id: str) -> SessionQuerySet:
        return self.filter(digest=digest(session_id))

    def stream_opened(self, pk: int, public_id: str, observed: int) -> int:
        """Store and announce a GET stream; return its number, 0 without a session."""
        self._for_write = True
        row = self.using(self.db).filter(pk=pk)
        opened = models.F("streams") + 1
        with transaction.atomic(using=self.db):
            if not row.update(stream=public_id, streams=opened, seen=observed):
                return 0
            row._record_change(str(pk))
            return row.get().streams

    def set_level(self, pk: int, level: int) -> bool:
        """Store and announce a session's log level; return whether it exists."""
        self._for_write = True
        row = self.using(self.db).filter(pk=pk)
        with transaction.atomic(using=self.db):
            has_row = bool(models.QuerySet.update(row, log_level=level))
            if has_row:
                row._record_change(str(pk))
        return has_row

    def expired(
        self,
        *,
        seen_before_ms: int | CombinedExpression,
        created_before_ms: int | CombinedExpression,
    ) -> SessionQuerySet:
        return self.filter(
            models.Q(seen_ms__lt=seen_before_ms)
            | models.Q(created_ms__lt=created_before_ms)
        )

    def recent(self) -> SessionQuerySet:
        """Return sessions whose client has sent a request in the last 15 minutes."""
        return self.filter(seen_ms__gte=NowMilliseconds() - RECENT_MS)

    def anonymous(self) -> SessionQuerySet:
        return self.filter(principal_key=Principal.ANONYMOUS.key)

    def held(self) -> SessionQuerySet:
        return self.filter(holder__gt="")

    def alive(self, *, idle_s: float, age_s: float) -> SessionQuerySet:
        """Return sessions used in the last `idle_s`, and made in the last `age_s`."""
        now = NowMilliseconds()
        return self.filter(
            seen_ms__gte=now - int(idle_s * 1000),
            created_ms__gte=now - int(age_s * 1000),
        )


class Session(models.Model):
    """`server` is the slug; times are milliseconds of the database's clock.

    `logged` is the number of the last log message that was sent from outside a call.
    `streams` counts the GET streams; `stream` is the public id of the newest one, and
    `seen` is the number of the last change that the client knew of then.
    `holder` is the key of the worker that has the stream of a session of HTTP+SSE, ""
    for all others; before `initialize` such a session has no `client_info`.  A session
    is `whole` if no stream can be kept open: it was offered no subscriptions.
    """

    digest = DigestField(unique=True)
    principal_key = ExactCharField(max_length=500, db_index=True)
    server = ExactCharField(max_length=64)
    revision = models.CharField(max_length=16)
    client_info = JSONTextField(blank=True)
    capabilities = JSONTextField(blank=True)
    log_level = models.PositiveSmallIntegerField(
        null=True, blank=True, choices=list(enumerate(LEVELS))
    )
    initialized = models.BooleanField(default=False)
    created_ms = models.BigIntegerField(db_index=True)
    seen_ms = models.BigIntegerField(db_index=True)
    # Processes of the release before insert rows without these columns.
    stream = models.CharField(max_length=32, blank=True, default="", db_default="")
    streams = models.PositiveIntegerField(default=0, db_default=0)
    seen = models.BigIntegerField(default=0, db_default=0)
    logged = models.BigIntegerField(default=0, db_default=0)
    holder = models.CharField(max_length=32, blank=True, default="", db_default="")
    whole = models.BooleanField(default=False, db_default=False)

    objects = SessionQuerySet.as_manager()

    class Meta:
        default_permissions = ("view", "delete")
        indexes = [models.Index(fields=["holder"], name="mcp_session_holder")]
        verbose_name = _("session")
        verbose_name_plural = _("sessions")

    def __str__(self) -> str:
        return f"{visible(self.client_name) or _('a client')} ({self.revision})"

    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """Delete the session and its rows, as `SessionQuerySet.delete` does."""
        using = options.get("using") or router.db_for_write(Session, instance=self)
        Session.objects.using(using).filter(pk=self.pk).empty()
        with own_transaction(using):
            Session.objects.filter(pk=self.pk)._erased(using)
            return super().delete(*args, **options)

    @property
    def client(self) -> dict[str, Any]:
        return dict(parse_json(self.client_info or "{}"))

    @property
    def client_name(self) -> str:
        parts = (self.client.get("name"), self.client.get("version"))
        return " ".join(part for part in parts if isinstance(part, str))

    @property
    def user_id(self) -> str:
        """The primary key of the Django user as text, "" for none."""
        return parts_of_key(self.principal_key)[1]


class SubscriptionQuerySet(RecordedRows["Subscription"]):
    _change_kind = SESSION

    def of_worker(self, worker_id: str) -> SubscriptionQuerySet:
        return self.filter(worker_id=worker_id)

    def watched(self, digests: Iterable[str]) -> set[str]:
        rows = self.filter(uri_digest__in=list(digests))
        return set(rows.order_by().values_list("uri_digest", flat=True).distinct())

    def watch(self, worker_id: str, uris: Iterable[str]) -> None:
        """Add the URIs that a process watches; no session changes: none is recorded."""
        rows = [Subscription(worker_id=worker_id, uri=uri) for uri in uris]
        models.QuerySet.bulk_create(self, rows)

    def unwatch(self) -> None:
        """Delete rows of processes; no session changes, so no change is recorded."""
        self._for_write = True
        self._raw_delete(self.db)


class Subscription(models.Model):
    """A session or a process (for `subscriptions/listen`) watches a resource."""

    session = models.ForeignKey(
        Session,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="subscriptions",
    )
    worker = models.ForeignKey(
        Worker,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="subscriptions",
    )
    uri = models.TextField()
    uri_digest = DigestField(of="uri", db_index=True)

    objects = SubscriptionQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["session", "uri_digest"], name="mcp_subscription"
            ),
            models.UniqueConstraint(
                fields=["worker", "uri_digest"], name="mcp_worker_subscription"
            ),
            # Both are NULL for a moment, while Django deletes the row on MariaDB.
            models.CheckConstraint(
                condition=models.Q(session__isnull=True)
                | models.Q(worker__isnull=True),
                name="mcp_subscription_of_one",
            ),
        ]

    def __str__(self) -> str:
        return self.uri


def _session_saved(
    instance: Session,
    using: str,
    created: bool,
    update_fields: frozenset[str] | None = None,
    **_: object,
) -> None:
    """Record a change, but not for a new session or for private columns."""
    columns = SessionQuerySet._private_columns
    private = update_fields is not None and update_fields <= columns
    if not created and not private:
        _record_session_change(instance, using)


def _session_goes(instance: Session, using: str, **_: object) -> None:
    """Delete also the rows that were added after Django collected the others."""
    Session.objects.filter(pk=instance.pk)._erased(using)


def _record_session_change(
    instance: Session | Subscription, using: str, **_: object
) -> None:
    key = instance.pk if isinstance(instance, Session) else instance.session_id
    if key is not None:
        Change.objects.using(using).record(SESSION, str(key))


post_save.connect(_session_saved, sender=Session)
pre_delete.connect(_session_goes, sender=Session)
post_delete.connect(_record_session_change, sender=Session)
post_save.connect(_record_session_change, sender=Subscription)
post_delete.connect(_record_session_change, sender=Subscription)
