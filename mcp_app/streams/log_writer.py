"""Writes to the replay log: one transaction appends to many streams.

The rows of the streams are locked until the commit, so that the numbers follow the
order of commits; a rollback gives its numbers back.

A batch has a name, which is stored in each row that it touches.  If a commit fails, the
name shows whether it took effect, and the batch is written again only if it did not.  A
server may commit a statement late, after its connection was cut.  Rows are unique and a
stream ends only once, so the second attempt then finds the first.

Writing waits for the end of an outage, however long it lasts.  If the database answers
but a batch fails again, its parts are written one by one.  A part that fails `ALONE`
times is refused, and does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import uuid4

from django.db import Error as DatabaseError
from django.db import connections, router

from mcp_app.models.appends import Addition, NewStream, is_one_statement
from mcp_app.models.streams import Stream
from mcp_app.models.transactions import is_conflict, own_transaction
from mcp_app.pools.connections import TOGETHER, is_outage, may_be_refused

ATTEMPTS: Final = 20
"""How often a transaction is retried after a conflict with others."""
ALONE: Final = 8
"""How often one gain may fail while the database answers, before it is refused."""

Write: TypeAlias = Callable[[str], object]
"""Writes rows on the database of this alias, in the transaction of an append."""
Erase: TypeAlias = Callable[[str, int, int], object]
"""Removes secrets from rows.  Takes the alias of the database, the stream's key, and
the number of the message to which the rows belong."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Rows that belong to a message: they are written in its commit.

    `erase` is called soon after the stream has ended, perhaps more than once.
    """

    write: Write
    erase: Erase | None = None


class StreamFenced(Exception):
    """The stream is closed, or belongs to another process: nothing was added."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What one commit adds to a stream: messages, or a new state, or both.

    `new` is a row to insert, `key` that of an existing row; `seq` and `size` are what
    the stream had before.
    """

    new: NewStream | None
    key: int | None
    seq: int
    size: int
    payloads: Sequence[bytes]
    state: str
    beside: Sequence[Write] = ()

    def to_addition(self) -> Addition:
        """Return the messages to add, and the new values of the stream's row."""
        payloads = [
            (number, payload.decode(), len(payload))
            for number, payload in enumerate(self.payloads, self.seq + 1)
        ]
        return Addition(
            self.new,
            self.key,
            self.seq + len(payloads),
            self.size + sum(size for _, _, size in payloads),
            self.state,
            payloads,
        )


Result: TypeAlias = int | Exception
"""The key of the stream, or why nothing was added to it."""


@dataclass(slots=True)
class Batch:
    """The gains of one transaction; the name stays until the outcome is known."""

    gains: Sequence[Gain]
    owner: str
    name: str = field(default_factory=lambda: uuid4().hex)
    tried: bool = False
    """Whether a commit was started whose outcome is not known."""
    broke: bool = False
    """Whether a failed commit may still take effect: the server may not have noticed
    that the connection was cut."""
    results: list[Result] = field(default_factory=list)
    parts: Sequence[Batch] = ()
    """One batch for each gain, if the database refuses one of them."""
    refused: int = 0
    """How often it failed although the database could be reached."""


def write(batch: Batch) -> list[Result]:
    """Commit a batch; return a result for each gain; blocks.

    Raises Django's exception if the database cannot be reached.  The batch may be
    committed all the same, so writing it again checks that first.
    """
    if not batch.results:
        batch.results = _write_or_confirm(batch)
    return batch.results


def _write_or_confirm(batch: Batch) -> list[Result]:
    if batch.parts:
        return _write_parts(batch.parts)
    results = _committed(batch) if batch.tried else []
    return results or _write_with_retries(batch)


def _write_parts(parts: Sequence[Batch]) -> list[Result]:
    """Write the parts one by one; a part that fails by itself stops no other."""
    broken = None
    for part in parts:
        refused_before = part.refused
        try:
            write(part)
        except DatabaseError as error:
            if part.refused == refused_before or not is_outage(error):
                raise
            broken = error
    if broken is not None:
        raise broken
    return [part.results[0] for part in parts]


def _write_with_retries(batch: Batch) -> list[Result]:
    for _ in range(ATTEMPTS):
        try:
            results = _written(batch)
        except DatabaseError as error:
            if not is_outage(error):
                return _committed_late(batch) or _apart(batch, error)
            if not is_conflict(error):
                return _resolve_outcome(batch, error)
        else:
            if any(isinstance(result, StreamFenced) for result in results):
                return _committed_late(batch) or results
            return results
    return _written(batch)


def _committed_late(batch: Batch) -> list[Result]:
    """Return the results if a commit that failed has taken effect after the check."""
    return _committed(batch) if batch.broke else []


def _written(batch: Batch) -> list[Result]:
    using = router.db_for_write(Stream)
    beside = any(gain.beside for gain in batch.gains)
    if is_one_statement(connections[using]) and not beside:
        # Such a statement commits itself, so this comes first.
        batch.tried = True
        return _append_gains(using, batch)
    with own_transaction(using):
        results = _append_gains(using, batch)
        for gain, result in zip(batch.gains, results, strict=True):
            for write_row in gain.beside if isinstance(result, int) else ():
                write_row(using)
        batch.tried = True
    return results


def _append_gains(using: str, batch: Batch) -> list[Result]:
    additions = [gain.to_addition() for gain in batch.gains]
    keys = Stream.objects.using(using).append(additions, batch.owner, batch.name)
    return [StreamFenced() if key is None else key for key in keys]


def _resolve_outcome(batch: Batch, error: Exception) -> list[Result]:
    """Find out on a new connection whether a commit that failed took effect."""
    connections.close_all()
    if results := _committed(batch):
        return results
    # A refusal of the data may look like an outage, and must not stop the log for ever.
    batch.refused += may_be_refused(error)
    if len(batch.gains) == 1:
        if batch.refused >= ALONE:
            return [error]
    elif batch.refused >= TOGETHER:
        return _apart(batch, error)
    raise error


def _committed(batch: Batch) -> list[Result]:
    """Return the results of a batch if it is committed, else an empty list."""
    # A stream that another process has claimed since then counts as fenced.
    rows = Stream.objects.current()
    names = [gain.new.public_id for gain in batch.gains if gain.new is not None]
    keys = [gain.key for gain in batch.gains if gain.key is not None]
    batch_rows = rows.filter(last_batch=batch.name)
    new = dict(batch_rows.filter(public_id__in=names).values_list("public_id", "pk"))
    owned = set(batch_rows.filter(pk__in=keys).values_list("pk", flat=True))
    if not new and not owned:
        batch.tried, batch.broke = False, True
        return []
    return [
        new.get(gain.new.public_id, StreamFenced())
        if gain.new is not None
        else (gain.key if gain.key in owned else StreamFenced())
        for gain in batch.gains
    ]


def _apart(batch: Batch, error: Exception) -> list[Result]:
    """Write each gain by itself, so that a refused one does not stop the others."""
    if len(batch.gains) == 1:
        return [error]
    # The parts keep the name, in case the commit of the whole takes effect late.
    batch.parts = [
        Batch([gain], batch.owner, batch.name, broke=batch.broke)
        for gain in batch.gains
    ]
    return _write_or_confirm(batch)
