"""All rows that expire; the janitor or a command removes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mcp_app.audit.expiry import expired_calls
from mcp_app.auth.expiry import expired_apps
from mcp_app.conf import Limits
from mcp_app.invalidation.compaction import expired_changes
from mcp_app.invalidation.workers import expired_workers
from mcp_app.streams.expiry import expired_streams


class Removable(Protocol):
    """Rows of one kind, with a name for people; its methods block."""

    @property
    def what(self) -> str:
        """The name of these rows in messages."""

    def count(self) -> int:
        """Return how many there are."""

    def remove(self) -> int | None:
        """Delete a portion and return how many went, None when nothing is left."""


def all_expired_rows(limits: Limits) -> Sequence[Removable]:
    """Return the expired rows, table by table."""
    return [
        *expired_streams(limits),
        *expired_calls(limits),
        *expired_apps(),
        *expired_changes(),
        *expired_workers(),
    ]
