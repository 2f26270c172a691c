"""Stops: what people have switched off, each for itself, and until when.

Each is a row of its own: two people who stop the same thing do not meet, and whoever
ends one leaves the others on.  Rows that have ended are kept: they say who switched
what off, from when until when; commands leave nothing in the admin's log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_app.interface.rules import one_line, visible
from mcp_app.models.changes import Change
from mcp_app.models.checking import CheckedRow
from mcp_app.models.definitions import DefinitionRow
from mcp_app.models.fields import ExactCharField
from mcp_app.models.server import Server
from mcp_app.models.versions import PublishedRow

STOP: Final = "stop"
"""The kind of a change of what is stopped; the ref begins with what it is."""
LONGEST_REASON: Final = 500
LONGEST_NAME: Final = 255


class Scope(models.TextChoices):
    """How far a stop reaches."""

    EVERYTHING = "everything", _("Everything")
    CHANGES = "changes", _("All tools that change things")
    SERVER = "server", _("One server")
    DEFINITION = "definition", _("One tool, resource, template or prompt")


WIDE: Final = (Scope.EVERYTHING, Scope.CHANGES, Scope.SERVER)
"""The scopes that are wider than one tool."""


class Running(models.TextChoices):
    """What becomes of the calls that run when something is stopped."""

    CANCEL = "cancel", _("cancel")
    FINISH = "finish", _("let finish")


@dataclass(frozen=True, slots=True)
class By:
    """Who stops or starts: a name as people know it, and a user's key, if it is one."""

    name: str
    key: str = ""


class StopRows(models.QuerySet["Stop"]):
    def on(self) -> Self:
        """Return the stops that hold now."""
        return self.filter(ended=None)

    def wide(self) -> Self:
        """Return those that stop more than one tool, resource, template or prompt."""
        return self.filter(scope__in=WIDE)

    def of(self, scope: str, row: PublishedRow | None = None) -> Self:
        """Return the stops of just this; `row` is the server or definition."""
        kind, ref = _named(row)
        return self.filter(scope=scope, kind=kind, ref=ref)

    def make(
        self,
        scope: str,
        row: PublishedRow | None = None,
        *,
        by: By,
        running: str = Running.CANCEL,
        reason: str = "",
    ) -> Stop:
        """Stop something; raises `ValidationError`.

        `row` is the server or the definition, where the scope is one.  Nothing stays
        on because of how a reason is written: it is kept as one line.
        """
        kind, ref = _named(row)
        stop = Stop(
            scope=scope,
            kind=kind,
            ref=ref,
            name="" if row is None else name_of(row)[:LONGEST_NAME],
            served="" if row is None else served_as(row),
            running=running,
            by_name=one_line(by.name, LONGEST_NAME),
            by_key=by.key[:LONGEST_NAME],
            reason=one_line(reason, LONGEST_REASON),
        )
        stop.full_clean()
        self._for_write = True
        with transaction.atomic(using=self.db):
            stop.save(using=self.db, force_insert=True)
            stop.record(self.db)
        return stop

    def end(self, keys: Iterable[int], *, by: By) -> list[Stop]:
        """End these stops; return those that were still on."""
        self._for_write = True
        with transaction.atomic(using=self.db):
            # Whoever locks several rows does it in this order.
            locked = self.on().filter(pk__in=list(keys)).select_for_update()
            stops = list(locked.order_by("pk"))
            rows = models.QuerySet[Stop](Stop, using=self.db)
            rows.filter(pk__in=[each.pk for each in stops]).update(
                ended=timezone.now(),
                ended_by_name=one_line(by.name, LONGEST_NAME),
                ended_by_key=by.key[:LONGEST_NAME],
            )
            for each in stops:
                each.record(self.db)
        return stops

    def count_cancelled(self, pk: int, calls: int) -> None:
        """Keep that so many calls were cancelled because of a stop; nobody is told."""
        self.filter(pk=pk).update(cancelled=models.F("cancelled") + calls)


