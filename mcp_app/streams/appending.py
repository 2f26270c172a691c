"""Writing to the log: what many streams gain is one transaction.

The rows of the streams are locked until the commit, so that the order of numbers is the
order of commits; a rollback gives its numbers back.
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
from mcp_app.pools.outages import TOGETHER, is_outage, may_be_refused

ATTEMPTS: Final = 20
"""How often a transaction that gave way to others is begun again."""
ALONE: Final = 8
"""So often one gain may break where the database answers: then it is refused."""

Beside: TypeAlias = Callable[[str], object]
"""Writes rows on the database of this alias, in the transaction of an append."""


class Fenced(Exception):
    """The stream is closed, or belongs to another process: nothing was added."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What a stream gains with one commit: messages, or a new state, or both.

    `new` is the row that is still to be made, `key` that of one that is there; `seq`
    and `size` are what the stream had before.
    """

    new: NewStream | None
    key: int | None
    seq: int
    size: int
    payloads: Sequence[bytes]
    state: str
    beside: Sequence[Beside] = ()

    def addition(self) -> Addition:
        """Return what it adds, and what the stream's row says afterwards."""
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
"""The key of the stream, or why it has gained nothing."""


@dataclass(slots=True)
class Batch:
    """What is to be committed together; it keeps its name until that is decided."""

    gains: Sequence[Gain]
    owner: str
    name: str = field(default_factory=lambda: uuid4().hex)
    tried: bool = False
    """Whether a commit was begun whose outcome is not known."""
    broke: bool = False
    """Whether one that broke may still come: a server need not know that we left."""
    results: list[Result] = field(default_factory=list)
    parts: Sequence[Batch] = ()
    """A batch for each gain, where one of them is refused by the database."""
    refused: int = 0
    """How often it broke although the database could be reached."""


def write(batch: Batch) -> list[Result]:
    """Commit a batch; return a result for each gain; blocks.

    Raises what Django raises where the database cannot be reached: it may be committed
    all the same, which writing it again finds out first.
    """
    if not batch.results:
        batch.results = _results(batch)
    return batch.results


def _results(batch: Batch) -> list[Result]:
    if batch.parts:
        return _of_parts(batch.parts)
    found = _committed(batch) if batch.tried else []
    return found or _attempted(batch)


def _of_parts(parts: Sequence[Batch]) -> list[Result]:
    """Write one after another; the one that breaks by itself stops no other."""
    broken = None
    for part in parts:
        refused = part.refused
        try:
            write(part)
        except DatabaseError as error:
            if part.refused == refused or not is_outage(error):
                raise
            broken = error
    if broken is not None:
        raise broken
    return [part.results[0] for part in parts]


def _attempted(batch: Batch) -> list[Result]:
    for _ in range(ATTEMPTS):
        try:
            results = _written(batch)
        except DatabaseError as error:
            if not is_outage(error):
                return _committed_late(batch) or _apart(batch, error)
            if not is_conflict(error):
                return _decided(batch, error)
        else:
            if any(isinstance(each, Fenced) for each in results):
                return _committed_late(batch) or results
            return results
    return _written(batch)


def _committed_late(batch: Batch) -> list[Result]:
    """Return the results of a commit that broke, and was one after it was asked for.

    What is new in it is unique, and what it has ended is closed: it comes once.
    """
    return _committed(batch) if batch.broke else []


def _written(batch: Batch) -> list[Result]:
    using = router.db_for_write(Stream)
    beside = any(gain.beside for gain in batch.gains)
    if is_one_statement(connections[using]) and not beside:
        batch.tried = True
        return _appended(using, batch)
    with own_transaction(using):
        results = _appended(using, batch)
        for gain, result in zip(batch.gains, results, strict=True):
            for write_row in gain.beside if isinstance(result, int) else ():
                write_row(using)
        batch.tried = True
    return results


def _appended(using: str, batch: Batch) -> list[Result]:
    additions = [gain.addition() for gain in batch.gains]
    streams = Stream.objects.using(using)
    keys = streams.append(additions, batch.owner, batch.name)
    return [Fenced() if key is None else key for key in keys]


def _decided(batch: Batch, error: Exception) -> list[Result]:
    """Find out on a new connection whether a commit that broke was one.

    What the database refuses may look like an outage: it must not stop the log for
    ever.
    """
    connections.close_all()
    if found := _committed(batch):
        return found
    batch.refused += may_be_refused(error)
    if len(batch.gains) == 1:
        if batch.refused >= ALONE:
            return [error]
    elif batch.refused >= TOGETHER:
        return _apart(batch, error)
    raise error


def _committed(batch: Batch) -> list[Result]:
    """Return the results of a batch that is committed, nothing for one that is not.

    A stream that another process has taken since counts as fenced.
    """
    rows = Stream.objects.current()
    names = [gain.new.public_id for gain in batch.gains if gain.new is not None]
    keys = [gain.key for gain in batch.gains if gain.key is not None]
    own = rows.filter(last_batch=batch.name)
    new = dict(own.filter(public_id__in=names).values_list("public_id", "pk"))
    held = set(own.filter(pk__in=keys).values_list("pk", flat=True))
    if not new and not held:
        batch.tried, batch.broke = False, True
        return []
    return [
        new.get(gain.new.public_id, Fenced())
        if gain.new is not None
        else (gain.key if gain.key in held else Fenced())
        for gain in batch.gains
    ]


def _apart(batch: Batch, error: Exception) -> list[Result]:
    """Write each gain by itself: the one that is refused must not stop the others."""
    if len(batch.gains) == 1:
        return [error]
    # By this name they are known, too, if a commit of all of them comes late.
    batch.parts = [
        Batch([gain], batch.owner, batch.name, broke=batch.broke)
        for gain in batch.gains
    ]
    return _results(batch)
