"""What is new since the last look, read with one statement where nothing is."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_app.models import Change
from mcp_app.wakeup import changes

MOST_ROWS = 5_000
"""Beyond so many new rows everything counts as changed."""

LISTS_OF_ROWS = {
    "tool": ("tools",),
    "resource": ("resources",),
    "resourcetemplate": ("resources",),
    "prompt": ("prompts",),
    "server": changes.LISTS,
}


@dataclass(frozen=True, slots=True)
class News:
    """New change rows as (kind, ref); `everything` where they cannot be told apart."""

    marker: tuple[int, int] = (0, 0)
    rows: tuple[tuple[str, str], ...] = ()
    everything: bool = False

    @property
    def rows_changed(self) -> bool:
        """Whether a definition, a server or a right may be another one now."""
        told = {changes.RESOURCE, changes.LIST}
        return self.everything or any(kind not in told for kind, _ in self.rows)

    def topics(self) -> list[tuple[str, str | None]]:
        """Return what changed, each once: a list or a URI's digest, and the server.

        None stands for all servers.  Nothing is named where everything changed.
        """
        if self.everything:
            return []
        named = (each for row in self.rows for each in _topics(*row))
        return list(dict.fromkeys(named))


class NewsReader:
    """Remembers how far it has seen.

    Old rows are pruned: fewer rows than before are no news.
    """

    def __init__(self) -> None:
        self._marker: tuple[int, int] | None = None

    def read(self) -> News:
        """Return what is new since what was seen; the first time, everything."""
        marker, before = Change.objects.marker(), self._marker
        if before is None:
            return News(marker, everything=True)
        if marker == before:
            return News(marker)
        new = Change.objects.filter(id__gt=before[1], id__lte=marker[1]).order_by("id")
        rows = tuple(new.values_list("kind", "ref")[: MOST_ROWS + 1])
        # More rows than the new ones: one with a smaller id was committed late.
        late = marker[0] - before[0] > len(rows)
        return News(marker, rows, everything=late or len(rows) > MOST_ROWS)

    def seen(self, news: News) -> None:
        """Begin after these news the next time: what they name has been loaded."""
        self._marker = news.marker


def _topics(kind: str, ref: str) -> list[tuple[str, str | None]]:
    if kind == changes.RESOURCE:
        return [(ref, None)]
    if kind == changes.LIST:
        what, _, server = ref.partition(":")
        return [(what, None if server == changes.EVERYWHERE else server)]
    return [(what, None) for what in LISTS_OF_ROWS.get(kind, ())]
