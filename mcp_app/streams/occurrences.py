"""The rows of events: they get numbers, are read and forgotten; all of it blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from django.db import router
from django.db.models import Max

from mcp_app.conf import Limits
from mcp_app.models import Counter, Occurrence
from mcp_app.models.expiry import ExpiredRows
from mcp_app.models.occurrences import MAX_KEYS, OCCURRENCES, OccurrenceQuerySet
from mcp_app.models.transactions import NowMilliseconds, persistently
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.tasks import read_json

_COLUMNS: Final = ("number", "event_id", "created_ms", "data", "audience", "cause")


@dataclass(frozen=True, slots=True)
class OutboxState:
    """The numbers given so far: `newest` is the highest, `last` has that of a topic."""

    newest: int = 0
    last: Mapping[str, int] = field(default_factory=dict)
    has_more: bool = False
    """Whether something still waits for its number: another process gives them out."""
    floor: int = 0
    """All occurrences up to this number may be forgotten."""


def _current_rows() -> OccurrenceQuerySet:
    """Return the rows where they are written: replicas may be late."""
    return Occurrence.objects.using(router.db_for_write(Occurrence))


def _counter() -> Counter:
    using = router.db_for_write(Counter)
    row = Counter.objects.using(using).filter(name=OCCURRENCES).first()
    return row or Counter(name=OCCURRENCES)


def load_floor() -> int:
    """Return the highest number that is forgotten: cursors before it miss something."""
    return _counter().floor


def number_occurrences() -> None:
    """Give numbers to all committed occurrences, unless another process does."""
    rows = _current_rows()
    while persistently(rows.number_some) >= MAX_KEYS:
        continue


def load_state(topics: Set[str], since: int) -> OutboxState:
    """Give numbers to waiting occurrences; return the numbers given so far.

    `last` has the topics with numbers after `since`, and also all of `topics`.
    """
    number_occurrences()
    rows = _current_rows()
    # Read the counter first: what it counts is visible from now on.
    counter = _counter()
    has_more = rows.filter(number=None).exists()
    visible = rows.filter(number__lte=counter.value).order_by()
    new = visible.filter(number__gt=since).values_list("topic")
    last = dict(new.annotate(last=Max("number")))
    for topic in topics - last.keys():
        newest = visible.filter(topic=topic).aggregate(last=Max("number"))["last"]
        last[topic] = newest or 0
    # The floor is read last: `last` lacks what was forgotten meanwhile.
    floor = load_floor() if topics else counter.floor
    return OutboxState(counter.value, last, has_more, floor)


class Portion(NamedTuple):
    """What happened after a number, in the order of numbers.

    A reader whose position is before `floor` has missed something.
    """

    rows: Sequence[Occurred]
    floor: int


def load_occurrences(topic: str, after: int, limit: int) -> Portion:
    """Return the occurrences of a topic after a number."""
    rows = _current_rows().filter(topic=topic, number__gt=after).order_by("number")
    values = list(rows.values_list(*_COLUMNS)[:limit])
    # The floor is read last: what was forgotten meanwhile counts as missed.
    return Portion([_occurrence_of(*value) for value in values], load_floor())


def load_latest(topic: str, limit: int) -> list[Occurred]:
    """Return the latest occurrences of a topic, in the order of numbers."""
    rows = _current_rows().filter(topic=topic, number__gt=0).order_by("-number")
    events = [_occurrence_of(*values) for values in rows.values_list(*_COLUMNS)[:limit]]
    return events[::-1]


def last_before(topic: str, after: int, age_ms: int) -> int:
    """Return the last number after `after` that is older than `age_ms`, or 0."""
    old = NowMilliseconds() - age_ms
    rows = _current_rows().filter(topic=topic, number__gt=after, created_ms__lt=old)
    return rows.aggregate(last=Max("number"))["last"] or 0


def _occurrence_of(
    number: int, event_id: str, created_ms: int, data: str, audience: str, cause: str
) -> Occurred:
    keys: Any = read_json(audience) if audience else None
    return Occurred(
        number=number,
        event_id=event_id,
        created_ms=created_ms,
        data=read_json(data),
        audience=keys,
        cause=cause,
    )


def expired_occurrences(limits: Limits) -> list[ExpiredRows]:
    """Return occurrences that are too old or too many; they have numbers."""
    numbered = _current_rows().exclude(number=None)
    old = numbered.filter(
        created_ms__lt=NowMilliseconds() - int(limits.events_kept * 1_000)
    )

    def excess() -> OccurrenceQuerySet:
        # Rows are counted: after `mcp_restored`, numbers have a wide gap.
        numbers = numbered.order_by("-number").values_list("number", flat=True)
        beyond_limit = numbers[limits.events_rows : limits.events_rows + 1]
        return numbered.filter(number__lte=next(iter(beyond_limit), 0))

    return [
        ExpiredRows("events", old.count, lambda: old.forget() or None),
        ExpiredRows(
            "events beyond the limit",
            lambda: excess().count(),
            lambda: excess().forget() or None,
        ),
    ]
