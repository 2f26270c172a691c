"""What a database refuses is found among what it takes."""

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
    """Store things in the transaction that is open; return those refused, and why.

    What breaks is halved until it is one by itself.  Raises what is no refusal.
    """
    if not things:
        return []
    try:
        with transaction.atomic(using=using):
            store(things)
    except DatabaseError as error:
        # The way back to a savepoint is the proof that the database still answers.
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
