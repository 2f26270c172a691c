"""From a thread back to the loop that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


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
    except (StopIteration, GeneratorExit, asyncio.CancelledError) as error:
        # A future cannot carry the first (PEP 479), the second would close whoever
        # waits, and the third would say that whoever waits was cancelled.
        raised = RuntimeError(f"The function raised {error!r}.")
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
