"""A call of user code: its context and its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Entry
from mcp_app.interface.errors import CallCancelled
from mcp_app.protocol.errors import ProtocolError
from mcp_app.server.client_logging import ClientHandler  # noqa: F401 - LOGGING has it
from mcp_app.server.context import (
    CallCore,
    call_core_of,
    context_face_of,
    current_call,
    reset_current_call,
)
from mcp_app.server.outcome import failure_of, time_limit
from mcp_app.server.round_trip import check_retry
from mcp_app.server.run import Run

Output = TypeVar("Output")


async def run_user_code(
    run: Run,
    entry: Entry[Any, Any],
    runnable: Runnable[Output],
    arguments: dict[str, object],
    convert: Callable[[object], Output] | None = None,
) -> Output:
    """Run the code of an entry and return its output; raise what `failure_of` makes.

    `convert` replaces the runnable's own conversion.  Raises `asyncio.CancelledError`
    if the call ended without an answer (`run.end` says how).
    """
    request = run.request
    converter, user_code = convert or runnable.convert, request.adapters.user_code
    try:
        if "requestState" in request.params or "inputResponses" in request.params:
            check_retry(request)
        if runnable.style == "inline":
            return converter(runnable.run(**arguments))
        run.seconds = time_limit(request, entry)
        if runnable.context is not None:
            arguments[runnable.context] = context_face_of(run, runnable)
        token = current_call.set(run)
        try:
            if user_code.nothing_around(runnable):
                output = converter(await runnable.run(**arguments))  # type: ignore[misc]
            else:
                output = await user_code.run(run, runnable, arguments, converter)
        except BaseException as error:
            reset_current_call(token)
            conclude_call(run, error)
            raise
        current_call.reset(token)
        conclude_call(run)
    except ProtocolError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        raise failure_of(run, entry, error) from error
    return output


def conclude_call(run: Run, error: BaseException | None = None) -> None:
    """Stop the clock of a call whose user code returned, or raised `error`.

    If the call ends with another error, raises that; returns if `error` stays.
    """
    try:
        if error is not None:
            _check_end(run, error)
    finally:
        core, run.seconds = run.core, None
        if core is not None:
            core.close()
    if core is not None and error is None:
        _check_answered(core)


def look_after(run: Run) -> None:
    """Enforce the time limit of a call that lasts for longer than a moment."""
    if run.seconds is not None:
        call_core_of(run).clock.start_timer()


def _check_end(run: Run, error: BaseException) -> None:
    """Translate an exception of user code; return if it is raised as it is.

    If the code raises `SystemExit`, or cancels itself, that is a failure like others.
    """
    cancelled = isinstance(error, asyncio.CancelledError | CallCancelled)
    core: CallCore | None = run.core
    if core is not None and run.end is None and not cancelled:
        _check_answered(core)
    if isinstance(error, Exception) or not run.request.adapters.loop.is_running():
        # A coroutine that is left over at the end of its loop gets a GeneratorExit.
        return
    task = asyncio.current_task()
    ended = run.end is not None or (task is not None and task.cancelling() > 0)
    if not cancelled or not ended:
        raise RuntimeError(f"The function raised {error!r}.") from error
    if isinstance(error, CallCancelled):
        raise asyncio.CancelledError from None


def _check_answered(core: CallCore) -> None:
    """Raise if the client must answer first, or the call has become a task.

    A bare `except`, a task group or `gather()` may have swallowed that exception.
    """
    if core.needed_input is not None:
        raise core.needed_input
