"""A call of user code: its context, its time, and what its failures mean."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from hashlib import sha256
from typing import Any, NoReturn, TypeVar

from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Entry
from mcp_app.catalog.stops import SWITCHED_OFF
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.context import Level
from mcp_app.interface.errors import (
    CallCancelled,
    ClientCannot,
    ExternalError,
    TooManyQuestions,
)
from mcp_app.pools.connections import note_refusal
from mcp_app.pools.database import unavailable
from mcp_app.pools.large_work import large_work
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import (
    InsufficientScope,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MissingClientCapability,
    ProtocolError,
    Unavailable,
)
from mcp_app.server.context import (
    CallCore,
    call_core_of,
    context_face_of,
    current_call,
    reset_current_call,
)
from mcp_app.server.exchange import End, Exchange
from mcp_app.server.invocation import report_exception
from mcp_app.server.round_trip import check_retry

# -- identity --------------------------------------------------------------------------
# Whether a request may run twice, and whether another one is the same.
#
# A client that did not get its answer may send a request again, with the same id.


def runs_once(exchange: Exchange) -> bool:
    """Whether a request of a session must not run twice.

    That is a call of a tool that the caller may see and that is declared neither
    read-only nor idempotent.
    """
    if exchange.method != "tools/call":
        return False
    name = exchange.params.get("name")
    entry = exchange.catalog.tools.get(name) if type(name) is str else None
    return (
        entry is not None
        and not entry.definition.hints.repeatable
        and exchange.sees(entry.definition)
    )


def request_key(request_id: str | int) -> str:
    """Return the digest of a JSON-RPC id; 1 and "1" differ."""
    return sha256(jsonrpc.write(request_id)).hexdigest()


async def digest_of(exchange: Exchange) -> str:
    """Return the digest of a request; a thread makes it if its arguments are many."""
    if exchange.wide:
        return await large_work.run(exchange.owner, content_digest, exchange)
    return content_digest(exchange)


def content_digest(exchange: Exchange) -> str:
    """Return the digest of a request's content without its progress token."""
    meta = {k: v for k, v in exchange.meta.items() if k != "progressToken"}
    params = {k: v for k, v in exchange.params.items() if k != "_meta"}
    if meta:
        params["_meta"] = meta
    return sha256(jsonrpc.canonical([exchange.method, params])).hexdigest()


# -- call ------------------------------------------------------------------------------

Output = TypeVar("Output")

logger = logging.getLogger("mcp_app.calls")


async def run_user_code(
    exchange: Exchange,
    entry: Entry[Any, Any],
    runnable: Runnable[Output],
    arguments: dict[str, object],
    convert: Callable[[object], Output] | None = None,
) -> Output:
    """Run the code of an entry and return its output.

    `convert` replaces the runnable's own conversion.  Raises what user code raises,
    and `asyncio.CancelledError` if the call ended without an answer
    (`exchange.end` says how).
    """
    converter = convert or runnable.convert
    if "requestState" in exchange.params or "inputResponses" in exchange.params:
        check_retry(exchange)
    if runnable.style == "inline":
        return converter(runnable.run(**arguments))
    adapters = exchange.adapters
    exchange.seconds = time_limit(exchange, entry)
    if runnable.context is not None:
        arguments[runnable.context] = context_face_of(exchange, runnable)
    user_code, token = adapters.user_code, current_call.set(exchange)
    try:
        if user_code.nothing_around(runnable):
            output = converter(await runnable.run(**arguments))  # type: ignore[misc]
        else:
            output = await user_code.run(exchange, runnable, arguments, converter)
    except BaseException as error:
        reset_current_call(token)
        conclude_call(exchange, error)
        raise
    current_call.reset(token)
    conclude_call(exchange)
    return output


def conclude_call(exchange: Exchange, error: BaseException | None = None) -> None:
    """Stop the clock of a call whose user code returned, or raised `error`.

    Raises what it ends with instead; returns if `error` is raised as it is.
    """
    try:
        if error is not None:
            _check_end(exchange, error)
    finally:
        core, exchange.seconds = exchange.core, None
        if core is not None:
            core.close()
    if core is not None and error is None:
        _check_answered(core)


