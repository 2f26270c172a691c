"""From a thread back to the loop that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


def settle(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    function: Callable[[], Any],
) -> None:
    """Call a function in this thread and hand its end to a future of the loop.

    One that nobody waits for any more is not called.
    """
    if future.cancelled():
        return
    result: object = None
    raised: BaseException | None = None
    try:
        result = function()
    except StopIteration as error:
        # A future cannot carry it (PEP 479).
        raised = RuntimeError(f"The function raised {error!r}.")
    except BaseException as error:
        raised = error
    try:
        loop.call_soon_threadsafe(_resolve, future, result, raised)
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
