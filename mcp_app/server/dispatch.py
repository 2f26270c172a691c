"""The one way from a request to its answer, for every transport."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from mcp_app.interface.call_record import ANSWERED, Ending
from mcp_app.protocol import envelope, jsonrpc, results
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import (
    InternalError,
    MethodNotFound,
    ProtocolError,
    ResourceNotFound,
)
from mcp_app.server import recording
from mcp_app.server.handlers import HANDLERS, Handler
from mcp_app.server.handlers.definitions import LISTINGS
from mcp_app.server.outcome import (
    Response,
    ending_of,
    ending_without_answer,
    error_of_end,
)
from mcp_app.server.round_trip import InputRequired, now_ms, request_binding
from mcp_app.server.run import End

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import Catalog
    from mcp_app.interface.principal import Principal
    from mcp_app.protocol.revisions import Revision
    from mcp_app.server.request import Request
    from mcp_app.server.run import Run

logger = logging.getLogger("mcp_app.server")

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
"""The ends after which the client wants no answer."""


async def answer_request(
    run: Run, handler: Handler | None = None, began: float | None = None
) -> Response:
    """Return the HTTP status and the encoded answer of a request.

    `handler` replaces that of the method; `began` is the time (monotonic) of the start,
    by default now.  Raises `asyncio.CancelledError` if the call ended unanswered.
    """
    request = run.request
    tracing = request.adapters.tracing
    if (
        tracing is not None
        and run.span is None
        and (span := tracing.start_request(run)) is not None
    ):
        with tracing.record_request(run, span):
            return await answer_request(run, handler, began)
    audit = request.adapters.audit if request.method in recording.KINDS else None
    began, body = time.monotonic() if began is None else began, b""
    arguments = None
    try:
        if audit is not None and request.is_large:
            arguments = await recording.encode_arguments(audit, run)
        status, encoded, run.ending = await _run_handler(run, handler)
        _check_caller_waits(run)
        body = encoded
    except BaseException as error:
        run.ending = ending_without_answer(run, error)
        raise
    finally:
        if audit is not None:
            recording.record_call(audit, run, began, len(body), arguments)
    if audit is not None and audit.strict:
        await audit.wait_until_written()
    return Response(status, body)


async def _run_handler(run: Run, handler: Handler | None) -> tuple[int, bytes, Ending]:
    request = run.request
    ending = ANSWERED
    try:
        if request.method not in request.revision.methods:
            raise MethodNotFound(f"Method not found: {request.method:.200}")
        session = request.session
        # The client can have a stream here, or elsewhere with its session.
        has_streams = request.streams or (session is not None and not session.whole)
        if request.method in NEED_STREAMS and not has_streams:
            raise MethodNotFound(
                f"{request.method} needs a stream, and this site cannot keep streams"
                " open (WSGI)."
            )
        result = await (handler or HANDLERS[request.method])(run)
        if type(result) is tuple:
            result, ending = result
        encoded = result if type(result) is bytes else jsonrpc.write(result)
    except InputRequired as needed:
        return _input_required(request, needed)
    except ProtocolError as error:
        return _refuse_request(request, error)
    except asyncio.CancelledError:
        return _refuse_request(request, error_of_end(run))
    except Exception:
        logger.exception("A handler failed.", extra={"method": request.method})
        failed = InternalError("The server failed; its log says why.")
        return _refuse_request(request, failed)
    return 200, result_message(request.id, encoded), ending


def ready_list_page(
    catalog: Catalog,
    revision: Revision,
    message: envelope.Request,
    principal: Principal,
) -> bytes | None:
    """Return the encoded first page of a list that is the same for all callers.

    None for any other request, or if that page has not been made yet.
    """
    name = LISTINGS.get(message.method)
    if name is None or "cursor" in message.params or principal.scope is not None:
        return None
    result = catalog.listings[name].first_result(revision)
    return None if result is None else result_message(message.id, result)


def _input_required(
    request: Request, needed: InputRequired
) -> tuple[int, bytes, Ending]:
    try:
        state = request.adapters.sealer.seal_state(
            needed.state, request_binding(request), now_ms()
        )
    except ValueError as error:
        return _refuse_request(request, InternalError(str(error)))
    result = request.complete_result(results.input_required(needed.questions, state))
    return 200, result_message(request.id, jsonrpc.write(result)), needed.ending


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


def _check_caller_waits(run: Run) -> None:
    """Raise if the caller waits no more: user code may have caught a cancellation."""
    if run.end in _UNWANTED:
        raise asyncio.CancelledError


def _refuse_request(
    request: Request, error: ProtocolError
) -> tuple[int, bytes, Ending]:
    return *encoded_refusal(request.revision, request.id, error), ending_of(error)


def encoded_refusal(
    revision: Revision, request_id: str | int | None, error: ProtocolError
) -> Response:
    """Return the status and the encoded error in the form of the revision."""
    is_missing = isinstance(error, ResourceNotFound)
    code = revision.missing_resource_code if is_missing else None
    message = error_message(
        request_id, error, null_id=revision.null_error_id, code=code
    )
    return Response(_status_of_error(revision, error), jsonrpc.write(message))


def _status_of_error(revision: Revision, error: ProtocolError) -> int:
    if isinstance(error, MethodNotFound):
        return revision.unknown_method_status
    return error.http_status
