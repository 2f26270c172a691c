"""A cache: what the headers of plain calls decide.

The key has the value of each header that is read, with two exceptions: headers that
repeat the body (`Mcp-Name`), and `Authorization`, which `process.callers` keeps as a
digest.  The key tells whether there is a session, but not which.  Other headers
(`traceparent`, an id of the request) are not in the key.  The number and the total size
of the headers are checked in each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from orjson import JSONEncodeError

from mcp_app.catalog.registered_function import PlainTool
from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.interface.call_record import CircumstancesValues
from mcp_app.process.callers import CachedCaller
from mcp_app.process.rates import Charge
from mcp_app.process.runtime import Process
from mcp_app.protocol.envelope import CallTemplate
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.headers import SESSION_HEADER, Accepts, Headers, accepted_content
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    REVISION_BY_HEADER,
    VERSION_HEADER,
    is_plain_meta,
)
from mcp_app.protocol.revisions import Revision
from mcp_app.transports.asgi_types import RawHeaders
from mcp_app.transports.http.request_handler import policy

MAX_COMBINATIONS: Final = 128
"""Combinations of headers that are kept."""
MAX_CACHED_BYTES: Final = 1_024
"""Longer combinations of headers, bodies with `_meta` and templates are not kept."""
MAX_TOOLS: Final = 10_000
"""Tools that are kept in all."""
STEADY_META: Final = {PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL}
"""Members of `_meta` that are the same in each call; others may be the call's own."""

Key = tuple[bytes | bool | None, ...]
ToolKey = tuple[CachedCaller, bytes | str | None, object]
"""The caller; the tool's name or its header; the client or the session."""

_NOTHING: Final = object()
"""Equal to no JSON value, so a request with `"_meta": null` does not match it."""


@dataclass(slots=True, eq=False)
class KnownTool:
    """A tool that a caller sees, and what the call log has of its answered calls."""

    entry: ToolEntry
    plain: PlainTool
    end: bytes
    """The text that ends each result."""
    direct: bool
    """Whether its function is awaited as it is: `UserCode.nothing_around`."""
    circumstances: CircumstancesValues | None = None
    template: CallTemplate | None = None
    """How the client writes its calls."""
    charge: Charge | None = None
    """The buckets of the caller's rates, unless they depend on an address."""
    _calls: int = 0
    """Calls that were parsed in full, without a template."""

    def learn_template(self, message: JsonObject) -> None:
        """Make a template at the second call without one: a single call needs none."""
        # Other members, such as a progress token, differ from call to call.
        if not (message["params"].get("_meta") or {}).keys() <= STEADY_META:
            return
        self._calls += 1
        if self._calls == 2:  # noqa: PLR2004 - the second
            with suppress(JSONEncodeError):
                template = CallTemplate(message)
                self.template = template if len(template) <= MAX_CACHED_BYTES else None


class KnownTools(dict[ToolKey, KnownTool]):
    """At most `limit` tools, by caller, name, and client or session."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def keep_tool(self, key: ToolKey, tool: KnownTool) -> None:
        if len(self) >= self._limit and key not in self:
            self.clear()
        self[key] = tool


class PlainHeaders:
    """The headers of a client's plain calls."""

    __slots__ = ("_who", "accepts", "client", "cors", "meta", "revision")

    def __init__(
        self, cors: RawHeaders, accepts: Accepts, revision: Revision | None
    ) -> None:
        """`revision` is None if the session alone knows it."""
        self.cors = cors
        self.accepts = accepts
        self.revision = revision
        self.meta: JsonObject | object = _NOTHING
        """The last `_meta` that was plain: clients send the same again."""
        self.client = object()
        """Stands for the client of `_meta`, which is not hashable, in keys of tools."""
        self._who: object = _NOTHING

    def accept_meta(self, meta: JsonObject, size: int) -> bool:
        """Return whether a `_meta` is plain; if so, remember it for the next call."""
        if self.revision is None or not is_plain_meta(meta, self.revision):
            return False
        who = meta.get(CLIENT_INFO), meta[CLIENT_CAPABILITIES]
        if who != self._who:
            self.client = object()
        self._who, self.meta = (
            (who, meta) if size <= MAX_CACHED_BYTES else (_NOTHING, _NOTHING)
        )
        return True


class KnownHeaders:
    """The headers of plain calls to one process, as long as nothing changes."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._generation = 0
        self._headers: dict[Key, PlainHeaders] = {}
        self.tools = KnownTools(MAX_TOOLS)
        self.digits = 0
        """A Content-Length of so many digits is surely within the limit."""

    def __len__(self) -> int:
        return len(self._headers)

    def of(self, raw: Mapping[bytes, bytes], current: Process) -> PlainHeaders | None:
        """Return what the headers decide; the caller knows that none is repeated.

        None if the request is of neither era, or is refused, or its client takes no
        JSON.
        """
        get = raw.get
        key = (
            get(b"host"),
            get(b"origin"),
            get(b"content-type"),
            get(b"content-encoding"),
            get(b"accept"),
            get(VERSION_HEADER),
            SESSION_HEADER in raw,
        )
        if self._generation != current.generation or self._process is not current:
            # The cached entries refer to outdated catalogs.
            self._headers.clear()
            self.tools.clear()
            self._generation, self._process = current.generation, current
            self.digits = len(str(current.limits.body)) - 1
        headers = self._headers.get(key)
        if headers is None:
            headers = _read_headers(raw)
            size = sum(len(each) for each in key if type(each) is bytes)
            if headers is not None and size <= MAX_CACHED_BYTES:
                if len(self._headers) >= MAX_COMBINATIONS:
                    self._headers.clear()
                self._headers[key] = headers
        return headers


def _read_headers(raw: Mapping[bytes, bytes]) -> PlainHeaders | None:
    version, in_session = raw.get(VERSION_HEADER), SESSION_HEADER in raw
    revision = None if version is None else REVISION_BY_HEADER.get(version)
    if revision is None and (version is not None or not in_session):
        return None  # an unknown version, or neither a version nor a session
    if revision is not None and revision.stateless is in_session:
        return None  # stateless with a session, or stateful without one
    try:
        cors = policy.check_headers(Headers(raw.items()))
        accepts = accepted_content(
            raw.get(b"content-type"), raw.get(b"content-encoding"), raw.get(b"accept")
        )
    except ProtocolError:
        return None
    return PlainHeaders(cors, accepts, revision) if accepts.json else None


known_headers: Final = KnownHeaders()
