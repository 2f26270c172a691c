"""Processes in a hurry: seconds stand for minutes, and minutes for hours.

Their janitor comes often and keeps nothing for long, or they give slow clients up soon.
"""

from __future__ import annotations

from typing import Any

from mcp_app.invalidation import compaction, workers
from mcp_app.process import janitor, uploads
from mcp_app.streams import expiry
from mcp_app.transports.http import event_stream

KEPT_MS = [
    (expiry, "STREAMS_KEPT_MS"),
    (expiry, "STEPS_KEPT_MS"),
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
    uploads.FIRST_SECONDS = event_stream.SEND_SECONDS = seconds
    uploads.BODY_SECONDS = 2 * seconds
