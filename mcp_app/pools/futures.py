"""Hands results from a thread to the loop that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

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


def settle(
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
        post(_resolve, future, result, raised)
    except RuntimeError:
        # The loop is closed: the process is ending, and nobody waits.
        return


def outcome_of(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Call a function; return its result, and what it raised, if it did."""
    try:
        return function(), None
    except _MORE as error:
        raised = RuntimeError(f"The function raised {error!r}.")
        raised.__cause__ = error
        return None, raised
    except BaseException as error:
        return None, error


def _resolve(
    future: asyncio.Future[Any], result: object, raised: BaseException | None
) -> None:
    if future.done():
        return
    if raised is not None:
        future.set_exception(raised)
    else:
        future.set_result(result)
