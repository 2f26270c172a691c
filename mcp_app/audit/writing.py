"""Writes a batch of calls: rows and counters in one transaction, exactly once.

Each batch has a number.  The transaction first raises the number in the row of its
process (`CallWriter`).  If a commit fails, the batch is written again; if the number is
there already, nothing is written.  An undecided transaction holds the lock of that row,
so the second attempt waits for it.  Counters are written in the order of their keys,
which avoids deadlocks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from itertools import chain
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER
from typing import TYPE_CHECKING, Any, Final

from django.db import Error as DatabaseError
from django.db import IntegrityError, connections, router

from mcp_app.audit.tallies import Subject, Tallies, period_start_ms, stored_apart
from mcp_app.interface.call_record import (
    COLUMNS,
    CallRecord,
    CallValues,
    CircumstancesValues,
)
from mcp_app.interface.log_secrets import hide_secrets
from mcp_app.interface.principal import CONSOLE
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.call_writing import Own, SharedValues, split_into_parts
from mcp_app.models.calls import MINUTE_S
from mcp_app.models.transactions import now_sql, own_transaction, persistently
from mcp_app.pools.connections import TOGETHER, is_outage, may_be_refused
from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


# -- records ---------------------------------------------------------------------------
# The calls of a process that wait for their transaction.

MAX_CLIENT_NAME_LENGTH = 128
"""How many characters of the name that a client gives itself are stored."""
MAX_ERROR_LENGTH = 500
SHORT_ARGUMENTS = 1_024
"""Up to this many bytes, arguments wait for a digest; longer ones get it at once."""
VALUES_BYTES = 4_096
"""The most bytes of arguments that are stored, if staff keep a tool's values."""

_FIELDS = len(CallRecord._fields)


class PendingCalls:
    """The calls that wait, in the order in which they came.

    All fields are in one list, and equal circumstances are stored once.  A tuple for
    each call would be one more object for the garbage collector, and it would keep the
    texts of its request in memory.
    """

    __slots__ = ("_circumstances", "_fields", "_last")

    def __init__(self) -> None:
        self._fields: list[Any] = []
        self._last: CircumstancesValues | None = None
        self._circumstances: dict[CircumstancesValues, CircumstancesValues] = {}

    def __len__(self) -> int:
        return len(self._fields) // _FIELDS

    def by_circumstances(self) -> dict[CircumstancesValues, list[list[Any]]]:
        """Return the calls by circumstances: one list for each other field."""
        keys, *fields = [self._fields[index::_FIELDS] for index in range(_FIELDS)]
        if keys and keys.count(keys[0]) == len(keys):
            return {keys[0]: fields}
        indexes: dict[CircumstancesValues, list[int]] = {}
        for index, each in enumerate(keys):
            indexes.setdefault(each, []).append(index)
        return {
            each: [[values[index] for index in rows] for values in fields]
            for each, rows in indexes.items()
        }

    def add(self, record: CallValues) -> None:
        circumstances = record[0]
        if circumstances is not self._last:
            self._last = self._circumstances.setdefault(circumstances, circumstances)
            if self._last is not circumstances:
                record = (self._last, *record[1:])
        self._fields += record

    def take_first(self, count: int) -> PendingCalls:
        removed = PendingCalls()
        end = count * _FIELDS
        removed._fields, self._fields = self._fields[:end], self._fields[end:]
        # Without this, the circumstances of removed calls would stay in memory.
        if len(self._circumstances) > len(self):
            self._circumstances = {each: each for each in self._fields[::_FIELDS]}
            self._last = None
        return removed


# -- storable --------------------------------------------------------------------------
# Make texts from outside storable in every database, and short enough.

MAX_TEXT_BYTES: Final = 500
"""The most bytes of a text that the call log stores, in UTF-8."""
BYTES_OF_CHARACTER: Final = 4


def storable_text(text: str) -> str:
    """Return a text that every database accepts: no NUL, no lone surrogate."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def cut_to_bytes(text: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return as much of a text as fits into `max_bytes`; no character is split."""
    if len(text) * BYTES_OF_CHARACTER <= max_bytes:
        return text
    return text.encode()[:max_bytes].decode("utf-8", "ignore")


# -- sqlite rows -----------------------------------------------------------------------
# Writes calls with equal values to SQLite: shared values are bound only once.
#
# SQLite's driver takes longer to bind the values of a row than SQLite takes to insert
# it.  The driver also releases the interpreter lock for each statement and waits for it
# again, so one statement has many rows.

_SHARED: Final = len(Call.SHARED)
_OWN: Final = len(Call.OWN)
"""How many columns equal calls share, and how many each has of its own."""
SIZES: Final = (500, 100, 20, 5)
"""How many rows a statement has; each number is a multiple of the next.

There are no larger ones, because to bind 500 rows blocks the loop for a millisecond.
"""
ALWAYS_POSSIBLE: Final = 999
"""Parameters that a statement may have, unless SQLite was compiled for fewer."""

Rows = Mapping[SharedValues, Sequence[Own]]


