"""Cursors of pages: where the next one begins, sealed for one caller and one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from typing import Any, Final

from mcp_app import conf
from mcp_app.kinds.query.values import exact
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.sealing import Sealer

FORMAT: Final = 1
LARGEST: Final = 8_192
"""Characters of a cursor: three texts of 255 characters, each of four bytes."""


class ForeignCursor(Exception):
    """A text that is no cursor of this caller, tool, arguments and config."""


@dataclass(frozen=True, slots=True)
class Total:
    """How many rows there are; at least so many if not `exact`."""

    count: int
    exact: bool

    def to_json(self) -> JsonObject:
        return {"total" if self.exact else "total_at_least": self.count}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after these sorted values and this key.

    The total and the day are those of the first page.
    """

    after: tuple[Any, ...]
    key: Any
    day: date
    total: Total | None


def binding(
    principal: str, server: str, tool: str, arguments: JsonObject, config: JsonObject
) -> bytes:
    """Return what a cursor is bound to; `arguments` are those without a cursor."""
    digest = sha256(jsonrpc.canonical([arguments, config])).hexdigest()
    return jsonrpc.canonical([principal, server, tool, digest])


def seal(place: Place, bound: bytes) -> str:
    """Return a place as opaque text."""
    total = place.total
    return _sealer().seal(
        {
            "v": FORMAT,
            "a": [exact(each) for each in place.after],
            "k": exact(place.key),
            "d": place.day.isoformat(),
            "t": None if total is None else [total.count, total.exact],
        },
        bound,
    )


def open(text: object, bound: bytes, columns: Sequence[Any], key: Any) -> Place:
    """Return the place that `seal` wrote, with values as these columns have them.

    Raises `ForeignCursor`, whatever is wrong.
    """
    payload = _sealer().open(text, bound)
    if payload is None or payload["v"] != FORMAT:
        raise ForeignCursor
    total = payload["t"]
    return Place(
        after=tuple(
            None if value is None else column.to_python(value)
            for column, value in zip(columns, payload["a"], strict=True)
        ),
        key=key.to_python(payload["k"]),
        day=date.fromisoformat(payload["d"]),
        total=None if total is None else Total(*total),
    )


def _sealer() -> Sealer:
    return Sealer(conf.secrets(), "query cursors", size=LARGEST)
