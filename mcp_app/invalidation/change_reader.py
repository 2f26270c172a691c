"""The check: one statement that reads what is new since the previous check.

New are the topics with a greater number than the last one seen, and the change rows
that are not compacted yet.  Those rows count at once, so nothing waits for compaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from django.db import connections, router

from mcp_app.invalidation import changes
from mcp_app.models import Change, Counter, Topic
from mcp_app.models.topics import COUNTER, ids_from_text

MOST_ROWS = 5_000
"""With more new rows than this, everything counts as changed."""

LISTS_OF_ROWS = {
    # The lists that a changed row of each kind may alter.
    "tool": ("tools",),
    "resource": ("resources",),
    "resourcetemplate": ("resources",),
    "prompt": ("prompts",),
    "eventtype": ("events",),
    "server": changes.LISTS,
    # Scopes of a stop that are not rows.
    "changes": ("tools",),
    "everything": changes.LISTS,
    "*": changes.LISTS,
}
_ANNOUNCED = frozenset({changes.RESOURCE, changes.LIST, changes.MODEL, changes.RIGHTS})
_ENDS = {changes.CALL_CANCELLED, changes.CALL_STOPPED}
_OF_CALLS = _ENDS | {changes.QUESTION, changes.TASK}
# No stream is told of these.
_UNTOLD = _OF_CALLS | {changes.SESSION, changes.LOGGED, changes.EVENT}
NO_DEFINITION = _ANNOUNCED | _UNTOLD
"""Changes that name neither a definition nor a server."""

# One statement sees one state of the database: a compaction is either in it or not.
_COUNTER, _CHANGE, _TOPIC = range(3)
_CHECK = """
SELECT 0 AS source, value AS number, floor AS previous,
    '' AS kind, '' AS ref, '' AS folded
FROM {counter} WHERE name = %s
UNION ALL SELECT * FROM (
    SELECT 1, id, 0, kind, ref, '' FROM {change}
    WHERE {asked} ORDER BY id LIMIT {limit}
) AS uncompacted
UNION ALL SELECT * FROM (
    SELECT 2, version, previous, kind, ref, folded FROM {topic}
    WHERE version > %s AND {asked} ORDER BY version LIMIT {limit}
) AS folded
"""

_Row: TypeAlias = tuple[int, int, int, str, str, str]
Name: TypeAlias = tuple[str, str]
"""What changed: its kind and its ref."""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What changed, as (kind, ref); `everything` if that is not known in detail.

    With `everything`, `rows` holds only the changes that end calls: nothing else says
    so.  `first` marks the changes that a process starts with.  All changes up to
    `number` are included.  `uncompacted_ids` has the change rows, old ones included.
    `numbers` has the topics raised since the last check without a later change row;
    such a topic need not be among the changes.
    """

    rows: tuple[Name, ...] = ()
    everything: bool = False
    first: bool = False
    number: int = 0
    uncompacted_ids: frozenset[int] = field(default=frozenset(), repr=False)
    numbers: Mapping[Name, int] = field(default_factory=dict, repr=False)

    @property
    def definitions_changed(self) -> bool:
        """Whether a definition or a server may have changed."""
        return self.everything or any(
            kind not in NO_DEFINITION for kind, _ in self.rows
        )

    @property
    def rights_changed(self) -> bool:
        """Whether somebody's permissions may have changed."""
        return self.everything or bool(self.refs_of_kind(changes.RIGHTS))

    def refs_of_kind(self, kind: str) -> frozenset[str]:
        """Return the refs of the changed rows of a kind; `*` stands for all."""
        return frozenset(ref for each, ref in self.rows if each == kind)

    def changed_topics(self) -> list[tuple[str, str | None]]:
        """Return the changed topics: a list or a URI's digest, and the server.

        None stands for all servers.  The result is empty if everything changed.
        """
        if self.everything:
            return []
        pairs = (each for row in self.rows for each in topics_of(*row))
        return list(dict.fromkeys(pairs))


@dataclass(frozen=True, slots=True)
class ChangedTopics:
    """A change after a number: a topic, or a change row, which has no number.

    `ids` has the rows that raised the topic last; it is empty if there were many.
    """

    name: Name
    number: int | None
    ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class MissedTopics:
    """What changed after a number; `everything` if that is not known in detail.

    `number` is the one that was drawn last.
    """

    number: int
    everything: bool = False
    changes: tuple[ChangedTopics, ...] = ()


