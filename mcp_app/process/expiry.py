"""All that goes with time, whoever removes it: the janitor, or a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mcp_app.audit.expiry import expired_calls
from mcp_app.conf import Limits
from mcp_app.streams.expiry import expired_streams
from mcp_app.wakeup.folding import expired_changes
from mcp_app.wakeup.workers import expired_workers


class Removable(Protocol):
    """Rows of one kind, named for people; its methods block."""

    @property
    def what(self) -> str:
        """What people call them."""

    def count(self) -> int:
        """Return how many there are."""

    def remove(self) -> int | None:
        """Delete a portion and return how many went, None when nothing is left."""


def all_expired(limits: Limits) -> Sequence[Removable]:
    """Return what has outlived its use, table by table."""
    return [
        *expired_streams(limits),
        *expired_calls(limits),
        *expired_changes(),
        *expired_workers(),
    ]
