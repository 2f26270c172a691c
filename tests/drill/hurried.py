"""A janitor that comes often and keeps nothing for long: minutes stand for hours."""

from __future__ import annotations

from typing import Any

from mcp_app.invalidation import compaction, workers
from mcp_app.process import janitor
from mcp_app.streams import expiry

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
