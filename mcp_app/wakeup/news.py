"""The check: what is new since the last look, read with one statement.

New are the topics whose number is greater than the one seen, and the change rows that
nobody has folded yet: those count as changes already, so that nothing waits for a fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from django.db import connections, router

from mcp_app.models import Change, Counter, Topic
from mcp_app.models.topics import COUNTER, ids_from_text
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
_TOLD = frozenset({changes.RESOURCE, changes.LIST, changes.MODEL})
_NO_DEFINITION = _TOLD | {changes.SESSION, changes.RIGHTS}

# One statement sees one state of the database: a fold is in it, or is not.
_COUNTER, _CHANGE, _TOPIC = range(3)
_CHECK = """
SELECT 0 AS source, value AS number, floor AS previous,
    '' AS kind, '' AS ref, '' AS folded
FROM {counter} WHERE name = %s
UNION ALL SELECT * FROM (
    SELECT 1, id, 0, kind, ref, '' FROM {change} ORDER BY id LIMIT {limit}
) AS unfolded
UNION ALL SELECT * FROM (
    SELECT 2, version, previous, kind, ref, folded FROM {topic}
    WHERE version > %s ORDER BY version LIMIT {limit}
) AS folded
"""

_Row: TypeAlias = tuple[int, int, int, str, str, str]


@dataclass(frozen=True, slots=True)
class News:
    """What changed as (kind, ref); `everything` where it cannot be told apart.

    `first` news are what a process begins with; `number` is the one up to which all
    is in the news; `unfolded` are the ids of change rows, old ones included.
    """

    rows: tuple[tuple[str, str], ...] = ()
    everything: bool = False
    first: bool = False
    number: int = 0
    unfolded: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def definitions_changed(self) -> bool:
        """Whether a definition or a server may be another one now."""
        return self.everything or any(
            kind not in _NO_DEFINITION for kind, _ in self.rows
        )

    @property
    def rights_changed(self) -> bool:
        """Whether somebody may have other rights now."""
        return self.everything or bool(self.refs(changes.RIGHTS))

    def refs(self, kind: str) -> frozenset[str]:
        """Return which rows of a kind changed; `*` among them stands for all."""
        return frozenset(ref for each, ref in self.rows if each == kind)

    def topics(self) -> list[tuple[str, str | None]]:
        """Return what changed, each once: a list or a URI's digest, and the server.

        None stands for all servers.  Nothing is named where everything changed.
        """
        if self.everything:
            return []
        named = (each for row in self.rows for each in _topics(*row))
        return list(dict.fromkeys(named))


class NewsReader:
    """Remembers how far it has seen, and which unfolded rows it knows."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._known: frozenset[int] = frozenset()

    def read(self) -> News:
        """Return what is new since what was seen; the first time, everything."""
        before = self._number
        found = _checked(before or 0)
        counter = [row[1:3] for row in found if row[0] == _COUNTER]
        number, floor = counter[0] if counter else (0, 0)
        unfolded = {row[1]: row[3:5] for row in found if row[0] == _CHANGE}
        topics = [row for row in found if row[0] == _TOPIC]
        too_many = max(len(unfolded), len(topics)) > MOST_ROWS
        # A number that is smaller than the one seen is another database's.
        if before is None or before < floor or number < before or too_many:
            return News((), True, before is None, number, frozenset(unfolded))
        new = [row for key, row in unfolded.items() if key not in self._known]
        rows = (*self._raised(topics, before), *new)
        distinct = tuple(dict.fromkeys(rows))
        return News(distinct, False, False, number, frozenset(unfolded))

    def seen(self, news: News) -> None:
        """Begin after these news the next time: what they name has been loaded."""
        self._number = news.number
        self._known = news.unfolded

    def _raised(self, topics: Iterable[_Row], before: int) -> Iterator[tuple[str, str]]:
        """Yield the topics that say more than the unfolded rows have said."""
        for _, _, previous, kind, ref, folded in topics:
            ids = ids_from_text(folded)
            if previous > before or not ids or not ids <= self._known:
                yield kind, ref


def _checked(number: int) -> list[_Row]:
    connection = connections[router.db_for_write(Change)]
    quote = connection.ops.quote_name
    statement = _CHECK.format(
        counter=quote(Counter._meta.db_table),
        change=quote(Change._meta.db_table),
        topic=quote(Topic._meta.db_table),
        limit=MOST_ROWS + 1,
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [COUNTER, number])
        return list(cursor.fetchall())


def _topics(kind: str, ref: str) -> list[tuple[str, str | None]]:
    if kind == changes.RESOURCE:
        return [(ref, None)]
    if kind == changes.LIST:
        what, _, server = ref.partition(":")
        return [(what, None if server == changes.EVERYWHERE else server)]
    return [(what, None) for what in LISTS_OF_ROWS.get(kind, ())]
