"""Rows that have outlived their use: counted, and removed a portion at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connections, models, router

from mcp_app.models.transactions import own_transaction

PORTION = 500
"""Rows that one transaction removes: nobody waits long for it."""


@dataclass(frozen=True, slots=True)
class Expired:
    """Rows of one kind, named for people: "sessions".

    `count` tells how many there are; `remove` deletes a portion of them and tells how
    many went, 0 when nothing is left.  Both block.
    """

    what: str
    count: Callable[[], int]
    remove: Callable[[], int]


def expired(what: str, rows: models.QuerySet[Any]) -> Expired:
    """Return rows that go with what is theirs, the first of their order before."""
    return Expired(what, rows.count, partial(_remove, rows))


def _remove(rows: models.QuerySet[Any]) -> int:
    """Delete some rows; those that somebody else is deleting are theirs."""
    using = router.db_for_write(rows.model)
    skip = connections[using].features.has_select_for_update_skip_locked
    with own_transaction(using):
        claimed = rows.using(using).select_for_update(skip_locked=skip)
        keys = list(claimed.values_list("pk", flat=True)[:PORTION])
        if keys:
            rows.model._default_manager.using(using).filter(pk__in=keys).delete()
    return len(keys)
