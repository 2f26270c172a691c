"""What a stream is to be told of some changes: each list and each resource once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from mcp_app.models.changes import ANY
from mcp_app.streams.listeners import LISTS, Listener
from mcp_app.wakeup.changes import MODEL
from mcp_app.wakeup.news import Name, topics_of

Shows: TypeAlias = Callable[[frozenset[str], str], bool]
"""Whether a URI may show an instance of one of these models."""


class Announcement:
    """Changes by kind and ref, with their numbers as far as they are known.

    What has no number yet is told to everybody, the others to those who have not seen
    as much.
    """

    def __init__(
        self, names: Mapping[Name, int | None], everything: bool, shows: Shows
    ) -> None:
        self._everything = everything
        self._shows = shows
        self._models = [
            (ref, number) for (kind, ref), number in names.items() if kind == MODEL
        ]
        self._topics = [
            (what, server, number)
            for name, number in names.items()
            for what, server in topics_of(*name)
        ]

    def __bool__(self) -> bool:
        return bool(self._everything or self._topics or self._models)

    def wanted(self, listener: Listener) -> list[str]:
        """Return the lists and the URIs that a stream is to be told of."""
        if self._everything:
            return list(dict.fromkeys(listener.watching()))
        return list(dict.fromkeys((*self._named(listener), *self._of_models(listener))))

    def _named(self, listener: Listener) -> Iterator[str]:
        for what, server, number in self._topics:
            here = server is None or server == listener.server
            if here and _is_new(number, listener):
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
