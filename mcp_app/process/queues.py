"""What waits for the readers of event streams, in all streams of the process together.

A reader that takes nothing costs memory: the stream with the most of it is ended first.
"""

from __future__ import annotations

from typing import Protocol


class Queue(Protocol):
    """A stream; used on the loop only."""

    @property
    def waiting(self) -> int:
        """How many bytes wait to be sent."""

    def give_up(self) -> None:
        """End the stream, and let go of what waits (`Queues.count`)."""


class Queues:
    """Counts the bytes that wait, and ends streams if there are more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting = 0
        self._filled: set[Queue] = set()

    def count(self, queue: Queue, change: int) -> None:
        """Note that so many bytes more wait in a queue, or fewer if it is negative."""
        self._waiting += change
        if queue.waiting:
            self._filled.add(queue)
        else:
            self._filled.discard(queue)
        # A stream that begins to wait only now has a reader that may well read.
        began = {queue} if queue.waiting == change else set()
        while self._waiting > self._most:
            some = self._filled - began or self._filled
            max(some, key=lambda each: each.waiting).give_up()
