"""`ctx.once`: a step of a round trip, run once and remembered.

Its row is inserted first, in the transaction of the step: a second caller waits for the
commit of the first one and reads its result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from django.db import IntegrityError, OperationalError, connections, router, transaction

from mcp_app.models import Once
from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.fields import digest
from mcp_app.models.transactions import is_conflict
from mcp_app.protocol import jsonrpc

Value = TypeVar("Value")

ATTEMPTS = 50


class _Rollback(Exception):
    """A deadlock rolled the transaction back before the step began."""


class StoredSteps:
    """Stores the results of steps."""

    def once(self, round_trip: str, key: str, function: Callable[[], Value]) -> Value:
        """Run the function, or return its earlier result, as JSON; blocks.

        If the function raises, its row is rolled back: the step may run again.
        """
        named = {"round_trip": digest(round_trip), "key": digest(key)}
        alias = router.db_for_write(Once)
        for _ in range(ATTEMPTS):
            with suppress(_Rollback):
                return self._once(alias, named, function)
        return self._once(alias, named, function)

    def _once(
        self, alias: str, named: dict[str, str], function: Callable[[], Value]
    ) -> Value:
        with transaction.atomic(using=alias):
            if not _claimed(alias, named):
                return _stored(alias, named)
            encoded = jsonrpc.write(function())
            Once.objects.using(alias).filter(**named).update(result=encoded.decode())
        # The same value as later callers get.
        return jsonrpc.read(encoded)  # type: ignore[return-value]


def _claimed(alias: str, named: dict[str, str]) -> bool:
    row = Once(**named, result="null", created_ms=NowMilliseconds())
    # In an outer transaction, a rollback would lose more than the step.
    outermost = not connections[alias].savepoint_ids
    try:
        with transaction.atomic(using=alias):
            row.save(using=alias, force_insert=True)
    except IntegrityError:
        return False
    except OperationalError as error:
        if outermost and is_conflict(error):
            raise _Rollback from error
        raise
    return True


def _stored(alias: str, named: dict[str, str]) -> Value:  # type: ignore[type-var]
    # A locking read sees the other transaction's commit under every isolation level.
    row = Once.objects.using(alias).select_for_update().get(**named)
    return jsonrpc.read(row.result.encode())  # type: ignore[return-value]
