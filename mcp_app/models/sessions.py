"""Sessions of the stateful era and what they watch; the id itself is never stored."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.expressions import CombinedExpression
from django.utils.translation import gettext_lazy as _

from mcp_app.interface.context import LEVELS
from mcp_app.models.fields import (
    DigestField,
    ExactCharField,
    JSONTextField,
    digest,
    parsed,
)


class SessionQuerySet(models.QuerySet["Session"]):
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


class Subscription(models.Model):
    """A session watches a resource; the URI is unique by its digest."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="subscriptions"
    )
    uri = models.TextField()
    uri_digest = DigestField(of="uri", db_index=True)

    class Meta:
        app_label = "mcp_app"
        constraints = [
            models.UniqueConstraint(
                fields=["session", "uri_digest"], name="mcp_subscription"
            ),
        ]

    def __str__(self) -> str:
        return self.uri
