"""`ctx.once`: a step of a round trip, run once and remembered.

Its row is inserted first, in the transaction of the step: a second caller waits for
the commit of the first one and reads its result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from django.db import IntegrityError, OperationalError, connections, router, transaction

from mcp_app.models import Once
from mcp_app.models.fields import digest
from mcp_app.models.transactions import NowMilliseconds, is_conflict
from mcp_app.protocol import jsonrpc

StepValue = TypeVar("StepValue")

ATTEMPTS = 50


class _Rollback(Exception):
    """A deadlock rolled the transaction back before the step began."""


class StoredSteps:
    """Stores the results of steps."""

    def run_step_once(
        self, round_trip: str, key: str, function: Callable[[], StepValue]
    ) -> StepValue:
        """Run the function, or return its earlier result, as JSON; blocks.

        If the function raises, its row is rolled back: the step may run again.
        """
        columns = {"round_trip": digest(round_trip), "key": digest(key)}
        alias = router.db_for_write(Once)
        for _ in range(ATTEMPTS):
            with suppress(_Rollback):
                return self._run_in_transaction(alias, columns, function)
        return self._run_in_transaction(alias, columns, function)

    def _run_in_transaction(
        self, alias: str, columns: dict[str, str], function: Callable[[], StepValue]
    ) -> StepValue:
        with transaction.atomic(using=alias):
            steps = Once.objects.using(alias)
            if _claim_step(alias, columns):
                encoded = jsonrpc.write(function())
                steps.filter(**columns).update(result=encoded.decode())
            else:
                # A locking read sees the commit of the other transaction under every
                # isolation level.
                encoded = steps.select_for_update().get(**columns).result.encode()
        # Later callers get the value from JSON, so the first one does, too.
        return jsonrpc.read(encoded)  # type: ignore[return-value]


def _claim_step(alias: str, columns: dict[str, str]) -> bool:
    row = Once(**columns, result="null", created_ms=NowMilliseconds())
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
