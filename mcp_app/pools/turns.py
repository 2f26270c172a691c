"""Work that waits, of many owners: who asks for much waits, and others do not."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Owner(NamedTuple):
    """Whose work it is: the key of a person or an address, "" if it is not known."""

    person: str
    stranger: bool
    """Whether nobody has signed in."""


NOBODY: Final = Owner("", stranger=True)
UNKNOWN: Final = Owner("", stranger=False)
"""Callers who cannot be told apart, and have no share that is theirs alone."""


def is_anyone(owner: Owner) -> bool:
    """Return True for every owner."""
    return True


class Turns(Generic[Item]):
    """Items in turn, one of each person; then those of strangers, one of each address.

    What one owner has put is taken in that order.  Not for several threads at once.
    """

    def __init__(self) -> None:
        self._persons: dict[str, deque[Item]] = {}
        self._strangers: dict[str, deque[Item]] = {}
        self.number = 0
        """How many items wait."""

    def put(self, owner: Owner, item: Item) -> None:
        """Let an item wait."""
        waiting = self._strangers if owner.stranger else self._persons
        waiting.setdefault(owner.person, deque()).append(item)
        self.number += 1

    def take(
        self,
        may_begin: Callable[[Owner], bool] = is_anyone,
        *,
        strangers: bool = True,
    ) -> Item:
        """Take the item whose turn it is, of the owners that may begin.

        `strangers` says whether any stranger may.  Raise `LookupError` if none waits.
        """
        sides = [(self._persons, False)]
        if strangers:
            sides.append((self._strangers, True))
        for waiting, stranger in sides:
            for person in waiting:
                if may_begin(Owner(person, stranger)):
                    self.number -= 1
                    return _take_first(waiting, person)
        raise LookupError("Nothing waits that may begin.")


def _take_first(waiting: dict[str, deque[Item]], person: str) -> Item:
    """Take a person's first item; what else the person has put is last in turn."""
    items = waiting.pop(person)
    item = items.popleft()
    if items:
        waiting[person] = items
    return item


class SharedPlaces:
    """Places on one loop.  One owner holds at most half of them, but at least one.

    All strangers together are one owner, and `UNKNOWN` is none.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self.most_of_one = max(1, number // 2)
        self._held: Counter[str | None] = Counter()
        self._turns: Turns[tuple[Owner, asyncio.Future[None]]] = Turns()

    async def enter(self, owner: Owner) -> None:
        """Hold a place, as soon as it is this owner's turn."""
        if self._may_enter(owner):
            self._take_place(owner)
            return
        turn = asyncio.get_running_loop().create_future()
        self._turns.put(owner, (owner, turn))
        try:
            await turn
        except asyncio.CancelledError:
            # The place may have come at the moment in which the caller gave up.
            if not turn.cancelled():
                self.leave(owner)
            raise

    def leave(self, owner: Owner) -> None:
        """Give a place back; whoever is next gets it."""
        self._free += 1
        self._held -= Counter([_share(owner)])
        while self._turns.number:
            try:
                following, turn = self._turns.take(self._may_enter)
            except LookupError:
                return
            if not turn.done():
                self._take_place(following)
                turn.set_result(None)

    def is_crowded_by(self, owner: Owner) -> bool:
        """Return whether the owner holds as many places as one may."""
        return owner != UNKNOWN and self._held[_share(owner)] >= self.most_of_one

    def _may_enter(self, owner: Owner) -> bool:
        return self._free > 0 and not self.is_crowded_by(owner)

    def _take_place(self, owner: Owner) -> None:
        self._free -= 1
        self._held[_share(owner)] += 1


def _share(owner: Owner) -> str | None:
    return None if owner.stranger else owner.person
