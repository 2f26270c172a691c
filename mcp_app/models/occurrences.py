"""The outbox: what has happened, written by the transaction in which it happened.

Rows get their numbers later, under the lock of one counter that is held until the
commit.  So no number appears that is lower than one that was read before.  A primary
key would, because long transactions commit late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from django.db import connections, models, router

from mcp_app.models.changes import Change
from mcp_app.models.expiry import delete_rows
from mcp_app.models.fields import ExactCharField
from mcp_app.models.topics import Counter
from mcp_app.models.transactions import NowMilliseconds, own_transaction

EVENT: Final = "event"
"""The kind of a change that tells of new occurrences; the ref is their topic."""
OCCURRENCES: Final = "occurrences"
"""The name of the counter that numbers occurrences."""
MAX_KEYS: Final = 500
"""How many rows get their numbers, or are deleted, in one transaction."""
MAX_ID_LENGTH: Final = 255


class OccurrenceQuerySet(models.QuerySet["Occurrence"]):
    """Rows, and how they get their numbers."""

    def record(self, rows: Sequence[Occurrence]) -> None:
        """Insert rows in the caller's transaction, and record their topics."""
        using = router.db_for_write(Occurrence)
        for row in rows:
            row.created_ms = NowMilliseconds()
        self.using(using).bulk_create(rows)
        changes = Change.objects.using(using)
        for topic in dict.fromkeys(row.topic for row in rows):
            changes.record(EVENT, topic)

    def number_some(self) -> int:
        """Give numbers to rows that are committed; return how many got one.

        0 also means that another process does so just now.
        """
        using = router.db_for_write(Occurrence)
        waiting = self.using(using).filter(number=None)
        # Usually there are none: to find that out, nothing is locked.
        if not waiting.exists():
            return 0
        Counter.objects.using(using).get_or_create(name=OCCURRENCES)
        with own_transaction(using):
            counter = _locked_counter(using)
            if counter is None:
                return 0
            keys = list(waiting.order_by("pk").values_list("pk", flat=True)[:MAX_KEYS])
            number = counter.value + 1
            for first, last in _runs(keys):
                run = waiting.filter(pk__range=(first, last))
                run.update(number=models.F("pk") + (number - first))
                number += last - first + 1
            counters = Counter.objects.using(using).filter(name=OCCURRENCES)
            counters.update(value=number - 1)
        return len(keys)

    def forget(self) -> int:
        """Delete the first of these rows, a portion; return how many there were.

        The counter's `floor` rises to the last of them: cursors below have missed some.
        """
        using = router.db_for_write(Occurrence)
        with own_transaction(using):
            numbered = self.using(using).exclude(number=None).order_by("number")
            rows = list(numbered.values_list("pk", "number")[:MAX_KEYS])
            if rows:
                delete_rows(using, Occurrence, [pk for pk, _number in rows])
                floor = rows[-1][1]
                counters = Counter.objects.using(using).filter(name=OCCURRENCES)
                counters.filter(floor__lt=floor).update(floor=floor)
        return len(rows)


def _runs(keys: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last key of each run of keys without a gap."""
    first = 0
    for following, key in enumerate(keys, 1):
        if following == len(keys) or keys[following] != key + 1:
            yield keys[first], key
            first = following


def _locked_counter(using: str) -> Counter | None:
    """Return the counter; None if another process gives out numbers now."""
    features = connections[using].features
    rows = Counter.objects.using(using).filter(name=OCCURRENCES)
    if features.has_select_for_update:
        skip = features.has_select_for_update_skip_locked
        rows = rows.select_for_update(skip_locked=skip)
    return rows.first()


class Occurrence(models.Model):
    """Something that happened.

    `topic` is the name of an event type that code declares, or `+` and the label of a
    model whose row was changed.  `data` is JSON: what is told, or for a row its key,
    what was done and which watched fields have changed.  `audience` is a JSON list of
    the keys of the only users who are told; "" for all.  `cause` is the digest of who
    made it happen by a call, "" if it happened outside of calls.
    """

    id = models.BigAutoField(primary_key=True)
    number = models.BigIntegerField(null=True, unique=True)
    topic = ExactCharField(max_length=255)
    event_id = ExactCharField(max_length=MAX_ID_LENGTH)
    data = models.TextField()
    audience = models.TextField(blank=True)
    cause = models.CharField(max_length=64, blank=True)
    created_ms = models.BigIntegerField()

    objects = OccurrenceQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["topic", "number"], name="mcp_occurrence_topic"),
            models.Index(fields=["created_ms"], name="mcp_occurrence_age"),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.event_id}"
