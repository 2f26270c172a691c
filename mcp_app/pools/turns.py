"""A fair queue of many owners: an owner with much work does not delay the others."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

Item = TypeVar("Item")

GUESS: Final = "?"
"""Keys of unknown people begin with this; they name a session or a connection."""


class Owner(NamedTuple):
    """Whose work it is: the key of a person or an address, "" if it is not known."""

    person: str
    stranger: bool
    """Whether nobody has signed in."""


STRANGER: Final = Owner("", stranger=True)
UNKNOWN: Final = Owner("", stranger=False)
"""Callers who cannot be told apart, and have no share that is theirs alone."""


def is_anyone(owner: Owner) -> bool:
    return True


class Turns(Generic[Item]):
    """Items in turn, one of each person; then those of strangers, one of each address.

    The items of one owner keep their order.  Not for several threads at once.
    """

    def __init__(self) -> None:
        self._persons: dict[str, deque[Item]] = {}
        self._strangers: dict[str, deque[Item]] = {}
        self.number = 0

    def append_item(self, owner: Owner, item: Item) -> None:
        waiting = self._strangers if owner.stranger else self._persons
        waiting.setdefault(owner.person, deque()).append(item)
        self.number += 1

    def take_next_item(
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
                    items = waiting.pop(person)
                    item = items.popleft()
                    if items:
                        # The person's other items come last in turn.
                        waiting[person] = items
                    return item
        raise LookupError("Nothing waits that may begin.")


class SharedPlaces:
    """Places on one loop, of which one owner, or all strangers, hold half at most."""

    def __init__(self, number: int) -> None:
        self._free = number
        self.most_of_one = max(1, number // 2)
        self._occupied: Counter[str | None] = Counter()
        self._turns: Turns[tuple[Owner, asyncio.Future[None]]] = Turns()

    async def occupy_place(self, owner: Owner) -> None:
        """Hold a place, as soon as it is this owner's turn."""
        if self._may_enter(owner):
            self._take_place(owner)
            return
        turn = asyncio.get_running_loop().create_future()
        self._turns.append_item(owner, (owner, turn))
        try:
            await turn
        except asyncio.CancelledError:
            # The place may have come at the moment in which the caller gave up.
            if not turn.cancelled():
                self.release_place(owner)
            raise

    def release_place(self, owner: Owner) -> None:
        self._free += 1
        self._occupied -= Counter([_share_key(owner)])
        while self._turns.number:
            try:
                next_owner, turn = self._turns.take_next_item(self._may_enter)
            except LookupError:
                return
            if not turn.done():
                self._take_place(next_owner)
                turn.set_result(None)

    def is_crowded_by(self, owner: Owner) -> bool:
        occupied = self._occupied[_share_key(owner)]
        return owner != UNKNOWN and occupied >= self.most_of_one

    def _may_enter(self, owner: Owner) -> bool:
        return self._free > 0 and not self.is_crowded_by(owner)

    def _take_place(self, owner: Owner) -> None:
        self._free -= 1
        self._occupied[_share_key(owner)] += 1


def _share_key(owner: Owner) -> str | None:
    return None if owner.stranger else owner.person