def insert_many(connection: BaseDatabaseWrapper, rows: Rows) -> Rows:
    """Insert the rows that fill a statement; return the others."""
    unwritten: dict[SharedValues, Sequence[Own]] = {}
    table = connection.ops.quote_name(Call._meta.db_table)
    with connection.cursor() as cursor:
        # Some drivers, such as that of SQLCipher, do not have this method.
        limit = getattr(connection.connection, "getlimit", None)
        max_values = limit(SQLITE_LIMIT_VARIABLE_NUMBER) if limit else ALWAYS_POSSIBLE
        sizes = [size for size in SIZES if _SHARED + size * _OWN <= max_values]
        for shared, own in rows.items():
            remaining = own
            for size, parts in split_into_parts(own, sizes):
                remaining = remaining[size * len(parts) :]
                values: list[tuple[Any, ...]] = [
                    (*shared, *chain.from_iterable(part)) for part in parts
                ]
                cursor.executemany(_statement(table, size), values)
            if remaining:
                unwritten[shared] = remaining
    return unwritten


@cache
def _statement(table: str, size: int) -> str:
    names = ", ".join((*Call.SHARED, *Call.OWN))
    shared = ", ".join(["?"] * _SHARED)
    # SQLite gives these names to the columns of VALUES.
    own = ", ".join([f"column{number}" for number in range(1, _OWN + 1)])
    values = ", ".join([f"({', '.join(['?'] * _OWN)})"] * size)
    insert = f"INSERT INTO {table} ({names})"
    return f"{insert} SELECT {shared}, {own} FROM (VALUES {values})"  # noqa: S608 - our own names


# -- writing ---------------------------------------------------------------------------

ATTEMPTS: Final = 20
"""How often a transaction is retried after a conflict with others."""

DIGEST_OF_NAME: Final = 32
_LENGTHS: Final = [
    getattr(Call._meta.get_field(name), "max_length", None) for name in Call.SHARED
]
"""The lengths of the shared columns; None for columns without a limit."""
_NAME: Final = Call.SHARED.index("name")
_PRINCIPAL: Final = Call.SHARED.index("principal")
MAX_NAME_LENGTH: Final = int(_LENGTHS[_NAME] or 0)


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """How many rows and counters of a batch the database has refused."""

    rows: int = 0
    counters: int = 0
    reason: Exception | None = None


@dataclass(slots=True)
class CallBatch:
    """The calls of one transaction; `tallies` counts the calls that have no row."""

    writer: str
    number: int
    records: PendingCalls
    digest: Callable[[bytes], str]
    tallies: Tallies = field(default_factory=Tallies)
    broke: int = 0
    """Rises with each failure that may mean that the database refuses some rows."""
    refused: RefusedBatch = RefusedBatch()


def write(batch: CallBatch) -> int:
    """Commit a batch, unless it was committed already; blocks.

    Returns the database's clock minus the monotonic clock, in milliseconds.  Raises
    Django's exception if the database cannot be reached.  Even then the batch may have
    been committed, so the next attempt checks that first.
    """
    try:
        return _write_persistently(batch)
    except DatabaseError as error:
        away, was_apart = is_outage(error), batch.broke >= TOGETHER
        batch.broke += may_be_refused(error) if away else TOGETHER
        if away or was_apart:
            raise
    return _write_persistently(batch)


def _write_persistently(batch: CallBatch) -> int:
    # The very first batch may fail because another attempt has committed it.
    return persistently(partial(_write_once, batch), ATTEMPTS, (IntegrityError,))


def _write_once(batch: CallBatch) -> int:
    using = router.db_for_write(Call)
    with own_transaction(using):
        clock_ms = _clock_offset_ms(using)
        if CallWriter.objects.using(using).claim(batch.writer, batch.number):
            rows, tallies = _rows_and_tallies(batch, clock_ms)
            store = _store_apart if batch.broke >= TOGETHER else _store_together
            batch.refused = store(using, rows, tallies)
    return clock_ms


def _store_together(using: str, rows: Rows, tallies: Tallies) -> RefusedBatch:
    unwritten = rows
    if (connection := connections[using]).vendor == "sqlite":
        unwritten = insert_many(connection, rows)
    if unwritten:
        Call.objects.using(using).insert(unwritten)
    CallStatistic.objects.using(using).raise_by(tallies.sorted_rows())
    return RefusedBatch()


def _store_apart(using: str, rows: Rows, tallies: Tallies) -> RefusedBatch:
    """Store what the database accepts; a call with a refused row is still counted."""
    insert = Call.objects.using(using).insert
    raise_by = CallStatistic.objects.using(using).raise_by
    pairs = [(shared, own) for shared, calls in rows.items() for own in calls]
    dropped = stored_apart(using, lambda part: insert(_group_by_shared(part)), pairs)
    for (shared, own), _ in dropped:
        if is_counted(shared):
            minute_ms = period_start_ms(own[0], MINUTE_S)
            tallies.count_dropped(minute_ms, counted_subject(shared))
    counters = stored_apart(using, raise_by, tallies.sorted_rows())
    reasons = [reason for _, reason in (*dropped, *counters)]
    return RefusedBatch(len(dropped), len(counters), reasons[-1] if reasons else None)


