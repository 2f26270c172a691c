"""Finds which rows of a batch the database refuses, and stores the others.

An example is a client's name that a table of latin1 cannot store; MySQL and MariaDB
report that as if they were away.  A batch that failed twice, or once with an error that
is no outage, is written again with savepoints and halved until the refused rows are
alone.  Their calls are counted as dropped.  Temporary problems (a lock, a full disk)
are waited for instead (`pools.outages`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.db import Error as DatabaseError
from django.db import transaction

from mcp_app.models.transactions import is_conflict
from mcp_app.pools.outages import may_be_refused

Thing = TypeVar("Thing")


def stored_apart(
    using: str, store: Callable[[Sequence[Thing]], object], things: Sequence[Thing]
) -> list[tuple[Thing, DatabaseError]]:
    """Store things in the open transaction; return those that were refused, and why.

    What fails is halved until it is a single thing.  Raises errors that are no refusal.
    """
    if not things:
        return []
    try:
        with transaction.atomic(using=using):
            store(things)
    except DatabaseError as error:
        # Going back to the savepoint has shown that the database still answers.
        lost = transaction.get_rollback(using)
        if lost or is_conflict(error) or not may_be_refused(error):
            raise
        if len(things) == 1:
            return [(things[0], error)]
    else:
        return []
    middle = len(things) // 2
    return [
        refused
        for half in (things[:middle], things[middle:])
        for refused in stored_apart(using, store, half)
    ]
