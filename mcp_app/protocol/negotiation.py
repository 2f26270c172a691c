"""Which era and revision a message belongs to (2026-07-28, basic/versioning).

A message is stateless if its `_meta` names a protocol version, or if it has the header
`MCP-Protocol-Version` with a revision that is not of the stateful era.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from mcp_app.protocol.envelope import LARGEST_ID, MAX_ID_LENGTH, Request
from mcp_app.protocol.errors import (
    HeaderMismatch,
    IncompleteMeta,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    UnsupportedProtocolVersion,
)
from mcp_app.protocol.headers import check_repeated, check_routing
from mcp_app.protocol.revisions import (
    LATEST_STATEFUL,
    REVISIONS,
    STATEFUL,
    STATELESS,
    SUPPORTED_VERSIONS,
    Revision,
)

if TYPE_CHECKING:
    from mcp_app.protocol.headers import Headers
    from mcp_app.protocol.json_types import JsonObject

PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
CLIENT_INFO = PREFIX + "clientInfo"
LOG_LEVEL = PREFIX + "logLevel"
SUBSCRIPTION_ID = PREFIX + "subscriptionId"
SERVER_INFO = PREFIX + "serverInfo"

VERSION_HEADER = b"mcp-protocol-version"

Level: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The syslog levels of RFC 5424, least severe first (server/utilities/logging)."""

MEMBERS = 4
"""How many members a request has: `jsonrpc`, `id`, `method` and `params`."""
_SOMEBODY = {"name": "", "version": ""}
"""Stands for a `clientInfo` that was not sent, which is allowed."""
REVISION_BY_HEADER = {version.encode(): known for version, known in REVISIONS.items()}
STATELESS_BY_HEADER = {version.encode(): known for version, known in STATELESS.items()}

TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
"""`Mcp-Name` may be missing, though the extension requires it: fastmcp sends none."""
EVENT_METHODS = (
    *("events/poll", "events/stream", "events/subscribe", "events/unsubscribe"),
)
"""Clients that speak the draft (`events.SKETCH`) send no `Mcp-Name` with these."""
MIRRORED_MEMBERS = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(TASK_METHODS, "taskId"),
    **dict.fromkeys(EVENT_METHODS, "name"),
}
"""The member of `params` that `Mcp-Name` mirrors."""


def meta_of(params: JsonObject) -> JsonObject | None:
    """Return `_meta`, None if it is absent; raise if it is not valid."""
    meta = params.get("_meta")
    if meta is None:
        return None
    if type(meta) is not dict:
        raise InvalidParams("_meta must be an object.")
    token = meta.get("progressToken")
    if token is not None and type(token) is not str and type(token) is not int:
        raise InvalidParams("_meta.progressToken must be a string or an integer.")
    if type(token) is str and len(token) > MAX_ID_LENGTH:
        raise InvalidRequest(
            f"_meta.progressToken must have at most {MAX_ID_LENGTH:,} characters."
        )
    return meta


def is_stateless(params: JsonObject, version_header: str | None) -> bool:
    """Whether a message is of the stateless era, by its parameters and its header."""
    meta = params.get("_meta")
    if type(meta) is dict and PROTOCOL_VERSION in meta:
        return True
    return version_header is not None and version_header not in STATEFUL


def refuse_stateless(params: JsonObject, version_header: str | None) -> None:
    """Raise for a message of the stateless era, where only the stateful era is spoken.

    The error names the revisions that are spoken.
    """
    if is_stateless(params, version_header):
        meta = params.get("_meta")
        version = meta.get(PROTOCOL_VERSION) if type(meta) is dict else None
        requested = version if type(version) is str else version_header or ""
        raise UnsupportedProtocolVersion(requested, tuple(reversed(tuple(STATEFUL))))


def recognise(
    value: object, raw: Mapping[bytes, bytes]
) -> tuple[Request, Revision, JsonObject] | None:
    """Return a request of the stateless era if everything in it is plainly right.

    `value` is the body's value, `raw` the headers.  None does not mean an error: such a
    request goes through `envelope.parse_message` and `check_stateless`, which report
    any error in it.
    """
    try:
        params = value["params"]  # type: ignore[index]
        request_id, method = value["id"], value["method"]  # type: ignore[index]
        meta = params["_meta"]
        revision = STATELESS_BY_HEADER[raw[VERSION_HEADER]]
        usual = (
            len(value) == MEMBERS  # type: ignore[arg-type]
            and value["jsonrpc"] == "2.0"  # type: ignore[index]
            and type(params) is dict
            and type(method) is str
            and is_plain_meta(meta, revision)
        )
        if not usual or not _is_routed(method, params, raw, revision):
            return None
    except (AttributeError, KeyError, TypeError):
        return None
    if not is_plain_id(request_id):
        return None
    return Request(request_id, method, params), revision, meta


def is_plain_meta(meta: Any, revision: Revision) -> bool:
    """Whether the `_meta` of a stateless request is right.

    Unknown members (such as `traceparent`) are allowed.  Raises AttributeError,
    KeyError or TypeError if it is not such an object.
    """
    info, token = meta.get(CLIENT_INFO, _SOMEBODY), meta.get("progressToken")
    return (
        type(meta) is type(info) is dict
        and type(meta[CLIENT_CAPABILITIES]) is dict
        and (LOG_LEVEL not in meta or meta[LOG_LEVEL] in LEVELS)
        and (
            token is None
            or type(token) is int
            or (type(token) is str and len(token) <= MAX_ID_LENGTH)
        )
        and type(info.get("name")) is type(info.get("version")) is str
        and meta[PROTOCOL_VERSION] == revision.version
    )


