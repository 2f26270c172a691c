"""Processes in a hurry: seconds stand for minutes, and minutes for hours.

Their janitor comes often and keeps nothing for long, or they give slow clients up soon.
"""

from __future__ import annotations

from typing import Any

from mcp_app.invalidation import compaction, workers
from mcp_app.process import janitor, quotas
from mcp_app.streams import retention
from mcp_app.transports.http import replies

KEPT_MS = [
    (retention, "STREAMS_KEPT_MS"),
    (retention, "STEPS_KEPT_MS"),
    (compaction, "KEPT_MS"),
    (workers, "KEPT_MS"),
]
"""How long things are kept once they are over, by where that stands."""


def sweep_each(seconds: int) -> None:
    """Let the janitor come so often, and remove what was over for as long."""
    places: list[tuple[Any, str]] = [*KEPT_MS]
    for module, name in places:
        setattr(module, name, seconds * 1000)
    janitor.EVERY = seconds


def wait_for_slow_clients(seconds: int) -> None:
    """Let a body begin, and a reader take something, within so many seconds."""
    quotas.FIRST_SECONDS = replies.SEND_SECONDS = seconds
    quotas.BODY_SECONDS = 2 * seconds
