"""Writing a batch of calls: rows and counters in one transaction, exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import IntegrityError, connections, router

from mcp_app.audit.records import LONGEST_ERROR, CallRecord, Circumstances, Gathered
from mcp_app.audit.refusals import stored_apart
from mcp_app.audit.storable import storable
from mcp_app.audit.tallies import Subject, Tallies, begin_ms
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.call_statements import Own, Shared
from mcp_app.models.calls import MINUTE_S
from mcp_app.models.clock import now_sql
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.pools.outages import TOGETHER, is_outage, may_be_refused

ATTEMPTS: Final = 20
"""How often a transaction that gave way to others is begun again."""

DIGEST_OF_NAME: Final = 32
_LENGTHS: Final = [
    getattr(Call._meta.get_field(name), "max_length", None) for name in Call.SHARED
]
_NAME: Final = Call.SHARED.index("name")
LONGEST_NAME: Final = int(_LENGTHS[_NAME] or 0)


@dataclass(frozen=True, slots=True)
class Refused:
    """How many rows, and how many counters, of a batch the database has refused."""

    rows: int = 0
    counters: int = 0
    reason: Exception | None = None


@dataclass(slots=True)
class Batch:
    """What is written together; `number` goes up with each batch of a writer.

    `tallies` has counted calls that get no row.
    """

    writer: str
    number: int
    records: Gathered
    digest: Callable[[bytes], str]
    tallies: Tallies = field(default_factory=Tallies)
    broke: int = 0
    """How often the database took none of it, and may have refused some."""
    refused: Refused = Refused()
    """What it has refused of what is committed."""


def write(batch: Batch) -> int:
    """Commit a batch unless it is committed; blocks.

    Returns the database's clock less the monotonic one, in milliseconds.  Raises what
    Django raises where the database cannot be reached; the batch may be committed all
    the same, which writing it again finds out first.
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
    # The very first batch may break because it has been committed meanwhile.
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
    using: str, rows: Mapping[Shared, Sequence[Own]], tallies: Tallies
) -> Refused:
    if rows:
        Call.objects.using(using).insert(rows)
    CallStatistic.objects.using(using).raise_by(tallies.rows())
    return Refused()


def _store_apart(
    using: str, rows: Mapping[Shared, Sequence[Own]], tallies: Tallies
) -> Refused:
    """Store what the database takes; a call whose row it refuses stays counted."""
    insert = Call.objects.using(using).insert
    raise_by = CallStatistic.objects.using(using).raise_by
    each = [(shared, own) for shared, some in rows.items() for own in some]
    dropped = stored_apart(using, lambda some: insert(_grouped(some)), each)
    for (shared, own), _ in dropped:
        tallies.drop(begin_ms(own[0], MINUTE_S), subject(shared))
    lost = stored_apart(using, raise_by, tallies.rows())
    reasons = [reason for _, reason in (*dropped, *lost)]
    return Refused(len(dropped), len(lost), reasons[-1] if reasons else None)


def _grouped(rows: Sequence[tuple[Shared, Own]]) -> dict[Shared, list[Own]]:
    groups: dict[Shared, list[Own]] = {}
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


def _reckoned(batch: Batch, clock_ms: int) -> tuple[dict[Shared, list[Own]], Tallies]:
    """Return the rows of the calls, and all counters."""
    groups: dict[Circumstances, list[CallRecord]] = {}
    for record in batch.records:
        groups.setdefault(record[0], []).append(record)
    # The same call is often made again.
    digest = cache(batch.digest)
    rows: dict[Shared, list[Own]] = {}
    tallies = Tallies()
    tallies.merge(batch.tallies)
    for circumstances, records in groups.items():
        shared = _bounded(circumstances)
        own = [_own(record, clock_ms, digest) for record in records]
        rows.setdefault(shared, []).extend(own)
        for minute_ms, times_us in _minutes(own):
            tallies.add(minute_ms, subject(shared), times_us)
    return rows, tallies


def _own(record: CallRecord, clock_ms: int, digest: Callable[[bytes], str]) -> Own:
    _, began, took, size, arguments, length, known, failure, error = record
    return (
        int(began * 1_000) + clock_ms,
        int(took * 1_000_000),
        size,
        len(arguments) or length,
        digest(arguments) if arguments else known,
        failure,
        error and storable(error)[:LONGEST_ERROR],
    )


def _minutes(own: Sequence[Own]) -> Iterable[tuple[int, list[int]]]:
    """Return what calls took, in microseconds, by the minute in which they began."""
    minutes: dict[int, list[int]] = {}
    for row in own:
        minutes.setdefault(begin_ms(row[0], MINUTE_S), []).append(row[1])
    return minutes.items()


def _bounded(circumstances: Circumstances) -> Shared:
    """Return what fits the columns; names that are too long stay different."""
    values: list[Any] = [
        storable(value)[:length] if isinstance(value, str) else value
        for value, length in zip(circumstances, _LENGTHS, strict=True)
    ]
    values[_NAME] = stored_name(circumstances[_NAME])
    return tuple(values)


def stored_name(identity: object) -> str:
    """Return what the audit calls a definition: URIs may be too long for it."""
    name = storable(str(identity))
    if len(name) <= LONGEST_NAME:
        return name
    digest = sha256(name.encode()).hexdigest()[:DIGEST_OF_NAME]
    return name[: LONGEST_NAME - DIGEST_OF_NAME] + digest


def subject(shared: Sequence[str | int]) -> Subject:
    """Return what a call is counted as."""
    server, kind, name, _, outcome, *_ = shared
    return str(server), str(kind), str(name), str(outcome)
