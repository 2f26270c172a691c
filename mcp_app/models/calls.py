"""The call log: who called what, and what became of it.

Names are copied: a call keeps them when the user, the session or the tool is gone.
Times are milliseconds of the database's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.db import connections, models
from django.utils.translation import gettext_lazy as _

from mcp_app.interface.call_record import COLUMNS, Circumstances
from mcp_app.models.call_rows import (
    LOOKED,
    CallCount,
    CallingClient,
    CallQuery,
    Key,
    client_statement,
    count_statement,
    page_statement,
)
from mcp_app.models.call_writing import (
    Own,
    SharedValues,
    TallyValues,
    insert_calls,
    raise_statistics,
)
from mcp_app.models.fields import ExactCharField, PartialIndex
from mcp_app.models.transactions import NowMilliseconds

HOUR_S: Final = 3_600
MINUTE_S: Final = 60

VALUES_RETENTION_MS: Final = 7 * 24 * HOUR_S * 1_000

BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""A call is counted at the first bound that it did not exceed, in `to_<bound>`."""
DURATIONS: Final = (*(f"to_{bound}" for bound in BOUNDS_MS), "longer")
"""The columns that count calls by how long they took."""


class CallQuerySet(models.QuerySet["Call"]):
    def insert(self, rows: Mapping[SharedValues, Sequence[Own]]) -> None:
        """Insert rows of `Call.SHARED` and `Call.OWN` with one statement."""
        self._for_write = True
        columns = (*Call.SHARED, *Call.OWN)
        insert_calls(connections[self.db], self.model._meta.db_table, columns, rows)

    def older_than(self, time_ms: Any) -> CallQuerySet:
        return self.filter(time_ms__lt=time_ms)

    def with_values(self) -> CallQuerySet:
        """Return the calls whose values are kept, by the condition of their index."""
        rows: Any = self.extra(where=["NOT (arguments = '')"])
        return rows  # type: ignore[no-any-return]

    def page(
        self,
        sought: CallQuery,
        limit: int,
        *,
        older: Key | None = None,
        newer: Key | None = None,
    ) -> list[Call]:
        """Return calls, newest first: the last before `older` or next after `newer`."""
        columns = [
            field.attname
            for field in self.model._meta.concrete_fields
            # The arguments may be long, and few people may see them.
            if field.attname != "arguments"
        ]
        statement, values = page_statement(
            self._quoted_table, columns, sought, limit, older=older, newer=newer
        )
        calls = list(self.raw(statement, values))
        return calls[::-1] if newer else calls

    def looked_for(self, sought: CallQuery, older: Key | None = None) -> CallCount:
        """Count calls, `COUNTED` at most, or as far as the search goes."""
        statement, values = count_statement(self._quoted_table, sought, older)
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, values)
            looked, oldest, matching = cursor.fetchone()
        cut = bool(sought.conditions) and looked >= LOOKED
        # A search goes on with the whole oldest millisecond: it may have more calls.
        return CallCount(int(matching or 0), Key(oldest + 1, 0) if cut else None)

    def newest_that(self, outcome: str, limit: int) -> list[int]:
        """Return the keys of the newest calls with an outcome, `limit` at most."""
        sought = CallQuery(0, ways=[("outcome", "=", outcome)])
        columns = ("id", "time_ms")
        statement, values = page_statement(self._quoted_table, columns, sought, limit)
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, values)
            return [key for key, _time_ms in cursor.fetchall()]

    def clients(self, sought: CallQuery, limit: int) -> list[CallingClient]:
        """Count the newest calls, `limit` at most, by caller and client."""
        statement, values = client_statement(self._quoted_table, sought, limit)
        with connections[self.db].cursor() as cursor:
            cursor.execute(statement, values)
            return [CallingClient(*row) for row in cursor.fetchall()]

    @property
    def _quoted_table(self) -> str:
        return connections[self.db].ops.quote_name(self.model._meta.db_table)


