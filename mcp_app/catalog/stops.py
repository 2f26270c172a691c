"""What people have switched off, as a process knows it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mcp_app.interface.definitions import Definition
from mcp_app.interface.server import Key, ServerDefinition

SWITCHED_OFF: Final = (
    "This {what} is switched off by the people who run this site. Do not retry; tell"
    " the user."
)
"""What clients are told of a tool, a resource or a prompt."""
SERVER_OFF: Final = (
    "This server is switched off by the people who run this site. Tell the user."
)
"""What clients are told of a server; `Retry-After` says when to try again."""
RETRY_S: Final = (15, 45)
"""The shortest and longest time until clients try a stopped server again."""


def retry_after_s() -> int:
    """Return a random number of seconds, so that clients do not retry all at once."""
    return random.randint(*RETRY_S)  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class Halt:
    """One stop: its row's key, and whether it cancels the calls that run."""

    pk: int
    cancels: bool


@dataclass(frozen=True, slots=True)
class Stops:
    """The stops that are on, by what they stop; a key names a row.

    A stop finds a row by its key (`rows`), and also by its kind and its name, URI or
    slug (`names`): the row may have been deleted and made again.
    """

    everything: tuple[Halt, ...] = ()
    changes: tuple[Halt, ...] = ()
    """The stops of all tools without the hint that they only read."""
    rows: Mapping[Key, tuple[Halt, ...]] = field(default_factory=dict)
    names: Mapping[Key, tuple[Halt, ...]] = field(default_factory=dict)

    def of_server(self, server: ServerDefinition) -> tuple[Halt, ...]:
        """Return the stops that keep a server from serving anything."""
        halts = self._halts_of_keys(server.key, ("server", server.slug))
        return (*self.everything, *halts)

    def of_definition(
        self, definition: Definition, key: Key | None, name: Key
    ) -> tuple[Halt, ...]:
        """Return the stops of a definition on all servers.

        `key` is the row's; `name` has its kind, and its name or URI.
        """
        changes = () if definition.only_reads else self.changes
        return (*changes, *self._halts_of_keys(key, name))

    def _halts_of_keys(self, key: Key | None, name: Key) -> Iterable[Halt]:
        if not self.rows:
            return ()
        halts = () if key is None else self.rows.get(key, ())
        # Most stops are found both ways; a dict drops the second.
        return dict.fromkeys((*halts, *self.names.get(name, ())))


def cancelling(halts: tuple[Halt, ...]) -> Iterator[Halt]:
    """Yield the stops that cancel running calls."""
    return (halt for halt in halts if halt.cancels)
