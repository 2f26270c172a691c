"""Faults that are planted in a process, so that tests show that they would find them.

`tests.drill.switches` has their names, and switches them on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from mcp_app.invalidation import change_reader, compaction
from mcp_app.invalidation.changes import RESOURCE
from mcp_app.invalidation.workers import Here
from mcp_app.models import Change, Counter, Subscription, Topic
from mcp_app.models.appends import Addition
from mcp_app.models.changes import ChangeQuerySet
from mcp_app.models.streams import EventQuerySet, StreamQuerySet
from mcp_app.models.topics import COUNTER
from mcp_app.models.transactions import own_transaction
from mcp_app.process.announcements import Announcements
from mcp_app.process.freshness import NEVER, FreshnessGate
from mcp_app.process.runtime import Process
from mcp_app.process.ticker import Ticker
from mcp_app.streams import log_writer, request_log
from mcp_app.streams.replay import Followers
from mcp_app.streams.request_log import OwnedStream
from tests.drill import switches

Good: TypeAlias = Callable[..., Any]

GAP_S: Final = 0.03
"""Between two statements that should be one, so that few rounds are enough."""
LATE: Final = 0.2
"""The part of the messages that is not seen when it should be."""


def plant(directory: str) -> None:
    """Let each fault be there while the directory has a file of its name."""
    for name, faults in FAULTS.items():
        for owner, attribute, fault in faults:
            _plant(Path(directory) / name, owner, attribute, fault)


def _plant(switch: Path, owner: Any, attribute: str, fault: Callable[..., Any]) -> None:
    """Give the good function to the fault, before its arguments."""
    good = getattr(owner, attribute)

    @wraps(good)
    def either(*arguments: Any, **named: Any) -> Any:
        if switch.exists():
            return fault(good, *arguments, **named)
        return good(*arguments, **named)

    setattr(owner, attribute, either)


def _slow_check(good: Good, announcements: Announcements) -> Any:
    """Take long to reach the database, or to come back with what is old by then."""
    before = random.uniform(0, switches.SLOW_S)  # noqa: S311 - no secret
    time.sleep(before)
    found = good(announcements)
    time.sleep(switches.SLOW_S - before)
    return found


async def _nobody_else(_good: object, _announcements: Announcements) -> bool:
    """Announce without waiting until every process has checked."""
    return False


_told_of: Final[dict[int, frozenset[Any]]] = {}
"""The streams that were open when a batch of news was seen, by its id."""


def _take_in(good: Good, announcements: Any, found: Any) -> None:
    good(announcements, found)
    for batch in announcements._pending:
        _told_of.setdefault(id(batch), frozenset(announcements._listeners))


def _of(good: Good, announcements: Any, batches: list[Any]) -> Any:
    announcement = good(announcements, batches)
    known = [_told_of.pop(id(batch), frozenset()) for batch in batches]
    return _ToSome(announcement, frozenset[Any]().union(*known))


class _ToSome:
    def __init__(self, announcement: Any, streams: Iterable[Any]) -> None:
        self._announcement = announcement
        self._streams = streams

    def __bool__(self) -> bool:
        return bool(self._announcement)

    def wanted(self, stream: Any) -> list[str]:
        if stream not in self._streams:
            return []
        wanted: list[str] = self._announcement.wanted(stream)
        return wanted


def _committed(_good: object, here: Any) -> None:
    """Answer in synchronous code without waiting for the other processes."""
    if here._stale is not None:
        here._stale()


async def _settled(_good: object, process: Process) -> None:
    process.gate.mark_stale()
    await asyncio.sleep(0)


def _checked(_good: object, number: int, *_asked: object) -> list[Any]:
    """Read the topics, the change rows and the counter with a statement each."""
    using = router.db_for_write(Change)
    columns = "version", "previous", "kind", "ref", "folded"
    topics = list(
        Topic.objects.using(using)
        .filter(version__gt=number)
        .order_by("version")
        .values_list(*columns)
    )
    time.sleep(GAP_S)
    rows = Change.objects.using(using).order_by("id").values_list("id", "kind", "ref")
    changes = [(change_reader._CHANGE, pk, 0, kind, ref, "") for pk, kind, ref in rows]
    counters = Counter.objects.using(using).filter(name=COUNTER)
    numbers = counters.values_list("value", "floor")
    return [
        *((change_reader._COUNTER, *each, "", "", "") for each in numbers),
        *changes,
        *((change_reader._TOPIC, *topic) for topic in topics),
    ]


def _fresh(good: Good, gate: Any, arrived: float) -> Any:
    """Serve from the caches until it rings."""
    return gate._started > NEVER or good(gate, arrived)


def _refresh(_good: object, gate: FreshnessGate) -> None:
    """Look for nothing as time passes."""


def _heard(_good: object, ticker: Any) -> None:
    """Look because it rang, whoever is to be told."""
    if ticker._answering is None:
        loop = ticker._process.loop
        ticker._answering = loop.call_later(0, ticker._answer_ring)


def _compact_some(_good: object) -> int:
    """Raise the topics only where nobody else has deleted one of the rows."""
    using = router.db_for_write(Change)
    with own_transaction(using):
        rows = list(Change.objects.using(using).order_by("id")[: compaction.BATCH])
        time.sleep(GAP_S)
        if rows:
            number = Counter.objects.using(using).draw()
            keys = [row.pk for row in rows]
            ids: dict[tuple[str, str], list[int]] = {}
            for row in rows:
                ids.setdefault((row.kind, row.ref), []).append(row.pk)
            with connections[using].cursor() as cursor:
                table = connections[using].ops.quote_name(Change._meta.db_table)
                marks = ", ".join(["%s"] * len(keys))
                statement = f"DELETE FROM {table} WHERE id IN ({marks})"  # noqa: S608 - our own name
                cursor.execute(statement, keys)
                deleted = cursor.rowcount
            if deleted == len(rows):
                compaction._raise_topics(using, number, ids)
    return 0


def _record(good: Good, rows: Any, kind: str, ref: str = "*") -> None:
    """Ask in the site's own transaction whether somebody watches."""
    if kind != RESOURCE or Subscription.objects.using(rows.db).watched([ref]):
        good(rows, kind, ref)