def time_limit(exchange: Exchange, entry: Entry[Any, Any]) -> float:
    """Return for how many seconds a call may run; a task may run for longer."""
    limits = exchange.adapters.limits
    usual = limits.tool_timeout if exchange.task_run is None else limits.task_timeout
    return entry.definition.timeout or usual


def look_after(exchange: Exchange) -> None:
    """Enforce the time limit of a call that lasts for longer than a moment."""
    if exchange.seconds is not None:
        call_core_of(exchange).clock.start_timer()


def _check_end(exchange: Exchange, error: BaseException) -> None:
    """Translate an exception of user code; return if it is raised as it is.

    A `SystemExit`, or a cancellation of its own, is a failure like any other.
    """
    cancelled = isinstance(error, asyncio.CancelledError | CallCancelled)
    core: CallCore | None = exchange.core
    if core is not None and exchange.end is None and not cancelled:
        _check_answered(core)
    if isinstance(error, Exception) or not exchange.adapters.loop.is_running():
        # A coroutine that is left over at the end of its loop gets a GeneratorExit.
        return
    task = asyncio.current_task()
    ended = exchange.end is not None or (task is not None and task.cancelling() > 0)
    if not cancelled or not ended:
        raise RuntimeError(f"The function raised {error!r}.") from error
    if isinstance(error, CallCancelled):
        raise asyncio.CancelledError from None


def _check_answered(core: CallCore) -> None:
    """Raise `InputRequired` if the client must answer first.

    A bare `except`, a task group or `gather()` in user code may have swallowed it.
    """
    if core.needed_input is not None:
        raise core.needed_input


def incapable(exchange: Exchange, error: ClientCannot) -> ProtocolError:
    """Return the revision's error for a client that lacks a capability."""
    exchange.record_outcome(Outcome.INCAPABLE, error.message)
    if exchange.revision.stateless:
        if error.required:
            return MissingClientCapability(error.message, error.required)
        # No client can declare this, so none is at fault.
        return InternalError(error.message)
    refusal = InvalidRequest(error.message)
    refusal.http_status = 200
    return refusal


def unknown_error(
    exchange: Exchange, message: str, error: ProtocolError | None = None
) -> ProtocolError:
    """Return the error for something unknown, or hidden from this caller.

    Both get the same message; the call log differs.
    """
    hidden = exchange.entry is not None
    exchange.record_outcome(Outcome.FORBIDDEN if hidden else Outcome.UNKNOWN, message)
    return error or InvalidParams(message)


def beyond_scope(exchange: Exchange, entry: Entry[Any, Any]) -> InsufficientScope:
    """Return the error for what only the scope of the caller's token hides."""
    message = (
        f"{entry.identity:.200} can change something, but this access token may only"
        " look things up. Sign in again and allow changes, or use a token that may"
        " change things."
    )
    exchange.record_outcome(Outcome.FORBIDDEN, message)
    return InsufficientScope(message)


def forbidden_text(exchange: Exchange, entry: Entry[Any, Any]) -> str:
    """Record and return that the caller may not use these arguments."""
    message = f"You may not use {entry.identity} with these arguments."
    exchange.record_outcome(Outcome.FORBIDDEN, message)
    return message


def switched_off(exchange: Exchange, what: str) -> str:
    """Record and say that a "tool", "resource" or "prompt" is stopped."""
    message = SWITCHED_OFF.format(what=what)
    exchange.record_outcome(Outcome.SWITCHED_OFF, message)
    return message


def refuse_switched_off(exchange: Exchange, what: str) -> NoReturn:
    """Raise InternalError for a stopped resource or prompt."""
    raise InternalError(switched_off(exchange, what))


def check_switched_off(exchange: Exchange, name: str, identity: str, what: str) -> None:
    """Raise if the caller may see this definition, but it is stopped."""
    exchange.entry = entry = exchange.catalog.switched_off(name, identity)
    if entry is not None and exchange.sees(entry.definition):
        refuse_switched_off(exchange, what)


