"""Signals of the app, each sent once in a while by one process of the site."""

from __future__ import annotations

from django.dispatch import Signal

tool_failing = Signal()
"""At least half of the last calls failed: `kind`, `name`, `failed`, `calls`."""
work_waiting = Signal()
"""Staff have work: `what` ("drafts", "changes", "tokens", "approvals"), and `count`."""
