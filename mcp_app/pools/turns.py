"""Work that waits, of many owners: who asks for much waits, and others do not."""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Owner(NamedTuple):
    """Whose work it is: the key of a person or an address, "" if it is not known."""

    person: str
    stranger: bool
    """Whether nobody has signed in."""


NOBODY: Final = Owner("", stranger=True)


class Turns(Generic[Item]):
    """Items in turn, one of each person; then those of strangers, one of each address.

    What one owner has put is taken in that order.  Not for several threads at once.
    """

    def __init__(self) -> None:
        self._persons: dict[str, deque[Item]] = {}
        self._strangers: dict[str, deque[Item]] = {}

    def put(self, owner: Owner, item: Item) -> None:
        """Let an item wait."""
        waiting = self._strangers if owner.stranger else self._persons
        waiting.setdefault(owner.person, deque()).append(item)

    def take(self) -> Item:
        """Take the item whose turn it is; raise `LookupError` if none waits."""
        waiting = self._persons or self._strangers
        if not waiting:
            raise LookupError("Nothing waits.")
        person = next(iter(waiting))
        items = waiting.pop(person)
        item = items.popleft()
        if items:
            waiting[person] = items
        return item
