"""Server-sent events, read independently of the code under test."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Event:
    """One event: its name, the values of its data lines, and its id if it has one."""

    name: str = "message"
    data: list[str] = field(default_factory=list)
    id: str | None = None


class EventReader:
    """Takes the bytes of a stream in pieces; gives each event when it is complete."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._rest = ""
        self._event = Event()

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Give the events that end in this piece; raise on text that is not UTF-8."""
        *lines, self._rest = (self._rest + self._decode(piece)).split("\n")
        for line in lines:
            yield from self._line(line.removesuffix("\r"))

    def _line(self, line: str) -> Iterator[Event]:
        if line:
            self._field(*line.partition(":")[::2])
            return
        event, self._event = self._event, Event()
        if event.data:
            yield event

    def _field(self, name: str, value: str) -> None:
        value = value.removeprefix(" ")
        if name == "data":
            self._event.data.append(value)
        elif name == "event":
            self._event.name = value
        elif name == "id":
            self._event.id = value
