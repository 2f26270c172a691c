"""Writes a batch of calls: rows and counters in one transaction, exactly once.

The transaction first raises a number in the row of its process (`CallWriter`).  If a
commit fails, the batch is written again, and does nothing if the number is there
already.  An undecided transaction holds the lock of that row, so the second attempt
waits for it.  Counters are written in the order of their keys, which avoids deadlocks
between processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import IntegrityError, connections, router

from mcp_app.audit.records import LONGEST_ERROR, PendingCalls
from mcp_app.audit.refusals import stored_apart
from mcp_app.audit.sqlite_rows import insert_many
from mcp_app.audit.storable import BYTES_OF_CHARACTER, LONGEST, cut, storable
from mcp_app.audit.tallies import Subject, Tallies, begin_ms
from mcp_app.interface.call_record import CircumstancesValues
from mcp_app.interface.principal import CONSOLE
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.call_statements import Own, SharedValues
from mcp_app.models.calls import MINUTE_S
from mcp_app.models.clock import now_sql
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.pools.outages import TOGETHER, is_outage, may_be_refused

ATTEMPTS: Final = 20
"""How often a transaction is retried after a conflict with others."""

DIGEST_OF_NAME: Final = 32
_LENGTHS: Final = [
    getattr(Call._meta.get_field(name), "max_length", None) for name in Call.SHARED
]
_NAME: Final = Call.SHARED.index("name")
_PRINCIPAL: Final = Call.SHARED.index("principal")
LONGEST_NAME: Final = int(_LENGTHS[_NAME] or 0)


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """How many rows and how many counters of a batch the database has refused."""

    rows: int = 0
    counters: int = 0
    reason: Exception | None = None


@dataclass(slots=True)
class Batch:
    """The calls of one transaction; `number` goes up with each batch of a writer.

    `tallies` has the counts of calls that get no row.
    """

    writer: str
    number: int
    records: PendingCalls
    digest: Callable[[bytes], str]
    tallies: Tallies = field(default_factory=Tallies)
    broke: int = 0
    """How often the database took none of it, perhaps because it refuses some of it."""
    refused: RefusedBatch = RefusedBatch()
    """What the database has refused of a committed batch."""


def write(batch: Batch) -> int:
    """Commit a batch, unless that was done already; blocks.

    Returns the database's clock less the monotonic one, in milliseconds.  Raises
    Django's exception if the database cannot be reached.  The batch may be committed
    all the same, so writing it again checks that first.
    """
    try:
        return _written(batch)
    except DatabaseError as error:
        away, apart = is_outage(error), batch.broke >= TOGETHER
        batch.broke += may_be_refused(error) if away else TOGETHER
        if away or apart:
            raise
    return _written(batch)


def _written(batch: Batch) -> int:
    # The very first batch may fail because it has been committed meanwhile.
    return persistently(partial(_attempted, batch), ATTEMPTS, (IntegrityError,))


def _attempted(batch: Batch) -> int:
    using = router.db_for_write(Call)
    with own_transaction(using):
        clock_ms = _clock(using)
        writers = CallWriter.objects.using(using)
        if writers.claim(batch.writer, batch.number):
            rows, tallies = _reckoned(batch, clock_ms)
            store = _store_apart if batch.broke >= TOGETHER else _store
            batch.refused = store(using, rows, tallies)
    return clock_ms


def _store(
    using: str, rows: Mapping[SharedValues, Sequence[Own]], tallies: Tallies
) -> RefusedBatch:
    left: Mapping[SharedValues, Sequence[Own]] = rows
    if (connection := connections[using]).vendor == "sqlite":
        left = insert_many(connection, rows)
    if left:
        Call.objects.using(using).insert(left)
    CallStatistic.objects.using(using).raise_by(tallies.rows())
    return RefusedBatch()


def _store_apart(
    using: str, rows: Mapping[SharedValues, Sequence[Own]], tallies: Tallies
) -> RefusedBatch:
    """Store what the database takes; a call whose row it refuses is still counted."""
    insert = Call.objects.using(using).insert
    raise_by = CallStatistic.objects.using(using).raise_by
    each = [(shared, own) for shared, some in rows.items() for own in some]
    dropped = stored_apart(using, lambda some: insert(_grouped(some)), each)
    for (shared, own), _ in dropped:
        if not is_counted(shared):
            continue
        tallies.drop(begin_ms(own[0], MINUTE_S), subject(shared))
    lost = stored_apart(using, raise_by, tallies.rows())
    reasons = [reason for _, reason in (*dropped, *lost)]
    return RefusedBatch(len(dropped), len(lost), reasons[-1] if reasons else None)


def _grouped(rows: Sequence[tuple[SharedValues, Own]]) -> dict[SharedValues, list[Own]]:
    groups: dict[SharedValues, list[Own]] = {}
    for shared, own in rows:
        groups.setdefault(shared, []).append(own)
    return groups


def _clock(using: str) -> int:
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now_sql(connection)}")
        return int(cursor.fetchone()[0]) - _monotonic_ms()


def _monotonic_ms() -> int:
    return int(time.monotonic() * 1_000)


def _reckoned(
    batch: Batch, clock_ms: int
) -> tuple[dict[SharedValues, list[Own]], Tallies]:
    """Return the rows of the calls, and all counters."""
    # The same call is often made again.
    digest = cache(batch.digest)
    rows: dict[SharedValues, list[Own]] = {}
    tallies = Tallies()
    tallies.merge(batch.tallies)
    for circumstances, fields in batch.records.by_circumstances().items():
        shared = _bounded(circumstances)
        own = _own(fields, clock_ms, digest)
        rows.setdefault(shared, []).extend(zip(*own, strict=True))
        if not is_counted(shared):
            continue
        for minute_ms, times_us in _minutes(own[0], own[1]):
            tallies.add(minute_ms, subject(shared), times_us)
    return rows, tallies


def _own(
    fields: Sequence[list[Any]], clock_ms: int, digest: Callable[[bytes], str]
) -> tuple[list[int], list[int], list[int], list[int], list[str], list[str], list[str]]:
    """Return what is the calls' own: a list for each column.

    It goes field by field: a step for each call takes twice as long.
    """
    began, took, sizes, texts, lengths, digests, failures, errors = fields
    return (
        [int(each * 1_000) + clock_ms for each in began],
        [int(each * 1_000_000) for each in took],
        sizes,
        [len(text) or length for text, length in zip(texts, lengths, strict=True)],
        [digest(text) if text else of for text, of in zip(texts, digests, strict=True)],
        failures,
        [error and cut(storable(error)[:LONGEST_ERROR]) for error in errors],
    )


def _minutes(
    times_ms: Sequence[int], took_us: Sequence[int]
) -> Iterable[tuple[int, list[int]]]:
    """Return the durations by the minute in which the calls began."""
    first, last = (begin_ms(end(times_ms), MINUTE_S) for end in (min, max))
    if first == last:
        return [(first, [*took_us])]
    minutes: dict[int, list[int]] = {}
    for time_ms, each in zip(times_ms, took_us, strict=True):
        minutes.setdefault(begin_ms(time_ms, MINUTE_S), []).append(each)
    return minutes.items()


def _bounded(circumstances: CircumstancesValues) -> SharedValues:
    """Return values that fit the columns; names that are too long stay distinct."""
    values: list[Any] = [
        cut(storable(value)[:length]) if isinstance(value, str) else value
        for value, length in zip(circumstances, _LENGTHS, strict=True)
    ]
    values[_NAME] = stored_name(circumstances[_NAME])
    return tuple(values)


def stored_name(identity: object) -> str:
    """Return the stored name of a definition; a URI may be too long for the column."""
    name = storable(str(identity))
    encoded = name.encode()
    if len(name) <= LONGEST_NAME and len(encoded) <= LONGEST:
        return name
    digest = sha256(encoded).hexdigest()[:DIGEST_OF_NAME]
    begin = name[: LONGEST_NAME - DIGEST_OF_NAME]
    return cut(begin, LONGEST - DIGEST_OF_NAME) + digest


def is_cut(name: str) -> bool:
    """Whether a stored name may be shorter than what it stands for."""
    shortest = LONGEST - BYTES_OF_CHARACTER
    return len(name) >= LONGEST_NAME or len(name.encode()) > shortest


def is_counted(shared: Sequence[str | int]) -> bool:
    """Return whether a call is one of clients: trials of staff are not counted."""
    return shared[_PRINCIPAL] != CONSOLE


def subject(shared: Sequence[str | int]) -> Subject:
    """Return the subject under which a call is counted."""
    server, kind, name, _, outcome, *_ = shared
    return str(server), str(kind), str(name), str(outcome)
