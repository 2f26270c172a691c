"""Errors of the protocol; each one has its answer on the wire.

    ProtocolError
    ├── ParseError                   -32700  the body is not strict JSON
    ├── InvalidRequest               -32600  no JSON-RPC message, or not allowed
    │   ├── InsufficientScope        -32600  403: the token may do too little
    │   └── RequestRefused           -32600  the HTTP status says why
    ├── MethodNotFound               -32601
    ├── InvalidParams                -32602
    │   ├── IncompleteMeta           -32602  `_meta` of the stateless era
    │   └── ResourceNotFound         -32602 or -32002, as the revision says
    ├── InternalError                -32603
    │   └── Unavailable              -32603  an outage, a stop, or a limit
    │       └── SwitchedOff          -32603  by the people who run the site
    ├── HeaderMismatch               -32020
    ├── MissingClientCapability      -32021
    ├── UnsupportedProtocolVersion   -32022
    ├── UrlElicitationRequired       -32042
    └── TaskFailed                   the code of the call that was a task

They are turned into a message in one place (`server.dispatch`) and into a status
in one place (`transports.http.request_handler`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject


class ProtocolError(Exception):
    """A failure whose answer is a JSON-RPC error.

    `message` is a sentence for the person who reads the client's log; `data` is the
    error's `data` member (JSON) or None.  `http_status` is the status if the message
    travels alone over HTTP, together with `headers`.  `request_id` is the id to answer
    with, if the envelope was refused but its id could be read.
    """

    code: int = -32603
    http_status: int = 200
    request_id: str | int | None = None
    ending: Any = None
    """The ending in the call log, if not that of the class (`server.outcome`)."""

    def __init__(self, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self.headers: Mapping[str, str] = {}


class ParseError(ProtocolError):
    """The body is not JSON by RFC 8259 and the rules of our strict reader."""

    code = -32700
    http_status = 400


class InvalidRequest(ProtocolError):
    """JSON that is no JSON-RPC 2.0 message, or a message that is not allowed here."""

    code = -32600
    http_status = 400


class RequestRefused(InvalidRequest):
    """A refusal with its HTTP status: 401, 403 to 406, 408, 413, 415, 421 or 431."""

    def __init__(
        self, http_status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.headers = headers or {}


class InsufficientScope(InvalidRequest):
    """The caller may do this, but not with this token (basic/authorization)."""

    http_status = 403


class MethodNotFound(ProtocolError):
    """The revision has no such method; its HTTP status is the revision's."""

    code = -32601


class InvalidParams(ProtocolError):
    """The method exists, but its parameters do not fit."""

    code = -32602


class IncompleteMeta(InvalidParams):
    """A request of the stateless era lacks a `_meta` field, or has a wrong one."""

    http_status = 400


class ResourceNotFound(InvalidParams):
    """No resource has this URI; the code on the wire is the revision's."""

    def __init__(self, uri: str) -> None:
        super().__init__("Resource not found", {"uri": uri})


class InternalError(ProtocolError):
    """An error of ours; the message tells nothing about our code."""

    code = -32603


class Unavailable(InternalError):
    """An outage, a stop or a limit; `retry_after` is in seconds."""

    http_status = 503

    def __init__(
        self, message: str, *, retry_after: int = 2, http_status: int = 503
    ) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.headers = {"Retry-After": str(retry_after)}


class SwitchedOff(Unavailable):
    """The people who run the site have stopped everything, a server or a type."""


class HeaderMismatch(ProtocolError):
    """A routing header is missing, repeated, malformed, or contradicts the body."""

    code = -32020
    http_status = 400


class MissingClientCapability(ProtocolError):
    """Processing needs capabilities that the client did not declare."""

    code = -32021
    http_status = 400

    def __init__(self, message: str, required: JsonObject) -> None:
        super().__init__(message, {"requiredCapabilities": required})


class UnsupportedProtocolVersion(ProtocolError):
    """The request names a revision that this endpoint does not speak."""

    code = -32022
    http_status = 400

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__(
            f"Unsupported protocol version: {requested}",
            {"supported": list(supported), "requested": requested},
        )


class TaskFailed(ProtocolError):
    """A task that ended with this error (2025-11-25, tasks/result)."""

    def __init__(self, error: JsonObject) -> None:
        super().__init__(error["message"], error.get("data"))
        self.code = error["code"]


class UrlElicitationRequired(ProtocolError):
    """2025-11-25: the person must visit a URL first (client/elicitation)."""

    code = -32042

    def __init__(self, message: str, elicitations: Sequence[JsonObject]) -> None:
        super().__init__(message, {"elicitations": list(elicitations)})
