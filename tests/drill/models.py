"""The table in which drill tools leave the trace that they ran."""

from __future__ import annotations

from django.db import models


class Ledger(models.Model):
    """One run of a tool: under which key, in which process, when."""

    key = models.CharField(max_length=200, db_index=True)
    worker = models.CharField(max_length=100)
    time = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.key} by {self.worker}"
