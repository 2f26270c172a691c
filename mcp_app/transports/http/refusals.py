"""Why a request was refused, in one word, so that staff can find the cause."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcp_app.audit.turned_away import Reason
from mcp_app.protocol.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
    RequestRefused,
    UnsupportedProtocolVersion,
)

AGENT: Final = b"user-agent"
CHALLENGE: Final = "WWW-Authenticate"

_STATUSES: Final = {
    400: Reason.HEADERS,
    401: Reason.NOBODY,
    403: Reason.ORIGIN,
    404: Reason.SESSION,
    405: Reason.METHOD,
    406: Reason.ACCEPT,
    408: Reason.SLOW,
    413: Reason.BODY,
    415: Reason.CONTENT_TYPE,
    421: Reason.HOST,
    429: Reason.TOO_MANY,
    431: Reason.HEADERS_SIZE,
    500: Reason.FAILED,
    503: Reason.UNAVAILABLE,
}
_ERRORS: Final[tuple[tuple[type[ProtocolError], Reason], ...]] = (
    (ParseError, Reason.JSON),
    (HeaderMismatch, Reason.HEADERS),
    (UnsupportedProtocolVersion, Reason.VERSION),
    (InvalidRequest, Reason.MESSAGE),
    (MethodNotFound, Reason.MESSAGE),
    (InvalidParams, Reason.MESSAGE),
)


def reason_of(error: ProtocolError, *, at_server: bool) -> Reason:
    """Return why a request was refused; `at_server` says that its server exists."""
    status = error.http_status
    if isinstance(error, RequestRefused) or status not in (200, 400):
        if "error=" in error.headers.get(CHALLENGE, ""):
            return Reason.CREDENTIALS
        if status == 404 and not at_server:  # noqa: PLR2004 - RFC 9110
            return Reason.SERVER
        return _STATUSES.get(status, Reason.OTHER)
    found = (reason for kind, reason in _ERRORS if isinstance(error, kind))
    return next(found, Reason.OTHER)


def client_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the client's name from its headers, "" if there is none."""
    named = (value for name, value in headers if name == AGENT)
    return next(named, b"").decode("latin-1")