def crash_text(exchange: Exchange, entry: Entry[Any, Any]) -> str:
    """Log the current exception; return a message with its id in the log.

    Raises another if no connection to the database could be opened.
    """
    if note_refusal(sys.exception()):
        logger.warning("A call got no connection to the database.", exc_info=True)
        raise error_of_run(exchange, unavailable()) from sys.exception()
    exchange.failure = identifier = secrets.token_hex(4)
    logger.exception(
        "A call failed (%s).",
        identifier,
        extra={
            "failure": identifier,
            "definition": entry.identity,
            "server": exchange.catalog.server.slug,
            "principal": exchange.principal.kind,
        },
    )
    report_exception()
    message = f"{entry.identity} failed. Its error number in the log is {identifier}."
    exchange.record_outcome(Outcome.CRASHED, message)
    return message


@contextmanager
def failures_as_errors(exchange: Exchange, entry: Entry[Any, Any]) -> Iterator[None]:
    """Turn exceptions of user code into protocol errors; not used for tools."""
    try:
        yield
    except ProtocolError:
        raise
    except ClientCannot as error:
        raise incapable(exchange, error) from error
    except TooManyQuestions as error:
        raise Unavailable(error.message) from error
    except ExternalError as error:
        exchange.record_outcome(error.outcome, error.detail)
        if error.outcome is Outcome.ARGUMENTS:
            raise InvalidParams(error.message) from error
        raise InternalError(error.message) from error
    except asyncio.CancelledError:
        raise InternalError(time_out_text(exchange, entry)) from None
    except Exception as error:
        raise InternalError(crash_text(exchange, entry)) from error


def error_of_run(exchange: Exchange, error: ProtocolError) -> ProtocolError:
    """Return the error of a call that may have run when it was refused.

    Status 503 says that nothing ran: a proxy sends such a request to another process.
    """
    may_have_run = runs_once(exchange) and not exchange.untouched
    if error.http_status != Unavailable.http_status or not may_have_run:
        return error
    exchange.record_outcome(Outcome.UNAVAILABLE, error.message)
    return InternalError(error.message)


def absorb_cancellation(exchange: Exchange, end: End) -> None:
    """Absorb the cancellation that came with this end; raise any other."""
    if exchange.end is not end:
        raise asyncio.CancelledError
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def time_out_text(exchange: Exchange, entry: Entry[Any, Any]) -> str:
    """Absorb the cancellation of a timed-out call; record and return its message."""
    absorb_cancellation(exchange, End.TIMED_OUT)
    seconds = time_limit(exchange, entry)
    message = f"{entry.identity} did not finish within {seconds:g} seconds."
    exchange.record_outcome(Outcome.TIMED_OUT, message)
    return message


# -- log handler -----------------------------------------------------------------------
# Forwards records of `logging` to the client whose call made them.
#
# In LOGGING: `{"class": "mcp_app.server.call.ClientHandler"}`
# and the handler's name at the loggers whose records it forwards.


def protocol_level(number: int) -> Level:
    """Return the protocol's level for one of `logging`."""
    levels: tuple[Level, ...] = ("debug", "info", "warning", "error", "critical")
    least = (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    return levels[bisect_right(least, number)]


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy without traceback (server/utilities/logging, "Security")."""
    stripped = copy(record)
    stripped.exc_info = stripped.exc_text = stripped.stack_info = None
    return stripped


class ClientHandler(logging.Handler):
    """Sends records made while a call runs as log messages to its client.

    Records made outside a call are dropped, and so are those of `mcp_app` itself.
    """

    def emit(self, record: logging.LogRecord) -> None:
        exchange = current_call.get()
        if exchange is None or record.name.partition(".")[0] == "mcp_app":
            return
        try:
            text = self.format(_without_traceback(record))
            call_core_of(exchange).send_log_message(
                protocol_level(record.levelno), text, record.name
            )
        except Exception:
            self.handleError(record)
