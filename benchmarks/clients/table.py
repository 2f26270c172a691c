"""The verdicts as Markdown: what clients can do, and what people read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from benchmarks.clients.catalog import CALLS, OFFERS
from benchmarks.clients.verdicts import RIGHT, UNTRIED, WRONG, Verdict

Column: TypeAlias = Callable[[Mapping[str, str]], str]

NAMES: Final = {
    "embedded": "embedded resources",
    "link": "links",
    "structured": "structured results",
}
"""What a facet is called where a client does not have it."""


def one(facet: str) -> Column:
    """Return the column of a facet."""
    return lambda cells: cells.get(facet, UNTRIED)


def several(facets: Sequence[str]) -> Column:
    """Return the column of several facets, which says what of them is not there."""

    def column(cells: Mapping[str, str]) -> str:
        found = {each: cells[each] for each in facets if each in cells}
        if WRONG in found.values():
            return WRONG
        if not found:
            return UNTRIED
        less = [each for each in facets if found.get(each) != RIGHT]
        return (
            "no " + ", ".join(NAMES.get(each, each) for each in less) if less else RIGHT
        )

    return column


def pages(cells: Mapping[str, str]) -> str:
    """Return the column that says how far a client reads a list."""
    found = cells.get("pages", UNTRIED)
    return "first only" if found == "no" else found


ABILITIES: Final[Mapping[str, Column]] = {
    "HTTP": one("http"),
    "HTTP+SSE": one("sse"),
    "stdio": one("stdio"),
    "newest": one("revision"),
    "247 tools": one("tools"),
    "pages": pages,
    "content, errors, structured": several(CALLS),
    "resources, prompts": several(OFFERS),
    "restart": one("restart"),
}
SENTENCES: Final[Mapping[str, Column]] = {
    "right": one("right"),
    "wrong": one("wrong"),
    "missing": one("missing"),
    "revoked in a session": one("revoked"),
    "signs in": one("signs in"),
}


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Return both tables, and what could not be installed."""
    there = [each for each in verdicts if not each.not_installed]
    parts = [rows(there, ABILITIES), rows(there, SENTENCES)]
    parts += [
        f"{each.client.title} could not be installed: {each.not_installed}"
        for each in verdicts
        if each.not_installed
    ]
    return "\n\n".join(parts)


def rows(verdicts: Iterable[Verdict], columns: Mapping[str, Column]) -> str:
    """Return a table with a line for each client."""
    lines = [("client", *columns), ("---",) * (1 + len(columns))]
    for verdict in verdicts:
        cells = [column(verdict.cells) for column in columns.values()]
        lines.append((verdict.client.title, *cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(
        " --- ", "---"
    )
