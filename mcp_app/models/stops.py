"""Stops: what people have switched off, each for itself, and until when.

Nothing else stops anything: buttons, list actions and commands write these rows.  If
two people stop the same thing, there are two rows: to end one leaves the other on.
Ended rows are kept, because commands write nothing into the admin's log: they say who
switched what off, from when until when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from django.db import models, transaction
from django.db.models.functions import Cast
from django.db.models.lookups import IsNull
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_app.interface.rules import one_line, visible
from mcp_app.models.changes import ANY, Change
from mcp_app.models.definitions import DefinitionRow
from mcp_app.models.fields import CheckedRow, DigestField, ExactCharField
from mcp_app.models.server import Server
from mcp_app.models.versions import PublishedRow

STOP: Final = "stop"
"""The kind of a change of stops; the ref begins with the row's kind, or the scope."""
MAX_REASON_LENGTH: Final = 500
MAX_NAME_LENGTH: Final = 255
STOP_BATCH_SIZE: Final = 500


class Scope(models.TextChoices):
    """How far a stop reaches."""

    EVERYTHING = "everything", _("Everything")
    CHANGES = "changes", _("All tools that change things")
    SERVER = "server", _("One server")
    DEFINITION = "definition", _("One tool, resource, template, prompt or event type")


WIDE: Final = (Scope.EVERYTHING, Scope.CHANGES, Scope.SERVER)


class Running(models.TextChoices):
    """What becomes of the calls that run when something is stopped."""

    CANCEL = "cancel", _("cancel")
    FINISH = "finish", _("let finish")


@dataclass(frozen=True, slots=True)
class By:
    """The one who stops or starts: a name for people, and the key if it is a user."""

    name: str
    key: str = ""


class StopRows(models.QuerySet["Stop"]):
    def on(self) -> Self:
        return self.filter(ended=None)

    def wide(self) -> Self:
        return self.filter(scope__in=WIDE)

    def of(self, scope: str, row: PublishedRow | None = None) -> Self:
        kind, ref = _kind_and_ref(row)
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

        `row` is the server or the definition, if the scope is one.  A reason is never
        refused: it is shortened to one line.
        """
        line = one_line(reason, MAX_REASON_LENGTH)
        stop = _create_stop(scope, row, by, running, line)
        self._for_write = True
        with transaction.atomic(using=self.db):
            stop.save(using=self.db, force_insert=True)
            _record_stops([stop], self.db)
        return stop

    def make_many(self, rows: Iterable[PublishedRow], *, by: By) -> list[Stop]:
        """Stop these servers or definitions, with few statements; cancel what runs."""
        stops = [
            _create_stop(scope_of(row), row, by, Running.CANCEL, "") for row in rows
        ]
        self._for_write = True
        with transaction.atomic(using=self.db):
            self.bulk_create(stops, STOP_BATCH_SIZE)
            _record_stops(stops, self.db)
        return stops

    def of_rows(self, rows: Sequence[PublishedRow]) -> list[Stop]:
        """Return the stops that hold one of these rows, which are of one kind."""
        if not rows:
            return []
        keys = {str(row.pk) for row in rows}
        names = {row.served_name_hash() for row in rows}
        of_kind = self.on().filter(kind=rows[0].kind_of_row)
        return [
            each for each in of_kind if each.ref in keys or each.served_hash in names
        ]

    def end(self, keys: Iterable[int], *, by: By) -> list[Stop]:
        self._for_write = True
        with transaction.atomic(using=self.db):
            # Lock several rows in this order everywhere, to avoid deadlocks.
            locked = self.on().filter(pk__in=list(keys)).select_for_update()
            stops = list(locked.order_by("pk"))
            rows = models.QuerySet[Stop](Stop, using=self.db)
            rows.filter(pk__in=[stop.pk for stop in stops]).update(
                ended=timezone.now(),
                ended_by_name=one_line(by.name, MAX_NAME_LENGTH),
                ended_by_key=by.key[:MAX_NAME_LENGTH],
            )
            _record_stops(stops, self.db)
        return stops

    def count_cancelled(self, pk: int, calls: int) -> None:
        self.filter(pk=pk).update(cancelled=models.F("cancelled") + calls)


class Stop(CheckedRow):
    """`kind` and `ref` name a server or a definition as a `Change` does.

    `served` is what clients called it then: its name or URI, or a server's slug;
    `served_hash` is the digest of that.  A stop holds its row, even under another name,
    and each row that has the name now: if a row is deleted and made again, it has
    another key.  `name` is what people called it; `cancelled` counts the calls that
    were cancelled.  Users are plain text: a stop outlives the user who made it.
    """

    ONE_LINE = ("reason",)
    MANY_LINES = ()

    scope = models.CharField(max_length=10, choices=Scope.choices)
    kind = ExactCharField(max_length=32, blank=True)
    ref = ExactCharField(max_length=64, blank=True)
    name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    served = models.TextField(blank=True)
    served_hash = DigestField(of="served")
    running = models.CharField(
        max_length=6, choices=Running.choices, default=Running.CANCEL
    )
    reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True)
    by_name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    by_key = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    at = models.DateTimeField(default=timezone.now)
    cancelled = models.PositiveIntegerField(default=0)
    ended = models.DateTimeField(null=True, blank=True, db_index=True)
    ended_by_name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    ended_by_key = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)

    objects = StopRows.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ["at", "pk"]
        verbose_name = _("stop")
        verbose_name_plural = _("stops")

    def __str__(self) -> str:
        return self.what

    @property
    def what(self) -> str:
        if self.scope in (Scope.EVERYTHING, Scope.CHANGES):
            return str(Scope(self.scope).label)
        return visible(self.name, None) or f"{self.kind} {self.ref}"

    @property
    def cancels(self) -> bool:
        return self.running == Running.CANCEL

    def holds(self, row: PublishedRow) -> bool:
        """Whether this stops a server or a definition by itself; makes no query."""
        return stop_matcher([self])(row)

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        kind_fits = {
            Scope.SERVER: self.kind == Server._meta.model_name,
            Scope.DEFINITION: self.kind not in ("", Server._meta.model_name),
        }
        scope: Any = self.scope
        if not kind_fits.get(scope, not self.kind) or bool(self.kind) is not bool(
            self.ref
        ):
            yield "scope", f"A stop of “{self.scope}” cannot name “{self.kind}”."


def _create_stop(
    scope: str, row: PublishedRow | None, by: By, running: str, reason: str
) -> Stop:
    kind, ref = _kind_and_ref(row)
    stop = Stop(
        scope=scope,
        kind=kind,
        ref=ref,
        name="" if row is None else name_of(row)[:MAX_NAME_LENGTH],
        served="" if row is None else served_as(row),
        running=running,
        by_name=one_line(by.name, MAX_NAME_LENGTH),
        by_key=by.key[:MAX_NAME_LENGTH],
        reason=reason,
    )
    stop.full_clean()
    return stop


def _record_stops(stops: Iterable[Stop], using: str) -> None:
    """Record in the caller's transaction one change for each kind of row."""
    refs: dict[str, set[str]] = {}
    for stop in stops:
        refs.setdefault(stop.kind or stop.scope, set()).add(stop.ref)
    for kind_or_scope, kind_refs in refs.items():
        [ref] = kind_refs if len(kind_refs) == 1 else [ANY]
        Change.objects.using(using).record(STOP, f"{kind_or_scope}:{ref}")


