"""Full-text search in the tools of one list, by SQLite's FTS5 in memory.

There is an index for each list that some callers see, so that neither the order nor the
number of results tells anything of tools that others see.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from mcp_app.interface.definitions import ToolDefinition

MOST_WORDS: Final = 50
LONGEST: Final = 20_000
"""Characters of a column that are looked at."""

_TABLE: Final = (
    "CREATE VIRTUAL TABLE tools USING"
    " fts5(name, title, description, parameters, tokenize='porter unicode61')"
)
_FIND: Final = (
    "SELECT rowid FROM tools WHERE tools MATCH ?"
    " ORDER BY bm25(tools, 10.0, 5.0, 1.0, 0.5), rowid LIMIT ?"
)
_COUNT: Final = "SELECT count(*) FROM tools WHERE tools MATCH ?"
_WORD: Final = re.compile(r"[^\W_]+")
_VERBS: Final = {
    **dict.fromkeys(("make", "new", "open", "publish"), "create"),
    **dict.fromkeys(("edit", "change", "modify"), "update"),
    **dict.fromkeys(("read", "show", "view"), "get"),
    "remove": "delete",
}
"""What APIs say for what people say."""
_HUMP: Final = re.compile(r"([a-z0-9])([A-Z])")


@cache
def has_full_text() -> bool:
    """Whether this Python's SQLite has FTS5."""
    try:
        with sqlite3.connect(":memory:") as database:
            database.execute(_TABLE)
    except sqlite3.OperationalError:
        return False
    finally:
        database.close()
    return True


class SearchIndex:
    """The index of some tools; building it blocks, and asking hardly does."""

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        # It is built in a thread, and asked on the loop.
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(_TABLE)
        rows = (
            (at, *(text[:LONGEST] for text in _texts(tool)))
            for at, tool in enumerate(tools)
        )
        columns = "rowid, name, title, description, parameters"
        self._database.executemany(
            f"INSERT INTO tools ({columns}) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            rows,
        )

    def __del__(self) -> None:
        self._database.close()

    def find(self, query: str, limit: int) -> tuple[list[int], int]:
        """Return the places of the best tools, and how many fit in all."""
        words = _WORD.findall(_HUMP.sub(r"\1 \2", query))[:MOST_WORDS]
        if not words:
            return [], 0
        # Each word is quoted: none of them is an operator.
        match = " OR ".join(f'"{word}"' for word in words)
        verbs = {_VERBS[word.lower()] for word in words if word.lower() in _VERBS}
        better = f"({match}) AND ({' OR '.join(sorted(verbs))})"
        # A verb makes a tool come earlier, and alone it finds none.
        ranked = f"{match} OR ({better})" if verbs else match
        places = [row[0] for row in self._database.execute(_FIND, (ranked, limit))]
        ((total,),) = self._database.execute(_COUNT, (match,))
        return places, total


def _texts(tool: ToolDefinition) -> tuple[str, str, str, str]:
    parameters = " ".join(_parameters(tool.input_schema))
    return _split(tool.name), _split(tool.title), tool.description, _split(parameters)


def _split(text: str) -> str:
    """Return a text with the words of createTicket apart, too."""
    apart = _HUMP.sub(r"\1 \2", text)
    return text if apart == text else f"{text} {apart}"


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, about in properties.items():
        yield name
        if isinstance(about, Mapping):
            for member in ("title", "description"):
                if isinstance(about.get(member), str):
                    yield about[member]
