"""For each thing that changed, the number of its last change; made of change rows.

A number is drawn from one counter row, which is locked until its commit: the order of
numbers is the order of commits, and no number is used twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models

from mcp_app.models.fields import ExactCharField

COUNTER = "changes"


class CounterQuerySet(models.QuerySet["Counter"]):
    def draw(self) -> int:
        """Return the next number; the row stays locked until the commit."""
        if not self._increment_counter():
            # Somebody has emptied the table.
            self.get_or_create(name=COUNTER)
            self._increment_counter()
        return self.get(name=COUNTER).value

    def _increment_counter(self) -> int:
        return self.filter(name=COUNTER).update(value=models.F("value") + 1)


class Counter(models.Model):
    """`value` is the number drawn last; up to `floor`, topics may be forgotten."""

    name = models.CharField(max_length=16, primary_key=True)
    value = models.BigIntegerField(default=0)
    floor = models.BigIntegerField(default=0)

    objects = CounterQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} {self.value}"


class Topic(models.Model):
    """`kind` and `ref` as in `Change`, and the number at which they changed last.

    `previous` is the number before that one.  `folded` holds the ids of the change
    rows that became this number: a process that has seen them all knows everything.
    """

    id = models.BigAutoField(primary_key=True)
    kind = ExactCharField(max_length=32)
    ref = ExactCharField(max_length=255)
    version = models.BigIntegerField(db_index=True)
    previous = models.BigIntegerField(default=0)
    folded = models.TextField(blank=True)
    changed_ms = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["kind", "ref"], name="mcp_topic")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref} {self.version}"


def ids_from_text(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split()))


def ids_to_text(ids: Iterable[int]) -> str:
    return " ".join(map(str, ids))
