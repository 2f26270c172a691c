"""The open streams of this process that changes are announced to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mcp_app.interface.principal import Principal
from mcp_app.models.fields import digest

LISTS = ("tools", "prompts", "resources")


def digest_of(uri: str) -> str:
    """Return the ref of a resource in change rows."""
    return digest(uri)


class Listener(Protocol):
    """A stream that changes are announced to; used on the loop only."""

    server: str
    principal: Principal
    owner: str
    """Key of the principal, "" for an anonymous one."""
    session: str
    """Digest of the session, "" in the stateless era."""
    seen: int
    """Number up to which everything has been announced to it, as far as is known."""
    lasts: bool
    """Whether it is part of a connection that outlives a stop of its server."""

    def watched(self, what: str) -> str | None:
        """Return the list's name or the URI if the stream watches it.

        `what` is the name of a list, or the digest of a URI.
        """

    def watching(self) -> Iterable[str]:
        """Return all lists and URIs that the stream watches."""

    def tell(self, what: Sequence[str], number: int) -> None:
        """Announce that these lists and URIs changed, at least one.

        With the last of them, everything up to the number has been announced.
        """

    def beat(self) -> None:
        """Write a heartbeat."""

    def end(self, *, retry_ms: int | None = None) -> None:
        """End the stream, in the way of its kind."""


class Listeners:
    """The open streams of the process."""

    def __init__(self) -> None:
        self._open: dict[Listener, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Listener]:
        return iter(tuple(self._open))

    def at(self, address: str) -> int:
        """Return how many anonymous callers have open from an address."""
        return sum(each == address for each in self._open.values())

    def add(self, listener: Listener, address: str = "") -> None:
        """Add a stream; of an anonymous caller its `address`, if that is known."""
        self._open[listener] = address

    def discard(self, listener: Listener) -> None:
        self._open.pop(listener, None)
