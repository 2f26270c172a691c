"""How many questions may be open: those of one person, and those that hold a thread.

The threads are shared by all.  So where each that may wait does, whoever has most of
these places gives up the oldest to somebody who has fewer: no person can keep others
from being asked, and strangers keep nobody who has signed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mcp_app.interface.errors import TooManyQuestions
from mcp_app.pools.turns import Owner

if TYPE_CHECKING:
    from mcp_app.conf import Limits

OF_PERSON: Final = (
    "Too many questions are open: {count} wait for an answer, {more} more cannot be"
    " asked, and one person can have {most} at a time. Ask the user to answer those"
    " that are open, then call again."
)
NO_THREAD: Final = (
    "Too many questions are open: the server waits for as many people as it can. Tell"
    " the user, and call again in a minute."
)
TAKEN_BACK: Final = (
    "Too many questions are open: this one was taken back unanswered, so that others"
    " can be asked. Ask the user to answer those that are open, then call again."
)


@dataclass(slots=True, eq=False, kw_only=True)
class Place:
    """A call that waits for answers."""

    owner: Owner
    questions: int
    in_thread: bool
    give_up: Callable[[], object]
    """Ends the wait soon."""
    lost: bool = False
    """Another took the place."""


class QuestionPlaces:
    """The calls of a process that wait for answers; used on the loop only."""

    def __init__(self, limits: Limits, threads: int) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()
        self._in_threads: dict[Place, None] = {}
        self._most_in_threads = max(1, threads // 2)

    @contextmanager
    def held(self, place: Place) -> Iterator[None]:
        """Hold a place while its questions are open; raise `TooManyQuestions`."""
        if not self._limits.rates:
            yield
            return
        self._check_person(place)
        if place.in_thread:
            self._make_room(place)
            self._in_threads[place] = None
        self._open[place.owner.person] += place.questions
        try:
            yield
        finally:
            self._open -= Counter({place.owner.person: place.questions})
            self._in_threads.pop(place, None)

    def _check_person(self, place: Place) -> None:
        person, most = place.owner.person, self._limits.questions_per_person
        count = self._open[person]
        if person and count + place.questions > most:
            said = OF_PERSON.format(count=count, more=place.questions, most=most)
            raise TooManyQuestions(said)

    def _make_room(self, place: Place) -> None:
        """Let a thread wait; if as many as may do so, another gives up for it."""
        if len(self._in_threads) < self._most_in_threads:
            return
        shares = Counter(each.owner for each in self._in_threads)

        def weight(owner: Owner) -> int:
            # Strangers count as if they had one more.
            return shares[owner] + owner.stranger

        owner = max(shares, key=lambda each: (weight(each), each.stranger))
        # Without a difference of two, they would take it from each other in turns.
        if weight(owner) < weight(place.owner) + 2:
            raise TooManyQuestions(NO_THREAD)
        oldest = next(each for each in self._in_threads if each.owner == owner)
        del self._in_threads[oldest]
        oldest.lost = True
        oldest.give_up()
