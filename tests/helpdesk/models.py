"""Tickets."""

from __future__ import annotations

from django.db import models


class Ticket(models.Model):
    class Priority(models.TextChoices):
        LOW = "low"
        HIGH = "high"

    subject = models.CharField(max_length=80)
    priority = models.CharField(
        max_length=4, choices=Priority.choices, default=Priority.LOW
    )
    reporter = models.CharField(max_length=80, blank=True)

    class Meta:
        app_label = "helpdesk"
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.subject
