"""A call as the audit takes it: plain tuples, because each request makes one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast, get_args

Circumstances: TypeAlias = tuple[
    str, str, str, int, str, str, str, str, str, str, str, str, str
]
"""What a call has in common with others: server, kind, name, version, outcome; the
principal's kind, user, user name and client; the client's name and version; session;
revision.  In the order of `Call.SHARED`."""

CallRecord: TypeAlias = tuple[
    Circumstances, float, float, int, bytes, int, str, str, str
]
"""Circumstances; when it began (monotonic) and what it took, in seconds; the bytes of
the answer; the arguments where they are short, else how many bytes they have and their
digest; the id of a failure; what the client was told of it."""

LONGEST_CLIENT = 128
"""Characters that are kept of what a client calls itself."""
LONGEST_ERROR = 500
SHORT_ARGUMENTS = 1_024
"""Bytes of arguments that wait for their digest; longer ones need not be kept."""

_FIELDS = len(get_args(CallRecord))


class Gathered:
    """Calls that wait, in the order in which they came.

    All fields are in one list, and circumstances that are equal are kept once: a tuple
    for each call would be one more thing that the garbage collector visits, and the
    texts of its request would stay in memory with it.
    """

    __slots__ = ("_fields", "_known")

    def __init__(self) -> None:
        self._fields: list[Any] = []
        self._known: dict[Circumstances, Circumstances] = {}

    def __len__(self) -> int:
        return len(self._fields) // _FIELDS

    def __iter__(self) -> Iterator[CallRecord]:
        fields = iter(self._fields)
        return cast("Iterator[CallRecord]", zip(*[fields] * _FIELDS, strict=True))

    def add(self, record: CallRecord) -> None:
        """Take a call."""
        circumstances = record[0]
        self._fields.append(self._known.setdefault(circumstances, circumstances))
        self._fields.extend(record[1:])

    def take(self, count: int) -> Gathered:
        """Give the first calls away, so many at most."""
        taken = Gathered()
        end = count * _FIELDS
        taken._fields, self._fields = self._fields[:end], self._fields[end:]
        # There may always be some left: what is gone must not be known for ever.
        if len(self._known) > len(self):
            self._known = {each: each for each in self._fields[::_FIELDS]}
        return taken
