"""Newline-delimited messages (basic/transports, "stdio"), as bytes."""

from __future__ import annotations

from enum import Enum


class Broken(Enum):
    """What came instead of a line."""

    TOO_LONG = "too long"


class Lines:
    """Cuts what comes into lines; of one that is too long nothing is kept."""

    def __init__(self, limit: int) -> None:
        """Take lines of at most `limit` bytes."""
        self._limit = limit
        self._begun = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes | Broken]:
        """Return the lines that are complete, without what ends them.

        Blank ones are left out; a line that is too long is told once it ends.
        """
        *ends, rest = data.split(b"\n")
        found = [line for end in ends if (line := self._line(end))]
        self._add(rest)
        return found

    def end(self) -> list[bytes | Broken]:
        """Return the last line, where nothing ended it."""
        return self.feed(b"\n")

    def _add(self, part: bytes) -> None:
        if self._too_long:
            return
        self._begun += part
        if len(self._begun) > self._limit:
            self._too_long = True
            self._begun.clear()

    def _line(self, end: bytes) -> bytes | Broken:
        self._add(end)
        if self._too_long:
            self._too_long = False
            return Broken.TOO_LONG
        # `bytes` of a part alone copies nothing.
        line = bytes(self._begun) if len(self._begun) != len(end) else end
        self._begun.clear()
        return line.strip(b" \t\r")


def line(message: bytes) -> bytes:
    """Return a JSON text as one line.

    Within strings JSON escapes line breaks; elsewhere they are space.
    """
    if b"\n" in message or b"\r" in message:
        message = message.replace(b"\n", b" ").replace(b"\r", b" ")
    return message + b"\n"
