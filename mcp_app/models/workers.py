"""The processes that serve: a row each, with a heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from django.db import models
from django.db.models.functions import Length

from mcp_app.models.fields import JSONTextField, parse_json
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.protocol import jsonrpc

LIVE_MS = 15_000
"""A process that has not renewed its row for so long is taken for dead.

A process that serves judges that by its own clock (`invalidation.workers`).
"""

MOST_SESSIONS = 2_000

MOST_BROKEN = 200
MAX_REASON_LENGTH = 300

DEMAND_MS = 3_000
"""Older demands do not count: a process that has a demand writes it each second."""
MAX_DEMAND_LENGTH = 10_000


@dataclass(frozen=True, slots=True)
class Report:
    """What a process says of itself with each heartbeat; counts are by server."""

    streams: Mapping[str, int] = field(default_factory=dict)
    """Streams that wait for changes: of sessions, and of `subscriptions/listen`."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Requests that run, and have no row of their own."""
    sessions: tuple[int, ...] = ()
    """Keys of the sessions whose stream is open here, `MOST_SESSIONS` at most."""
    lost: int = 0
    """Threads whose call is over, and which do not come back."""
    dropped: int = 0
    """Messages of calls, such as progress, to clients that take JSON alone."""
    code: str = ""
    """The digest of what code declares."""
    refused: tuple[tuple[int, str, str, int], ...] = ()
    """Requests that never became a call: when an hour began, in milliseconds, the
    reason, the client, and how many."""
    broken: tuple[tuple[str, str, int, str], ...] = ()
    """Published rows that are not served here, `MOST_BROKEN` at most: the kind, the
    primary key, that of the version (0 without one), and why."""
    secrets: int = 0
    """Secrets that were taken out of log messages to clients."""
    keys: str = ""
    """Eight hexadecimal digits, the same in processes with the same key."""
    tasks: int = 0
    places: int = 0
    """How many tasks run, and how many may run at a time."""
    delivers: bool = False
    """Whether it posts events to subscribers."""
    release: str = ""
    waiting: int = 0
    """Calls that wait to be written to the call log."""
    memory: int = 0
    """Bytes that are resident, 0 if the system does not say."""
    delay: float = 0.0
    """Seconds that the event loop was late at most, since the heartbeat before."""

    def as_text(self) -> str:
        # `asdict` would copy other mappings, such as a Counter, wrongly.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return jsonrpc.write(values).decode()

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return what a row says; what only another release knows is left out."""
        values: dict[str, Any] = dict(parse_json(text or "{}"))
        names = {each.name for each in fields(cls)}
        return cls(**{name: each for name, each in values.items() if name in names})


class WorkerQuerySet(models.QuerySet["Worker"]):
    def live(self) -> WorkerQuerySet:
        """Return the processes that may answer clients from their caches.

        For pages, commands and checks.  If the database's clock jumps, this is wrong
        until the next heartbeat, but no call is ended for it.
        """
        return self.filter(seen_ms__gte=NowMilliseconds() - LIVE_MS)

    def aged(self) -> list[tuple[str, int, bool]]:
        """Return key and `seen_ms`, and whether it is dead by the database's clock."""
        is_dead = models.Case(
            models.When(seen_ms__lt=NowMilliseconds() - LIVE_MS, then=True),
            default=False,
            output_field=models.BooleanField(),
        )
        return list(self.values_list("pk", "seen_ms", is_dead))

    def exchange_demand(self, worker_id: str, demand: str) -> list[str]:
        """Store how often persons call at a process; return what others have stored.

        By the database's clock each text is a few seconds old at most.
        """
        self.filter(pk=worker_id).update(demand=demand, demand_ms=NowMilliseconds())
        rows = self.exclude(pk=worker_id).exclude(demand="")
        fresh = rows.filter(demand_ms__gte=NowMilliseconds() - DEMAND_MS)
        short = fresh.alias(size=Length("demand")).filter(size__lte=MAX_DEMAND_LENGTH)
        return list(short.values_list("demand", flat=True))

    def beat(self, worker_id: str, report: str) -> bool:
        rows = self.filter(pk=worker_id)
        return bool(rows.update(seen_ms=NowMilliseconds(), report=report))


class Worker(models.Model):
    """Times are milliseconds of the database's clock; `report` is a `Report`."""

    id = models.CharField(max_length=32, primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_ms = models.BigIntegerField()
    seen_ms = models.BigIntegerField(db_index=True)
    # Processes of the release before insert rows without it.
    report = JSONTextField(blank=True, default="", db_default="")
    demand = models.TextField(blank=True, default="", db_default="")
    """How often persons call here, if it is often: JSON of `process.shared_rates`."""
    demand_ms = models.BigIntegerField(default=0, db_default=0)

    objects = WorkerQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.host} {self.pid}"

    def report_of_process(self) -> Report:
        return Report.of_text(self.report)