def missed_since(number: int) -> MissedTopics:
    """Return what changed after a number; blocks, one statement.

    Kinds that are not announced are left out.  Each GET stream that opens records a
    change of its session.  If many clients reconnect at once, each would read the
    changes of all.
    """
    result = _CheckResult(number, without=_UNTOLD)
    if number < result.floor or number > result.number or result.is_too_large:
        return MissedTopics(result.number, everything=True)
    topics = [
        ChangedTopics((kind, ref), version, ids_from_text(folded))
        for _, version, _, kind, ref, folded in result.topics
    ]
    rows = [
        ChangedTopics(name, None, frozenset({pk})) for pk, name in result.rows.items()
    ]
    return MissedTopics(result.number, changes=(*topics, *rows))


class ChangeReader:
    """Remembers up to which number it has seen, and which uncompacted rows."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._row_ids: frozenset[int] = frozenset()

    @property
    def last_number(self) -> int:
        return self._number or 0

    @property
    def uncompacted_ids(self) -> frozenset[int]:
        return self._row_ids

    def read_changes(self) -> ChangeSet:
        """Return the changes since the last ones seen; the first time, everything."""
        old_number = self._number
        result = _CheckResult(old_number or 0)
        number, row_ids = result.number, frozenset(result.rows)
        # A smaller number than the last one seen comes from another database.
        if old_number is None or old_number > number:
            # The flags are `everything` and `first`.
            return ChangeSet((), True, old_number is None, number, row_ids)
        if old_number < result.floor or result.is_too_large:
            ends = _CheckResult(old_number, only=_ENDS)
            ids = row_ids.union(ends.rows)
            return ChangeSet(
                self._new_names(ends, old_number), True, False, number, ids
            )
        new = self._new_names(result, old_number)
        return ChangeSet(new, False, False, number, row_ids, result.settled_numbers())

    def advance_past(self, change_set: ChangeSet) -> None:
        """Start after these changes next time: they have been loaded."""
        self._number = change_set.number
        self._row_ids = change_set.uncompacted_ids

    def _new_names(self, result: _CheckResult, before: int) -> tuple[Name, ...]:
        """Return the names in a result that were not seen before, each once."""
        new: dict[Name, None] = {}
        for _, _, previous, kind, ref, folded in result.topics:
            ids = ids_from_text(folded)
            # Skip a topic if all rows that raised it were seen before compaction.
            if previous > before or not ids or not ids <= self._row_ids:
                new[kind, ref] = None
        rows = (row for key, row in result.rows.items() if key not in self._row_ids)
        return (*(new | dict.fromkeys(rows)),)


class _CheckResult:
    """The result of one check: the counter, change rows, and topics above a number."""

    def __init__(
        self, number: int, without: Collection[str] = (), only: Collection[str] = ()
    ) -> None:
        rows = _checked(number, without or only, "IN" if only else "NOT IN")
        # The columns are source, number, previous, kind, ref and folded (`_CHECK`).
        counter = [row[1:3] for row in rows if row[0] == _COUNTER]
        self.number, self.floor = counter[0] if counter else (0, 0)
        self.rows = {row[1]: row[3:5] for row in rows if row[0] == _CHANGE}
        self.topics = [row for row in rows if row[0] == _TOPIC]

    @property
    def is_too_large(self) -> bool:
        return max(len(self.rows), len(self.topics)) > MOST_ROWS

    def settled_numbers(self) -> dict[Name, int]:
        """Return the numbers of topics that no waiting change row will raise again."""
        waiting = set(self.rows.values())
        by_name = {row[3:5]: row[1] for row in self.topics}
        return {name: number for name, number in by_name.items() if name not in waiting}


def _checked(number: int, kinds: Collection[str], among: str) -> list[_Row]:
    connection = connections[router.db_for_write(Change)]
    quote = connection.ops.quote_name
    marks = ", ".join(["%s"] * len(kinds))
    statement = _CHECK.format(
        counter=quote(Counter._meta.db_table),
        change=quote(Change._meta.db_table),
        topic=quote(Topic._meta.db_table),
        asked=f"kind {among} ({marks})" if kinds else "1 = 1",
        limit=MOST_ROWS + 1,
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [COUNTER, *kinds, number, *kinds])
        return list(cursor.fetchall())


def topics_of(kind: str, ref: str) -> list[tuple[str, str | None]]:
    """Return topics: a list or a URI's digest, and the server, or None for all."""
    if kind == changes.RESOURCE:
        return [(ref, None)]
    if kind == changes.STOP:
        kind = ref.partition(":")[0]
    if kind == changes.LIST:
        what, _, server = ref.partition(":")
        return [(what, None if server == changes.EVERYWHERE else server)]
    return [(what, None) for what in LISTS_OF_ROWS.get(kind, ())]
