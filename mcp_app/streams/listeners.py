"""Everybody in this process who is to be told of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Protocol

LISTS = ("tools", "prompts", "resources")


def digest_of(uri: str) -> str:
    """Return the ref by which a change of a resource is known."""
    return sha256(uri.encode()).hexdigest()


class Listener(Protocol):
    """A stream that changes are written to; used on the loop only."""

    server: str
    owner: str
    """Key of the principal, "" for an anonymous one."""
    session: str
    """Digest of the session, "" in the stateless era."""

    def watched(self, what: str) -> str | None:
        """Return the list's name or the URI where the stream wants to hear of it.

        `what` is the name of a list, or the digest of a URI.
        """

    def watching(self) -> Iterable[str]:
        """Return all lists and URIs that the stream wants to hear of."""

    def tell(self, what: str) -> None:
        """Write that a list or a URI changed."""

    def beat(self) -> None:
        """Write a heartbeat."""

    def end(self, *, retry_ms: int | None = None) -> None:
        """End the stream, in the way of its kind."""


EVERY_RESOURCE = "*"


def _wanted(listener: Listener, what: str) -> list[str]:
    if what == EVERY_RESOURCE:
        return _resources(listener)
    wanted = listener.watched(what)
    return [] if wanted is None else [wanted]


def _resources(listener: Listener) -> list[str]:
    return [each for each in listener.watching() if each not in LISTS]


class Listeners:
    """The open streams of the process."""

    def __init__(self) -> None:
        self._open: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Listener]:
        return iter(tuple(self._open))

    def add(self, listener: Listener) -> None:
        self._open.add(listener)

    def discard(self, listener: Listener) -> None:
        self._open.discard(listener)

    def announce(self, what: str, server: str | None = None) -> None:
        """Tell each stream of a server, or of all, that something changed.

        `what` is the name of a list, the digest of a URI, or `*` for every resource.
        """
        for listener in self:
            if server is None or listener.server == server:
                for wanted in _wanted(listener, what):
                    listener.tell(wanted)

    def announce_resources(self, changed: Callable[[str], bool]) -> None:
        """Tell each stream of the resources that it watches, where these changed."""
        for listener in self:
            for wanted in _resources(listener):
                if changed(wanted):
                    listener.tell(wanted)

    def announce_everything(self) -> None:
        """Tell each stream of all that it watches."""
        for listener in self:
            for wanted in listener.watching():
                listener.tell(wanted)
