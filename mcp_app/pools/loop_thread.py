"""The thread in which asgiref runs sync code for everything on the loop.

It executes the statements of async user code, one at a time, and the site's code that
runs outside a request.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from threading import Thread
from typing import Any, Final, TypeVar

from asgiref.sync import SyncToAsync
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Value = TypeVar("Value")

# -- futures ---------------------------------------------------------------------------
# Hands results from a thread to the loop that waits for them.

_MORE: Final = (
    # A future cannot carry it (PEP 479).
    StopIteration,
    # It would close the coroutine that waits.
    GeneratorExit,
    # It would say that the waiting task was cancelled.
    asyncio.CancelledError,
    # They would end the loop, and with it the process.
    SystemExit,
    KeyboardInterrupt,
)
"""Exceptions of one function that would harm more than the caller that waits for it."""


def start_background_task(
    work: Awaitable[Value], loop: asyncio.AbstractEventLoop | None = None
) -> asyncio.Task[Value]:
    """Start a coroutine as a task that belongs to no request.

    It begins in an empty context: it does not take over the trace, the language and so
    on of the request during which it happens to begin.
    """
    return Context().run(asyncio.ensure_future, work, loop=loop)


def settle_future(
    post: Callable[..., object],
    future: asyncio.Future[Any],
    function: Callable[[], Any],
) -> None:
    """Call a function in this thread, and hand its result to a future of a loop.

    `post` calls a function on that loop, as `call_soon_threadsafe` does.  If the future
    was cancelled before, the function is not called.
    """
    if future.cancelled():
        return
    result, raised = outcome_of(function)
    try:
        post(_resolve_future, future, result, raised)
    except RuntimeError:
        # The loop is closed: the process is ending, and nobody waits.
        return


async def run_apart(function: Callable[[], Value], name: str) -> Value:
    """Run a function, which may hang, in a thread of its own; return what it returns.

    The thread keeps no process alive.  Raise what the function raises.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Value] = loop.create_future()
    work = (loop.call_soon_threadsafe, future, function)
    Thread(target=settle_future, args=work, name=name, daemon=True).start()
    return await future


def outcome_of(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except _MORE as error:
        raised = RuntimeError(f"The function raised {error!r}.")
        raised.__cause__ = error
        return None, raised
    except BaseException as error:
        return None, error


def _resolve_future(
    future: asyncio.Future[Any], result: object, raised: BaseException | None
) -> None:
    if future.done():
        return
    if raised is not None:
        future.set_exception(raised)
    else:
        future.set_result(result)


# -- loop thread -----------------------------------------------------------------------


def submit(function: Callable[[], object]) -> None:
    SyncToAsync.single_thread_executor.submit(function)


def close_cut() -> None:
    """Close the thread's broken connections, before a call meets one."""
    submit(partial(_close_unusable, lambda each: each.connection is not None))


def close_broken() -> None:
    """Close the thread's connections that had an error and cannot be used."""
    submit(partial(_close_unusable, lambda each: each.errors_occurred))


def _close_unusable(suspect: Callable[[BaseDatabaseWrapper], bool]) -> None:
    for each in connections.all(initialized_only=True):
        if suspect(each) and not each.in_atomic_block and not each.is_usable():
            each.close()


def _replace_executor() -> None:
    """Replace the executor in a forked child: its thread exists only in the parent."""
    SyncToAsync.single_thread_executor = ThreadPoolExecutor(max_workers=1)


os.register_at_fork(after_in_child=_replace_executor)


# -- mailbox ---------------------------------------------------------------------------
# Callbacks from threads to the loop, in order, with as few wake-ups as possible.
#
# Waking a loop is a system call; calls that end close together share one.


class Mailbox:
    """Calls functions on a loop, in the order in which they were posted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._posted: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._woken = False

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function soon on the loop; RuntimeError if that is closed."""
        self._posted.append((function, arguments))
        if not self._woken:
            self._woken = True
            self.loop.call_soon_threadsafe(self._empty_mailbox)

    def _empty_mailbox(self) -> None:
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