def is_stopped(model: type[PublishedRow]) -> models.Exists:
    """Return the condition that a stop holds a row, by its key or by its name."""
    key = models.Q(ref=Cast(models.OuterRef("pk"), models.CharField()))
    name = models.Q(served=models.OuterRef("slug"))
    if issubclass(model, DefinitionRow):
        published = models.OuterRef("published_identity")
        working = models.OuterRef(model.IDENTITY)
        name = models.Q(served_hash=published)
        name |= models.Q(IsNull(published, True), served=working)
    stops = Stop.objects.on().filter(kind=str(model._meta.model_name))
    return models.Exists(stops.filter(key | name))


def stop_matcher(stops: Iterable[Stop]) -> Callable[[PublishedRow], bool]:
    """Return a function that says without a query if one of these stops holds a row."""
    row_stops = [stop for stop in stops if stop.kind]
    keys = {(stop.kind, stop.ref) for stop in row_stops}
    names = {(stop.kind, stop.served_hash) for stop in row_stops}

    def is_row_stopped(row: PublishedRow) -> bool:
        kind = row.kind_of_row
        return (kind, str(row.pk)) in keys or (kind, row.served_name_hash()) in names

    return is_row_stopped


def scope_of(row: PublishedRow) -> Scope:
    return Scope.SERVER if isinstance(row, Server) else Scope.DEFINITION


def name_of(row: PublishedRow) -> str:
    if isinstance(row, Server):
        return row.title or row.slug
    return served_as(row)


def served_as(row: PublishedRow) -> str:
    """Return what clients call a row; if it is not published, what its copy says."""
    if isinstance(row, Server):
        return row.slug
    content = row.published_content()
    identity = content.get(getattr(row, "IDENTITY", ""))
    return str(identity or getattr(row, "identity", row))


def _kind_and_ref(row: PublishedRow | None) -> tuple[str, str]:
    return ("", "") if row is None else (row.kind_of_row, str(row.pk))