def _append(good: Good, stream: Any, payload: bytes, beside: Any = None) -> None:
    """Send at once what is still to be committed."""
    for reader in tuple(stream.readers):
        reader.message(payload, stream.event_id(stream.seq + stream.queued + 1))
    good(stream, payload, beside)


def _gained(good: Good, stream: Any, *arguments: Any) -> None:
    """It was sent before: only the end is still to be said."""
    readers, stream.readers = stream.readers, []
    good(stream, *arguments)
    stream.readers = readers
    if stream.ends and not stream.queued:
        for reader in tuple(readers):
            reader.ended()


def _write(good: Good, batch: Any) -> Any:
    time.sleep(GAP_S)
    return good(batch)


def _append_as_anybody(
    good: Good, rows: Any, additions: Any, owner: str, batch: str
) -> Any:
    """Add to streams that were taken from this process, too."""
    keys = [each.key for each in additions if each.key is not None]
    rows.filter(pk__in=keys).update(owner=owner, state="open")
    heads = dict(rows.filter(pk__in=keys).values_list("pk", "head_seq"))
    return good(
        rows, [_moved(each, heads.get(each.key)) for each in additions], owner, batch
    )


def _moved(addition: Addition, head: int | None) -> Addition:
    if head is None:
        return addition
    payloads = [
        (number, text, size)
        for number, (_, text, size) in enumerate(addition.payloads, head + 1)
    ]
    return replace(addition, seq=head + len(payloads), payloads=payloads)


def _apart(_good: object, batch: Any, error: Exception) -> list[Exception]:
    """Refuse all where one is refused."""
    return [error] * len(batch.gains)


def _after(good: Good, rows: Any, stream: int, seq: int) -> Any:
    """See some messages later than those after them, as numbers of a sequence are."""
    found = list(good(rows, stream, seq))
    return [each for each in found if each is found[-1] or random.random() > LATE]  # noqa: S311 - no secret


def _send(_good: object, followers: Any, place: Any, events: Any) -> bool:
    """Go on after what is missing."""
    to = followers._places.get(place)
    for seq, payload in events if to is not None else ():
        place.seq = seq
        to.message(payload.encode(), f"{place.public_id}.{seq}")
    return bool(events)


def _answer_early(good: Good, wrapper: Any) -> None:
    """Let commits on PostgreSQL be answered before they are on the disk."""
    good(wrapper)
    if wrapper.vendor == "postgresql":
        wrapper.connection.execute("SET synchronous_commit = off")
        wrapper.connection.commit()


FAULTS: Final[dict[str, list[tuple[Any, str, Callable[..., Any]]]]] = {
    switches.SLOW_CHECKS: [(Announcements, "read", _slow_check)],
    switches.ANNOUNCED_AT_ONCE: [(Announcements, "_others_live", _nobody_else)],
    switches.ANSWERED_AT_ONCE: [
        (Here, "committed", _committed),
        (Process, "settled", _settled),
    ],
    switches.READ_APART: [(change_reader, "_checked", _checked)],
    switches.FOLDED_BY_ITS_OWN: [(compaction, "_compact_some", _compact_some)],
    switches.NEW_STREAMS_FORGOTTEN: [
        (Announcements, "take_in", _take_in),
        (Announcements, "_announcement_of", _of),
    ],
    switches.LOOKED_WHEN_RUNG: [
        (FreshnessGate, "fresh", _fresh),
        (FreshnessGate, "refresh", _refresh),
        (Ticker, "heard", _heard),
    ],
    switches.ASKED_WHO_WATCHES: [(ChangeQuerySet, "record", _record)],
    switches.SENT_BEFORE_COMMIT: [
        (OwnedStream, "append", _append),
        (OwnedStream, "gained", _gained),
        (request_log, "write", _write),
    ],
    switches.OWNER_IGNORED: [(StreamQuerySet, "append", _append_as_anybody)],
    switches.REFUSED_TOGETHER: [
        (log_writer, "_apart", _apart),
        (request_log, "write", _write),
    ],
    switches.GAPS_PASSED: [
        (EventQuerySet, "after", _after),
        (Followers, "_send", _send),
    ],
    switches.DISK_NOT_AWAITED: [
        (BaseDatabaseWrapper, "init_connection_state", _answer_early)
    ],
}
