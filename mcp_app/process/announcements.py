"""From change rows to the streams that are to be told of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp_app.models import Change
from mcp_app.pools.database import writer
from mcp_app.streams.listeners import LISTS, Listeners
from mcp_app.wakeup import changes

MOST_ROWS = 5_000
"""Beyond so many new rows everything is announced."""

LISTS_OF_ROWS = {
    "tool": ("tools",),
    "resource": ("resources",),
    "resourcetemplate": ("resources",),
    "prompt": ("prompts",),
    "server": LISTS,
}


@dataclass(frozen=True, slots=True)
class News:
    """What a check found: the rows' marker, and the new rows as (kind, ref)."""

    marker: tuple[int, int]
    rows: tuple[tuple[str, str], ...] = ()
    everything: bool = False

    @property
    def rows_changed(self) -> bool:
        """Whether a definition, a server or a right may be another one now."""
        told = {changes.RESOURCE, changes.LIST}
        return self.everything or any(kind not in told for kind, _ in self.rows)


class Announcements:
    """Reads change rows, and tells the open streams."""

    def __init__(
        self, listeners: Listeners, look: Callable[[], Awaitable[None]]
    ) -> None:
        self._listeners = listeners
        self._look = look
        self._marker: tuple[int, int] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()

    def read(self) -> News:
        """Return what is new since the last call; blocks, one statement if nothing."""
        marker = Change.objects.marker()
        before = self._marker
        if marker == before:
            return News(marker)
        self._marker = marker
        if before is None:
            return News(marker, everything=True)
        new = Change.objects.filter(id__gt=before[1]).order_by("id")
        rows = tuple(new.values_list("kind", "ref")[: MOST_ROWS + 1])
        # Fewer new rows than were counted: one was committed late, or some pruned.
        complete = len(rows) == marker[0] - before[0] and len(rows) <= MOST_ROWS
        return News(marker, rows, everything=not complete)

    def announce(self, news: News) -> None:
        """Tell the streams, each change once."""
        if news.everything:
            for name in LISTS:
                self._listeners.announce(name)
            return
        for what, server in dict.fromkeys(
            each for row in news.rows for each in _topics(*row)
        ):
            self._listeners.announce(what, server)

    def tell(self, what: str, server: str) -> None:
        """Write a change that a call made, and look at once."""
        self.keep(asyncio.ensure_future(self._told(what, server)))

    async def _told(self, what: str, server: str) -> None:
        await writer.run(changes.told, what, server)
        await self._look()

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold a task until it is done: the loop alone would let it go."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _topics(kind: str, ref: str) -> list[tuple[str, str | None]]:
    if kind == changes.RESOURCE:
        return [(ref, None)]
    if kind == changes.LIST:
        what, _, server = ref.partition(":")
        return [(what, None if server == changes.EVERYWHERE else server)]
    return [(what, None) for what in LISTS_OF_ROWS.get(kind, ())]
