"""What to tell a stream about some changes: each list and each resource once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from mcp_app.interface.principal import ACCESS_TOKEN, parts_of_key
from mcp_app.invalidation.change_reader import Name, topics_of
from mcp_app.invalidation.changes import MODEL, RIGHTS
from mcp_app.models.changes import ANY
from mcp_app.streams.listeners import LISTS, Listener

Shows: TypeAlias = Callable[[frozenset[str], str], bool]
"""Whether a URI may show an instance of one of these models."""
Personal: TypeAlias = Callable[[str], Iterable[str]]
"""The lists of a server that differ from user to user."""


class Announcement:
    """Changes by kind and ref, with their numbers as far as they are known.

    A change without a number goes to all streams, another one only to those that have
    not seen its number.
    """

    def __init__(
        self,
        names: Mapping[Name, int | None],
        everything: bool,
        shows: Shows,
        personal: Personal,
    ) -> None:
        self._everything = everything
        self._shows = shows
        self._personal = personal
        self._rights = {
            ref: number for (kind, ref), number in names.items() if kind == RIGHTS
        }
        self._models = [
            (ref, number) for (kind, ref), number in names.items() if kind == MODEL
        ]
        self._topics = [
            (what, server, number)
            for name, number in names.items()
            for what, server in topics_of(*name)
        ]

    def __bool__(self) -> bool:
        return bool(self._everything or self._topics or self._models or self._rights)

    def wanted(self, listener: Listener) -> list[str]:
        """Return the lists and URIs to announce to a stream."""
        if self._everything:
            return list(dict.fromkeys(listener.watching()))
        told = self._named(listener), self._of_models(listener), self._of(listener)
        return list(dict.fromkeys(chain(*told)))

    def _named(self, listener: Listener) -> Iterator[str]:
        for what, server, number in self._topics:
            here = server is None or server == listener.server
            if here and _is_new(number, listener):
                yield from _wanted(listener, what)

    def _of(self, listener: Listener) -> Iterator[str]:
        """Yield the lists that may look different after a change of permissions."""
        kind, user, _ = parts_of_key(listener.owner)
        concerned = [
            ref
            for ref in (user, ANY)
            if user and ref in self._rights and _is_new(self._rights[ref], listener)
        ]
        if concerned:
            # A token's scope affects all lists of its user, not only the personal ones.
            own = kind == ACCESS_TOKEN and user in concerned
            for what in LISTS if own else self._personal(listener.server):
                yield from _wanted(listener, what)

    def _of_models(self, listener: Listener) -> Iterable[str]:
        new = frozenset(
            label for label, number in self._models if _is_new(number, listener)
        )
        if not new:
            return ()
        return (uri for uri in _resources(listener) if self._shows(new, uri))


def _is_new(number: int | None, listener: Listener) -> bool:
    return number is None or number > listener.seen


def _wanted(listener: Listener, what: str) -> list[str]:
    if what == ANY:
        return _resources(listener)
    wanted = listener.watched(what)
    return [] if wanted is None else [wanted]


def _resources(listener: Listener) -> list[str]:
    return [each for each in listener.watching() if each not in LISTS]
