"""What the calls of one client to one tool have in common, as text.

A client sends the same members in the same order each time, and mostly the same bytes,
but for the id and the arguments.  So only these two are read.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Any, Final

from orjson import Fragment, JSONDecodeError, JSONEncodeError, dumps, loads

from mcp_app.protocol.json_types import JsonObject

_ID: Final = b"\0"
_ARGUMENTS: Final = b"\1"
"""What stands in the gaps: JSON has such characters only in their escaped form."""
MOST_DIGITS: Final = 15
"""Of an id that is read here: each such number is an id."""


class CallTemplate:
    """The text of a call with a gap for its id and one for its arguments.

    The id stands between two texts, at the beginning or at the end of the body.
    """

    __slots__ = ("_gap", "_id_is_first", "_meta", "_rest", "_size", "_texts", "_unpack")

    def __init__(self, message: JsonObject) -> None:
        """Take the template of a valid `tools/call`.

        Raise `JSONEncodeError` if it has integers of more than 64 bits.
        """
        params = {**message["params"], "arguments": Fragment(_ARGUMENTS)}
        text = dumps({**message, "id": Fragment(_ID), "params": params})
        self._id_is_first = text.index(_ID) < text.index(_ARGUMENTS)
        before, between, after = text.replace(_ARGUMENTS, _ID).split(_ID)
        self._size = len(before) + len(between) + len(after)
        # The copy has no room left, as what `dumps` returns has.
        self._meta = bytes(memoryview(dumps(params.get("_meta") or {})))
        first = self._id_is_first
        self._texts = (before, between) if first else (between, after)
        self._rest = after if first else before
        self._expect(1)

    def __len__(self) -> int:
        return self._size

    def _expect(self, digits: int) -> None:
        """Look for an id of so many digits from now on: ids are counted up."""
        one, other = self._texts
        unpacked = Struct(f"{len(one)}s{digits}s{len(other)}s")
        self._unpack = unpacked.unpack_from
        size, rest = unpacked.size, len(self._rest)
        self._gap = slice(size, -rest) if self._id_is_first else slice(rest, -size)

    def read(self, body: bytes) -> tuple[bytes, JsonObject] | None:
        """Return the digits of the id and the arguments; None for another form.

        The body is strict JSON then: the template of a call, with a number for its id
        and a strict object for its arguments.  Their depth is not looked at.
        """
        if self._id_is_first:
            fits, begin = body.endswith(self._rest), 0
        else:
            fits, begin = body.startswith(self._rest), self._gap.stop
        if not fits:
            return None
        try:
            one, number, other = self._unpack(body, begin)
            if (one, other) != self._texts or not number.isdigit() or number < b"1":
                # It has more digits than the last one, or fewer.
                number = self._find_number(body)
            text = body[self._gap]
            arguments: Any = loads(text)
            if type(arguments) is dict and dumps(arguments) == text:
                return number, arguments
        except (JSONDecodeError, JSONEncodeError, error, LookupError):
            pass
        return None

    def _find_number(self, body: bytes) -> bytes:
        """Return an id of another length, and expect that; raise LookupError."""
        one, other = self._texts
        if self._id_is_first and body.startswith(one):
            number, _, _ = body[len(one) :].partition(other)
        elif not self._id_is_first and body.endswith(other):
            _, _, number = body[: -len(other)].rpartition(one)
        else:
            raise LookupError
        if not number.isdigit() or len(number) > MOST_DIGITS:
            raise LookupError
        if b"%d" % int(number) != number:
            # JSON has no numbers that begin with 0.
            raise LookupError
        self._expect(len(number))
        return number

    def meta(self) -> Any:
        """Return the `_meta`, which the caller may change; {} if there is none."""
        return loads(self._meta)
