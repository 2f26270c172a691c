"""Callbacks from threads to the loop, in order, with as few wake-ups as possible.

Waking a loop is a system call; calls that end close together share one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Mailbox:
    """Calls functions on a loop, in the order in which they were posted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._posted: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._woken = False

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function soon on the loop; callable from any thread.

        Raises RuntimeError if the loop is closed.
        """
        self._posted.append((function, arguments))
        if not self._woken:
            self._woken = True
            self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        # Reset the flag first: what is posted from now on wakes the loop again.
        self._woken = False
        posted = self._posted
        while posted:
            function, arguments = posted.popleft()
            try:
                function(*arguments)
            except Exception as error:
                # A failing callback must not keep the others from running.
                context = {"message": "A posted call failed.", "exception": error}
                self.loop.call_exception_handler(context)