class Call(models.Model):
    """One call, as it ended.

    `name` is that of the definition, "" if none has the name that was asked for.
    `version` is the number of the published version, 0 for what code declares;
    `outcome` is a value of `Outcome`; `session` is the start of the session's digest.
    Of arguments there are only the size, in bytes, and a digest that nobody can compute
    without the site's secret key.  `error` is what the client was told, shortened.
    `arguments` is "" unless staff have the tool's values kept: then it is a JSON object
    without secrets, of 4 KiB at most, for `VALUES_RETENTION_MS`.
    """

    # The last field, `hidden`, is no column.
    SHARED: Final = Circumstances._fields[:-1]
    OWN: Final = (
        "time_ms",
        "took_us",
        "size",
        "arguments_size",
        "arguments_digest",
        "arguments",
        *COLUMNS,
    )

    id = models.BigAutoField(primary_key=True)
    time_ms = models.BigIntegerField(db_index=True)
    server = ExactCharField(max_length=64)
    kind = models.CharField(max_length=16)
    name = ExactCharField(max_length=255)
    version = models.PositiveIntegerField()
    outcome = models.CharField(max_length=16)
    principal = ExactCharField(max_length=64)
    user_id = ExactCharField(max_length=255)
    user_name = models.CharField(max_length=255)
    principal_client = ExactCharField(max_length=255)
    client_name = models.CharField(max_length=128)
    client_version = models.CharField(max_length=64)
    session = models.CharField(max_length=16)
    revision = models.CharField(max_length=16)
    took_us = models.BigIntegerField()
    size = models.BigIntegerField()
    arguments_size = models.BigIntegerField()
    arguments_digest = models.CharField(max_length=32)
    failure = models.CharField(max_length=16)
    error = models.CharField(max_length=500)
    arguments = models.TextField(default="", db_default="")

    objects = CallQuerySet.as_manager()

    class Meta:
        # Not Django's right to view a row: these show who did what, and when.
        default_permissions = ()
        permissions = [
            ("view_call", "Can see calls"),
            ("view_values", "Can see values of calls"),
        ]
        verbose_name = _("call")
        verbose_name_plural = _("calls")
        indexes = [
            models.Index(fields=["name", "time_ms"], name="mcp_call_name"),
            # Most calls are in no partial index, so their rows cost less to write.
            # A query that uses one repeats its condition (`call_rows.INDEXED`).
            PartialIndex(
                fields=["outcome", "time_ms"],
                name="mcp_call_outcome",
                rows=~models.Q(outcome="answered"),
            ),
            PartialIndex(
                fields=["user_name", "time_ms"],
                name="mcp_call_user",
                rows=~models.Q(user_name=""),
            ),
            PartialIndex(
                fields=["failure"], name="mcp_call_failure", rows=~models.Q(failure="")
            ),
            PartialIndex(
                fields=["time_ms"],
                name="mcp_call_arguments",
                rows=~models.Q(arguments=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.outcome}"


class CallStatisticQuerySet(models.QuerySet["CallStatistic"]):
    def raise_by(self, rows: Sequence[TallyValues]) -> None:
        """Add to counters, in the order of keys; a row has KEYS, then COUNTERS."""
        self._for_write = True
        raise_statistics(
            connections[self.db],
            self.model._meta.db_table,
            CallStatistic.KEYS,
            CallStatistic.COUNTERS,
            CallStatistic.MOST,
            rows,
        )

    def older_than(self, seconds: int, start_ms: Any) -> CallStatisticQuerySet:
        return self.filter(seconds=seconds, start_ms__lt=start_ms)


_counter = partial(models.BigIntegerField, default=0)


class CallStatistic(models.Model):
    """How many calls began in an hour or a minute, and how long they took.

    `seconds` is the length of the time that begins at `start_ms`.  Of the `calls`,
    `dropped` have no row of their own.  Each is in one of the columns `to_1` to
    `longer`, by the milliseconds that it took.
    """

    KEYS: Final = ("seconds", "start_ms", "server", "kind", "name", "outcome")
    COUNTERS: Final = (
        "calls",
        "dropped",
        "total_us",
        "most_us",
        *DURATIONS,
    )
    MOST: Final = "most_us"

    pk = models.CompositePrimaryKey(*KEYS)
    seconds = models.PositiveIntegerField()
    start_ms = models.BigIntegerField()
    server = ExactCharField(max_length=64)
    kind = models.CharField(max_length=16)
    name = ExactCharField(max_length=255)
    outcome = models.CharField(max_length=16)
    calls = _counter()
    dropped = _counter()
    total_us = _counter()
    most_us = _counter()
    to_1 = _counter()
    to_2 = _counter()
    to_5 = _counter()
    to_10 = _counter()
    to_20 = _counter()
    to_50 = _counter()
    to_100 = _counter()
    to_200 = _counter()
    to_500 = _counter()
    to_1000 = _counter()
    to_2000 = _counter()
    to_5000 = _counter()
    to_10000 = _counter()
    longer = _counter()

    objects = CallStatisticQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.calls} {self.outcome}"


class CallWriterQuerySet(models.QuerySet["CallWriter"]):
    def claim(self, writer: str, number: int) -> bool:
        """Note a batch as written; return False if it was written before.

        Call it in the transaction that writes the batch.  If another transaction notes
        a batch of this writer, it waits for that one; if that was the writer's first
        batch, it raises an IntegrityError.
        """
        rows = self.filter(pk=writer)
        now = NowMilliseconds()
        if rows.filter(number__lt=number).update(number=number, written_ms=now):
            return True
        if rows.exists():
            return False
        self.create(id=writer, number=number, written_ms=now)
        return True

    def older_than(self, written_ms: Any) -> CallWriterQuerySet:
        return self.filter(written_ms__lt=written_ms)


class CallWriter(models.Model):
    """A process, and the number of the last batch of calls that it has committed."""

    id = models.CharField(max_length=32, primary_key=True)
    number = models.BigIntegerField()
    written_ms = models.BigIntegerField()

    objects = CallWriterQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.id} {self.number}"
