"""From a thread back to the loop that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

_MORE: Final = (
    # A future cannot carry it (PEP 479).
    StopIteration,
    # It would close whoever waits.
    GeneratorExit,
    # It would say that whoever waits was cancelled.
    asyncio.CancelledError,
    # They would end the loop, and with it the process.
    SystemExit,
    KeyboardInterrupt,
)
"""What is the fault of one function, and would be more to those who wait for it."""


def settle(
    post: Callable[..., object],
    future: asyncio.Future[Any],
    function: Callable[[], Any],
) -> None:
    """Call a function in this thread and hand its end to a future of a loop.

    `post` calls a function on that loop, as `call_soon_threadsafe` does.
    One that nobody waits for any more is not called.
    """
    if future.cancelled():
        return
    result: object = None
    raised: BaseException | None = None
    try:
        result = function()
    except _MORE as error:
        raised = RuntimeError(f"The function raised {error!r}.")
        raised.__cause__ = error
    except BaseException as error:
        raised = error
    try:
        post(_resolve, future, result, raised)
    except RuntimeError:
        # The loop has closed: the process is at its end, and nobody waits.
        return


def _resolve(
    future: asyncio.Future[Any], result: object, raised: BaseException | None
) -> None:
    if future.done():
        return
    if raised is not None:
        future.set_exception(raised)
    else:
        future.set_result(result)
