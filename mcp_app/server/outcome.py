"""How a call ends: what the call log says of it, and what its caller reads.

A call ends once, with an `Ending`.  Code that ends it raises an error of the protocol,
with an ending if the class of the error does not say enough.  Or it raises `Failed`,
which becomes a tool's result for the model.  Only `server.dispatch` puts the ending
into the run, for the call log and the span.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.interface.call_record import Ending, Outcome
from mcp_app.interface.errors import (
    ClientCannot,
    ClientRefused,
    ExternalError,
    ToolError,
    TooManyQuestions,
)
from mcp_app.pools.connections import note_refusal
from mcp_app.pools.database import unavailable
from mcp_app.protocol.content import Block, Text
from mcp_app.protocol.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    MissingClientCapability,
    ProtocolError,
    ResourceNotFound,
    Unavailable,
    UrlElicitationRequired,
)
from mcp_app.protocol.jsonrpc import UnserializableValue
from mcp_app.protocol.texts import clean_text
from mcp_app.server.invocation import report_exception
from mcp_app.server.request import Request
from mcp_app.server.request_digests import runs_once
from mcp_app.server.run import End, Run

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import Entry

logger = logging.getLogger("mcp_app.calls")

Error = TypeVar("Error", bound=ProtocolError)
Encoded: TypeAlias = tuple[bytes, Ending]
"""An encoded result, and how the call ended."""

REFUSED_QUESTION: Final = "The client refused a question, or its answer does not fit."
STOPPED_CALL: Final = (
    "The people who run this site cancelled this call. Nobody knows whether it had an"
    " effect. Do not retry; tell the user."
)
_OUTCOMES: Final[Mapping[type[BaseException], Outcome]] = {
    MissingClientCapability: Outcome.INCAPABLE,
    ResourceNotFound: Outcome.UNKNOWN,
    UrlElicitationRequired: Outcome.ASKED,
    Unavailable: Outcome.UNAVAILABLE,
    InternalError: Outcome.FAILED,
    ProtocolError: Outcome.INVALID,
}
"""The outcome of an error that has no ending of its own."""
_ERRORS: Final[Mapping[Outcome, type[ProtocolError]]] = {
    Outcome.ARGUMENTS: InvalidParams,
    Outcome.UNAVAILABLE: Unavailable,
}
"""The error for a failure with this outcome; for all others, `InternalError`."""
_ENDS: Final[Mapping[End | None, Outcome]] = {
    None: Outcome.CANCELLED,
    End.CANCELLED: Outcome.CANCELLED,
    End.STOPPED: Outcome.CANCELLED,
    End.TIMED_OUT: Outcome.TIMED_OUT,
    End.CLIENT_GONE: Outcome.CLIENT_GONE,
    End.SHUT_DOWN: Outcome.SHUT_DOWN,
}
"""The outcome of a cancelled call, by the end of its run; None if that has none."""


class Response(NamedTuple):
    """The encoded answer of a request, and its HTTP status."""

    status: int
    body: bytes


class Failed(Exception):
    """A tool has failed; the model reads the message or content, staff read the detail.

    The result of the call has `isError`.
    """

    def __init__(
        self,
        message: str,
        outcome: Outcome,
        detail: str = "",
        *,
        failure: str = "",
        content: Sequence[Block] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.content = content or (Text(message),)
        self.ending = Ending(outcome, detail or first_text(self.content), failure)


def with_outcome(error: Error, outcome: Outcome, detail: str = "") -> Error:
    """Return an error of the protocol with an outcome of its own for the call log."""
    error.ending = Ending(outcome, detail or error.message)
    return error


def ending_of(error: ProtocolError) -> Ending:
    """Return the ending of a call that raised this error."""
    ending: Ending | None = error.ending
    if ending is None:
        classes = type(error).__mro__
        outcome = next(_OUTCOMES[each] for each in classes if each in _OUTCOMES)
        ending = Ending(outcome, error.message)
    return ending._replace(code=error.code)


def ending_without_answer(run: Run, error: BaseException) -> Ending:
    """Return the ending of a call whose caller gets no answer."""
    cancelled = isinstance(error, asyncio.CancelledError)
    outcome = _ENDS[run.end] if cancelled else Outcome.FAILED
    return run.ending._replace(outcome=outcome, code=0)


def failure_of(
    run: Run, entry: Entry[Any, Any], error: BaseException
) -> Failed | ProtocolError:
    """Return what to raise for an exception of user code; call it in its `except`."""
    if isinstance(error, ProtocolError):
        return error
    stateless = run.request.revision.stateless
    if isinstance(error, ClientCannot) and error.required and stateless:
        return MissingClientCapability(error.message, error.required)
    failed = _declared_failure(run, entry, error)
    if failed is None and note_refusal(error):
        logger.warning("A call got no connection to the database.", exc_info=True)
        return unavailable()
    failed = failed or _log_crash(run.request, entry)
    return failed if type(entry) is ToolEntry else error_of_failure(run.request, failed)


def _declared_failure(
    run: Run, entry: Entry[Any, Any], error: BaseException
) -> Failed | None:
    """Return the failure that an exception stands for; None for a crash."""
    is_tool = type(entry) is ToolEntry
    message, detail = getattr(error, "message", ""), ""
    match error:
        case ExternalError():
            outcome, detail = error.outcome, error.detail
        case TooManyQuestions():
            outcome = Outcome.UNAVAILABLE
        case ClientCannot():
            outcome = Outcome.INCAPABLE
        case ClientRefused() if is_tool:
            # Its message may quote what a person or a model has answered.
            outcome, detail = Outcome.TOOL_ERROR, REFUSED_QUESTION
        case ToolError() if is_tool:
            outcome = Outcome.TOOL_ERROR
        case UnserializableValue() if is_tool:
            outcome, message = Outcome.SHAPE, f"The result of {entry.identity}: {error}"
        case asyncio.CancelledError():
            absorb_cancellation(run, End.TIMED_OUT)
            seconds = time_limit(run.request, entry)
            outcome = Outcome.TIMED_OUT
            message = f"{entry.identity} did not finish within {seconds:g} seconds."
        case _:
            return None
    return Failed(message, outcome, detail, content=getattr(error, "content", ()))


def _log_crash(request: Request, entry: Entry[Any, Any]) -> Failed:
    """Log the current exception; the message has its number in the log."""
    number = secrets.token_hex(4)
    logger.exception(
        "A call failed (%s).",
        number,
        extra={
            "failure": number,
            "definition": entry.identity,
            "server": request.catalog.server.slug,
            "principal": request.principal.kind,
        },
    )
    report_exception()
    message = f"{entry.identity} failed. Its error number in the log is {number}."
    return Failed(message, Outcome.CRASHED, failure=number)


def error_of_failure(request: Request, failed: Failed) -> ProtocolError:
    """Return the error for a failed definition that is not a tool."""
    error = _ERRORS.get(failed.ending.outcome, InternalError)(failed.message)
    if failed.ending.outcome is Outcome.INCAPABLE and not request.revision.stateless:
        # Since 2026-07-28 no client can declare this, so none is at fault.
        error = InvalidRequest(failed.message)
        error.http_status = 200
    error.ending = failed.ending
    return error


def error_of_run(run: Run, error: ProtocolError) -> ProtocolError:
    """Return the error of a call, but without status 503 if the call may have run.

    Status 503 says that nothing ran: a proxy sends such a request to another process.
    """
    may_have_run = runs_once(run.request) and not run.ran_nothing
    if error.http_status != Unavailable.http_status or not may_have_run:
        return error
    refusal = InternalError(error.message)
    refusal.ending = ending_of(error)
    return refusal


def error_of_end(run: Run) -> ProtocolError:
    """Return the error for a call that was ended; raise if no answer is to be sent."""
    if run.end is End.STOPPED:
        absorb_cancellation(run, End.STOPPED)
        return with_outcome(InternalError(STOPPED_CALL), Outcome.CANCELLED)
    absorb_cancellation(run, End.SHUT_DOWN)
    error = Unavailable("This process stopped before the call was done.")
    return error_of_run(run, with_outcome(error, Outcome.SHUT_DOWN))


def absorb_cancellation(run: Run, end: End) -> None:
    """Absorb the cancellation that came with this end; raise any other."""
    if run.end is not end:
        raise asyncio.CancelledError
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def time_limit(request: Request, entry: Entry[Any, Any]) -> float:
    """Return for how many seconds a call may run; a task may run for longer."""
    limits = request.adapters.limits
    usual = limits.tool_timeout if request.task is None else limits.task_timeout
    return entry.definition.timeout or usual


def forbidden_text(entry: Entry[Any, Any]) -> str:
    """Return the text for a caller that may not use these arguments."""
    return f"You may not use {entry.identity} with these arguments."


def first_text(content: Sequence[Block]) -> str:
    """Return the first text of a result, as its client reads it."""
    texts = (each.text for each in content if isinstance(each, Text))
    # The text may be lazy, such as a translation.
    return clean_text(str(next(texts, "")))
