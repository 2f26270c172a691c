"""The calls of a process that wait for their transaction."""

from __future__ import annotations

from typing import Any

from mcp_app.interface.call_record import CallRecord, CallValues, CircumstancesValues

LONGEST_CLIENT = 128
"""Characters that are stored of a client's name for itself."""
LONGEST_ERROR = 500
SHORT_ARGUMENTS = 1_024
"""Bytes of arguments that wait for their digest; longer ones are digested at once."""

_FIELDS = len(CallRecord._fields)


class PendingCalls:
    """The calls that wait, in the order in which they came.

    All fields are in one list, and equal circumstances are stored once: a tuple for
    each call would be one more object that the garbage collector visits, and it would
    keep the texts of its request in memory.
    """

    __slots__ = ("_fields", "_known", "_last")

    def __init__(self) -> None:
        self._fields: list[Any] = []
        self._last: CircumstancesValues | None = None
        self._known: dict[CircumstancesValues, CircumstancesValues] = {}

    def __len__(self) -> int:
        return len(self._fields) // _FIELDS

    def by_circumstances(self) -> dict[CircumstancesValues, list[list[Any]]]:
        """Return the calls of each circumstances: a list for each further field."""
        first, *fields = [self._fields[place::_FIELDS] for place in range(_FIELDS)]
        if first and first.count(first[0]) == len(first):
            return {first[0]: fields}
        places: dict[CircumstancesValues, list[int]] = {}
        for place, each in enumerate(first):
            places.setdefault(each, []).append(place)
        return {
            each: [[values[place] for place in those] for values in fields]
            for each, those in places.items()
        }

    def add(self, record: CallValues) -> None:
        """Add a call."""
        given = record[0]
        if given is not self._last:
            self._last = self._known.setdefault(given, given)
            if self._last is not given:
                record = (self._last, *record[1:])
        self._fields += record

    def take(self, count: int) -> PendingCalls:
        """Remove and return the first `count` calls at most."""
        taken = PendingCalls()
        end = count * _FIELDS
        taken._fields, self._fields = self._fields[:end], self._fields[end:]
        # Without this, circumstances of calls that are gone would stay for ever.
        if len(self._known) > len(self):
            self._known = {each: each for each in self._fields[::_FIELDS]}
            self._last = None
        return taken
