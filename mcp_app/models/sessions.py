"""Sessions of the stateful era and what they watch; the id itself is never stored."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.expressions import CombinedExpression
from django.db.models.signals import post_delete, post_save
from django.utils.translation import gettext_lazy as _

from mcp_app.interface.context import LEVELS
from mcp_app.models.changes import Change, RecordedRows
from mcp_app.models.fields import (
    DigestField,
    ExactCharField,
    JSONTextField,
    digest,
    parsed,
)

SESSION = "session"
"""The kind of a change of a session, of its level, or of what it watches."""


class SessionQuerySet(RecordedRows["Session"]):
    PRIVATE = frozenset({"seen_ms", "initialized"})

    def named(self, session_id: str) -> SessionQuerySet:
        """Return the rows (one at most) of a session by its id."""
        return self.filter(digest=digest(session_id.encode()))

    def expired(
        self,
        *,
        seen_before_ms: int | CombinedExpression,
        created_before_ms: int | CombinedExpression,
    ) -> SessionQuerySet:
        """Return the sessions that were idle for too long or are too old."""
        return self.filter(
            models.Q(seen_ms__lt=seen_before_ms)
            | models.Q(created_ms__lt=created_before_ms)
        )


class Session(models.Model):
    """`server` is the slug; times are milliseconds of the database's clock."""

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

    objects = SessionQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"
        verbose_name = _("session")
        verbose_name_plural = _("sessions")

    def __str__(self) -> str:
        return f"{self.client_name or _('a client')} ({self.revision})"

    @property
    def client(self) -> dict[str, Any]:
        """The client's `clientInfo`."""
        return dict(parsed(self.client_info or "{}"))

    @property
    def client_name(self) -> str:
        """The client's name and version, as it gave them."""
        named = (self.client.get("name"), self.client.get("version"))
        return " ".join(part for part in named if isinstance(part, str))

    @property
    def user_id(self) -> str:
        """The primary key of the Django user as text, "" for none."""
        parts = self.principal_key.split("\x1f")
        return parts[1] if len(parts) > 1 else ""


class SubscriptionQuerySet(RecordedRows["Subscription"]):
    KIND = SESSION


class Subscription(models.Model):
    """A session watches a resource; the URI is unique by its digest."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="subscriptions"
    )
    uri = models.TextField()
    uri_digest = DigestField(of="uri", db_index=True)

    objects = SubscriptionQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"
        constraints = [
            models.UniqueConstraint(
                fields=["session", "uri_digest"], name="mcp_subscription"
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
    """Record a change, unless nobody else can know the session or what changed."""
    private = update_fields is not None and update_fields <= SessionQuerySet.PRIVATE
    if not created and not private:
        _record(instance.pk, using)


def _session_deleted(instance: Session, using: str, **_: object) -> None:
    _record(instance.pk, using)


def _subscription_changed(instance: Subscription, using: str, **_: object) -> None:
    _record(instance.session_id, using)


def _record(session: object, using: str) -> None:
    Change.objects.using(using).record(SESSION, str(session))


post_save.connect(_session_saved, sender=Session)
post_delete.connect(_session_deleted, sender=Session)
post_save.connect(_subscription_changed, sender=Subscription)
post_delete.connect(_subscription_changed, sender=Subscription)
