"""The processes that serve: a row each, with a heartbeat."""

from __future__ import annotations

from django.db import models

from mcp_app.models.clock import NowMilliseconds

LIVE_MS = 15_000
"""A process that has not renewed its row for so long is taken for dead."""


class WorkerQuerySet(models.QuerySet["Worker"]):
    def live(self) -> WorkerQuerySet:
        """Return the processes whose caches somebody may be answered from."""
        return self.filter(seen_ms__gte=NowMilliseconds() - LIVE_MS)

    def beat(self, worker_id: str) -> bool:
        """Renew a row; return whether it is there."""
        rows = self.filter(pk=worker_id)
        return bool(rows.update(seen_ms=NowMilliseconds()))


class Worker(models.Model):
    """Times are milliseconds of the database's clock."""

    id = models.CharField(max_length=32, primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_ms = models.BigIntegerField()
    seen_ms = models.BigIntegerField(db_index=True)

    objects = WorkerQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"

    def __str__(self) -> str:
        return f"{self.host} {self.pid}"