class Stop(CheckedRow):
    """`kind` and `ref` name a server or a definition as a `Change` does.

    `served` is what clients called it then: its name or URI, or a server's slug.  A
    stop holds its row, whatever that is called now, and whatever is called so now: a
    row that is deleted and made again comes back with another key.  `name` is what
    people called it; `cancelled` counts the calls that were.  Users are plain text: a
    stop outlives whoever made it.
    """

    ONE_LINE = ("reason",)
    MANY_LINES = ()

    scope = models.CharField(max_length=10, choices=Scope.choices)
    kind = ExactCharField(max_length=32, blank=True)
    ref = ExactCharField(max_length=64, blank=True)
    name = models.CharField(max_length=LONGEST_NAME, blank=True)
    served = models.TextField(blank=True)
    running = models.CharField(
        max_length=6, choices=Running.choices, default=Running.CANCEL
    )
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    by_name = models.CharField(max_length=LONGEST_NAME, blank=True)
    by_key = models.CharField(max_length=LONGEST_NAME, blank=True)
    at = models.DateTimeField(default=timezone.now)
    cancelled = models.PositiveIntegerField(default=0)
    ended = models.DateTimeField(null=True, blank=True, db_index=True)
    ended_by_name = models.CharField(max_length=LONGEST_NAME, blank=True)
    ended_by_key = models.CharField(max_length=LONGEST_NAME, blank=True)

    objects = StopRows.as_manager()

    class Meta:
        app_label = "mcp_app"
        default_permissions = ()
        ordering = ["at", "pk"]
        verbose_name = _("stop")
        verbose_name_plural = _("stops")

    def __str__(self) -> str:
        return self.what

    @property
    def what(self) -> str:
        """What is stopped, as people call it."""
        if self.scope in (Scope.EVERYTHING, Scope.CHANGES):
            return str(Scope(self.scope).label)
        return visible(self.name, None) or f"{self.kind} {self.ref}"

    @property
    def cancels(self) -> bool:
        return self.running == Running.CANCEL

    def holds(self, row: PublishedRow) -> bool:
        """Whether this stops a server or a definition by itself; asks nothing."""
        if self.kind != row.kind_of_row:
            return False
        return self.ref == str(row.pk) or _is_served_as(row, self.served)

    def record(self, using: str) -> None:
        """Say in the caller's transaction that this is on, or no more."""
        said = f"{self.kind or self.scope}:{self.ref}"
        Change.objects.using(using).record(STOP, said)

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        named = {
            Scope.SERVER: self.kind == Server._meta.model_name,
            Scope.DEFINITION: self.kind not in ("", Server._meta.model_name),
        }
        scope: Any = self.scope
        if not named.get(scope, not self.kind) or bool(self.kind) is not bool(self.ref):
            yield "scope", f"A stop of “{self.scope}” cannot name “{self.kind}”."


def name_of(row: PublishedRow) -> str:
    """Return what a server or a definition is called."""
    if isinstance(row, Server):
        return row.title or row.slug
    return served_as(row)


def served_as(row: PublishedRow) -> str:
    """Return what clients call it; what is not published, as its working copy says."""
    if isinstance(row, Server):
        return row.slug
    content = {} if row.published is None else row.published.read()
    identity = content.get(getattr(row, "IDENTITY", ""))
    return str(identity or _identity(row))


def _is_served_as(row: PublishedRow, identity: str) -> bool:
    """Whether clients call it so; asks nothing."""
    if isinstance(row, DefinitionRow) and row.published_identity is not None:
        return row.published_identity == row.identity_hash(identity)
    return identity == (row.slug if isinstance(row, Server) else _identity(row))


def _identity(row: PublishedRow) -> str:
    return row.identity if isinstance(row, DefinitionRow) else str(row)


def _named(row: PublishedRow | None) -> tuple[str, str]:
    return ("", "") if row is None else (row.kind_of_row, str(row.pk))