def _group_by_shared(
    rows: Sequence[tuple[SharedValues, Own]],
) -> dict[SharedValues, list[Own]]:
    groups: dict[SharedValues, list[Own]] = {}
    for shared, own in rows:
        groups.setdefault(shared, []).append(own)
    return groups


def _clock_offset_ms(using: str) -> int:
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now_sql(connection)}")
        return int(cursor.fetchone()[0]) - int(time.monotonic() * 1_000)


def _rows_and_tallies(
    batch: CallBatch, clock_ms: int
) -> tuple[dict[SharedValues, list[Own]], Tallies]:
    # The same call is often repeated, so digests are cached.
    digest = cache(batch.digest)
    rows: dict[SharedValues, list[Own]] = {}
    tallies = Tallies()
    tallies.merge_tallies(batch.tallies)
    for circumstances, fields in batch.records.by_circumstances().items():
        shared = _fitting_values(circumstances)
        # The last of the circumstances, `hidden`, has no column.
        own = _own_columns(fields, clock_ms, digest, circumstances[-1])
        rows.setdefault(shared, []).extend(zip(*own, strict=True))
        if is_counted(shared):
            for minute_ms, times_us in _times_by_minute(own[0], own[1]):
                tallies.add_calls(minute_ms, counted_subject(shared), times_us)
    return rows, tallies


def _own_columns(
    fields: Sequence[list[Any]],
    clock_ms: int,
    digest: Callable[[bytes], str],
    hidden: Collection[str] | None,
) -> tuple[list[Any], ...]:
    """Return the calls' own columns; one call at a time would take twice as long."""
    began, took, sizes, texts, lengths, digests, endings = fields
    # Long arguments come without a text, but with their length and digest.
    columns: dict[str, list[Any]] = {
        "time_ms": [int(each * 1_000) + clock_ms for each in began],
        "took_us": [int(each * 1_000_000) for each in took],
        "size": sizes,
        "arguments_size": [
            len(text) or length for text, length in zip(texts, lengths, strict=True)
        ],
        "arguments_digest": [
            digest(text) if text else known_digest
            for text, known_digest in zip(texts, digests, strict=True)
        ],
        "arguments": [""] * len(texts)
        if hidden is None
        else [values_text(text, hidden) for text in texts],
        **{name: [getattr(ending, name) for ending in endings] for name in COLUMNS},
    }
    columns["error"] = [
        error and cut_to_bytes(storable_text(error)[:MAX_ERROR_LENGTH])
        for error in columns["error"]
    ]
    return tuple(columns[name] for name in Call.OWN)


def values_text(text: bytes, hidden: Collection[str]) -> str:
    """Return arguments without secrets as JSON, "" if there are none or too many."""
    values = jsonrpc.write(hide_secrets(json.loads(text), hidden)) if text else b""
    return values.decode() if len(values) <= VALUES_BYTES else ""


def _times_by_minute(
    times_ms: Sequence[int], took_us: Sequence[int]
) -> Iterable[tuple[int, list[int]]]:
    first, last = (period_start_ms(of(times_ms), MINUTE_S) for of in (min, max))
    if first == last:
        return [(first, [*took_us])]
    minutes: dict[int, list[int]] = {}
    for time_ms, each in zip(times_ms, took_us, strict=True):
        minutes.setdefault(period_start_ms(time_ms, MINUTE_S), []).append(each)
    return minutes.items()


def _fitting_values(circumstances: CircumstancesValues) -> SharedValues:
    """Return values that fit the columns; names that are too long stay distinct."""
    values: list[Any] = [
        cut_to_bytes(storable_text(value)[:length]) if isinstance(value, str) else value
        for value, length in zip(circumstances[:-1], _LENGTHS, strict=True)
    ]
    values[_NAME] = stored_name(circumstances[_NAME])
    return tuple(values)


def stored_name(identity: object) -> str:
    """Return the stored name of a definition, cut if it is too long for the column."""
    name = storable_text(str(identity))
    encoded = name.encode()
    if len(name) <= MAX_NAME_LENGTH and len(encoded) <= MAX_TEXT_BYTES:
        return name
    digest = sha256(encoded).hexdigest()[:DIGEST_OF_NAME]
    begin = name[: MAX_NAME_LENGTH - DIGEST_OF_NAME]
    return cut_to_bytes(begin, MAX_TEXT_BYTES - DIGEST_OF_NAME) + digest


def may_be_cut(name: str) -> bool:
    """Return whether a stored name may stand for a longer one."""
    shortest = MAX_TEXT_BYTES - BYTES_OF_CHARACTER
    return len(name) >= MAX_NAME_LENGTH or len(name.encode()) > shortest


def is_counted(shared: Sequence[str | int]) -> bool:
    return shared[_PRINCIPAL] != CONSOLE


def counted_subject(shared: Sequence[str | int]) -> Subject:
    server, kind, name, _, outcome, *_ = shared
    return str(server), str(kind), str(name), str(outcome)
