"""The one way from a request to its answer, for every transport."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from mcp_app.interface.call_record import Outcome
from mcp_app.protocol import jsonrpc, results
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import (
    InternalError,
    MethodNotFound,
    ProtocolError,
    ResourceNotFound,
    Unavailable,
)
from mcp_app.server import recording
from mcp_app.server.call import absorb_cancellation, error_of_run
from mcp_app.server.exchange import End
from mcp_app.server.handlers import HANDLERS, Handler
from mcp_app.server.handlers.definitions import LISTINGS
from mcp_app.server.round_trip import InputRequired, now_ms, request_binding

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import Catalog
    from mcp_app.interface.principal import Principal
    from mcp_app.protocol.envelope import Request
    from mcp_app.protocol.revisions import Revision
    from mcp_app.server.exchange import Exchange

logger = logging.getLogger("mcp_app.server")

STOPPED: Final = (
    "The people who run this site cancelled this call. Nobody knows whether it had an"
    " effect. Do not retry; tell the user."
)
NEED_STREAMS: Final = frozenset(
    {
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "events/stream",
    }
)
"""Methods that need a stream; not advertised if the site cannot keep streams open."""
_UNWANTED = frozenset({End.CANCELLED, End.CLIENT_GONE})


async def answer_request(
    exchange: Exchange, handler: Handler | None = None, began: float | None = None
) -> tuple[int, bytes]:
    """Return the HTTP status and the encoded answer of a request.

    `handler` takes the place of its method's; `began` is when it began (monotonic), if
    that was earlier.  Raises `asyncio.CancelledError` if the call ended without one.
    """
    audit, tracing = exchange.adapters.audit, exchange.adapters.tracing
    if (
        tracing is not None
        and exchange.span is None
        and (span := tracing.start_request(exchange)) is not None
    ):
        with tracing.record_request(exchange, span):
            return await answer_request(exchange, handler, began)
    if audit is None or exchange.method not in recording.KINDS:
        return await _run_handler(exchange, handler)
    if began is None:
        began = time.monotonic()
    try:
        if exchange.wide:
            await recording.write_arguments(audit, exchange)
        reply = await _run_handler(exchange, handler)
    except BaseException as error:
        recording.record_end(exchange, error)
        recording.record_call(audit, exchange, began, 0)
        raise
    recording.record_call(audit, exchange, began, len(reply[1]))
    if audit.strict:
        await audit.wait_until_written()
    return reply


async def _run_handler(
    exchange: Exchange, handler: Handler | None
) -> tuple[int, bytes]:
    try:
        if exchange.method not in exchange.revision.methods:
            raise MethodNotFound(f"Method not found: {exchange.method:.200}")
        session = exchange.session
        # The client can have a stream here, or elsewhere with its session.
        has_streams = exchange.streams or (session is not None and not session.whole)
        if exchange.method in NEED_STREAMS and not has_streams:
            raise MethodNotFound(
                f"{exchange.method} needs a stream, and this site cannot keep streams"
                " open (WSGI)."
            )
        result = await (handler or HANDLERS[exchange.method])(exchange)
        encoded = result if type(result) is bytes else jsonrpc.write(result)
    except InputRequired as needed:
        return _input_required(exchange, needed)
    except ProtocolError as error:
        return _refuse_request(exchange, error)
    except asyncio.CancelledError:
        return _refuse_request(exchange, error_of_end(exchange))
    except Exception:
        logger.exception("A handler failed.", extra={"method": exchange.method})
        failed = InternalError("The server failed; its log says why.")
        return _refuse_request(exchange, failed)
    _check_wanted(exchange)
    return 200, result_message(exchange.request_id, encoded)


def error_of_end(exchange: Exchange) -> ProtocolError:
    """Return the error for a call that was ended; raise if no answer is to be sent."""
    if exchange.end is End.STOPPED:
        absorb_cancellation(exchange, End.STOPPED)
        exchange.record_outcome(Outcome.CANCELLED, STOPPED)
        return InternalError(STOPPED)
    absorb_cancellation(exchange, End.SHUT_DOWN)
    stopped = Unavailable("This process stopped before the call was done.")
    exchange.record_outcome(Outcome.SHUT_DOWN, stopped.message)
    return error_of_run(exchange, stopped)


def ready_list_page(
    catalog: Catalog, revision: Revision, request: Request, principal: Principal
) -> bytes | None:
    """Return the encoded first page of a list that is the same for all callers.

    None for any other request, or if that page has not been made yet.
    """
    name = LISTINGS.get(request.method)
    if name is None or "cursor" in request.params or principal.scope is not None:
        return None
    result = catalog.listings[name].first_result(revision)
    return None if result is None else result_message(request.id, result)


def _input_required(exchange: Exchange, needed: InputRequired) -> tuple[int, bytes]:
    try:
        state = exchange.adapters.sealer.seal_state(
            needed.state, request_binding(exchange), now_ms()
        )
    except ValueError as error:
        return _refuse_request(exchange, InternalError(str(error)))
    exchange.record_outcome(Outcome.ASKED)
    result = exchange.complete_result(results.input_required(needed.questions, state))
    return 200, result_message(exchange.request_id, jsonrpc.write(result))


def result_message(request_id: str | int, result: bytes) -> bytes:
    """Put the envelope around an encoded result without encoding it again."""
    if type(request_id) is int:
        return result_envelope(b"%d" % request_id, result)
    return result_envelope(jsonrpc.write(request_id), result)


def result_envelope(request_id: bytes, result: bytes) -> bytes:
    """Put the envelope around an encoded result; the id is encoded, too."""
    return b"".join(
        (b'{"jsonrpc":"2.0","id":', request_id, b',"result":', result, b"}")
    )


def _check_wanted(exchange: Exchange) -> None:
    """Raise if nobody waits any more: user code may have caught its cancellation."""
    if exchange.end in _UNWANTED:
        raise asyncio.CancelledError


def _refuse_request(exchange: Exchange, error: ProtocolError) -> tuple[int, bytes]:
    _check_wanted(exchange)
    recording.record_refusal(exchange, error)
    return encoded_refusal(exchange.revision, exchange.request_id, error)


def encoded_refusal(
    revision: Revision, request_id: str | int | None, error: ProtocolError
) -> tuple[int, bytes]:
    """Return the status and the encoded error as the revision wants them."""
    missing = isinstance(error, ResourceNotFound)
    code = revision.missing_resource_code if missing else None
    message = error_message(
        request_id, error, null_id=revision.null_error_id, code=code
    )
    return _status_of_error(revision, error), jsonrpc.write(message)


def _status_of_error(revision: Revision, error: ProtocolError) -> int:
    if isinstance(error, MethodNotFound):
        return revision.unknown_method_status
    return error.http_status