def is_plain_id(request_id: object) -> bool:
    """Whether an id is surely right; negative ones, which are rare, count as unsure."""
    if type(request_id) is int:
        return 0 <= request_id <= LARGEST_ID
    return type(request_id) is str and 0 < len(request_id) <= MAX_ID_LENGTH


def _is_routed(
    method: str, params: JsonObject, raw: Mapping[bytes, bytes], revision: Revision
) -> bool:
    """Whether the routing headers equal the body, without any encoding."""
    if raw[b"mcp-method"] != method.encode() or method not in revision.methods:
        return False
    member = MIRRORED_MEMBERS.get(method)
    if member is None:
        return True
    name: str = params[member]
    return (
        type(name) is str
        and name.isascii()
        and name.isprintable()
        and not name.startswith("=?")
        and raw[b"mcp-name"] == name.encode()
    )


def check_stateless(
    request: Request, headers: Headers, header: str | None
) -> tuple[Revision, JsonObject]:
    """Return the revision and the `_meta` of a stateless request over HTTP.

    `header` is the value of `MCP-Protocol-Version`.  The order of the checks is: header
    against body, version, `_meta`, missing header, method, routing headers.
    """
    meta = _stateless_meta(request)
    version = meta.get(PROTOCOL_VERSION)
    if header is not None and version is not None and header != version:
        if type(version) is not str:
            raise _missing_version()
        raise HeaderMismatch(
            f"Header mismatch: MCP-Protocol-Version header value {header!r} does not"
            f" match body value {version!r}"
        )
    revision = _stateless_revision(version if header is None else header)
    check_meta(meta)
    if header is None:
        raise HeaderMismatch("Header mismatch: MCP-Protocol-Version is missing")
    _check_method(request, revision)
    check_repeated(headers)
    member = MIRRORED_MEMBERS.get(request.method)
    name = request.params.get(member) if member is not None else None
    may_lack_name = request.method in (*TASK_METHODS, *EVENT_METHODS)
    if may_lack_name and headers.get(b"mcp-name") is None:
        name = None
    check_routing(headers, request.method, name if type(name) is str else None)
    return revision, meta


def check_in_body(request: Request) -> tuple[Revision, JsonObject]:
    """Return the revision and the `_meta` of a stateless request without headers.

    All transports except HTTP have none (2026-07-28, basic/transports/stdio, "Request
    Metadata").  The order of the checks is: version, `_meta`, method.
    """
    meta = _stateless_meta(request)
    revision = _stateless_revision(meta.get(PROTOCOL_VERSION))
    check_meta(meta)
    _check_method(request, revision)
    return revision, meta


def _stateless_meta(request: Request) -> JsonObject:
    try:
        return meta_of(request.params) or {}
    except InvalidParams as error:
        raise IncompleteMeta(error.message) from None


def _check_method(request: Request, revision: Revision) -> None:
    if request.method not in revision.methods:
        raise MethodNotFound(f"Method not found: {request.method:.200}")


def _missing_version() -> IncompleteMeta:
    return IncompleteMeta(f"_meta must have {PROTOCOL_VERSION!r}, a string.")


def _stateless_revision(version: object) -> Revision:
    if type(version) is not str:
        raise _missing_version()
    revision = STATELESS.get(version)
    if revision is None:
        raise UnsupportedProtocolVersion(version, SUPPORTED_VERSIONS)
    return revision


def check_meta(meta: JsonObject) -> None:
    """Raise unless `_meta` is that of a stateless request (basic, `_meta`)."""
    if type(meta.get(PROTOCOL_VERSION)) is not str:
        raise _missing_version()
    if type(meta.get(CLIENT_CAPABILITIES)) is not dict:
        raise IncompleteMeta(f"_meta must have {CLIENT_CAPABILITIES!r}, an object.")
    info = meta.get(CLIENT_INFO, _SOMEBODY)
    if type(info) is not dict:
        raise IncompleteMeta(f"_meta[{CLIENT_INFO!r}] must be an object.")
    for member in ("name", "version"):
        if type(info.get(member)) is not str:
            raise IncompleteMeta(
                f"_meta[{CLIENT_INFO!r}] must have {member!r}, a string."
            )
    if LOG_LEVEL in meta and meta[LOG_LEVEL] not in LEVELS:
        raise IncompleteMeta(
            f"_meta[{LOG_LEVEL!r}] is {meta[LOG_LEVEL]!r:.80}: it must be one of"
            f" {', '.join(LEVELS)}."
        )


def check_version_header(header: str | None) -> None:
    """Raise if the header names a revision that we do not support."""
    if header is not None and header not in REVISIONS:
        raise UnsupportedProtocolVersion(header, SUPPORTED_VERSIONS)


def check_session_version(revision: Revision, header: str | None) -> None:
    """Raise if the header names another revision than the session's.

    An absent header is accepted (2025-11-25, basic/transports, "Protocol Version
    Header"), because the session knows its revision.
    """
    if header is None or header == revision.version:
        return
    if revision.version_header or header not in STATEFUL:
        raise InvalidRequest(
            f"MCP-Protocol-Version is {header!r}; this session was opened with"
            f" {revision.version!r}."
        )


def negotiate(requested: str) -> Revision:
    """Return the revision that `initialize` answers with (basic/lifecycle)."""
    return STATEFUL.get(requested, LATEST_STATEFUL)
