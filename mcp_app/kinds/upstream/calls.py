"""Calls to another MCP server: its revision, its sessions, its answers."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard
from weakref import WeakKeyDictionary, WeakValueDictionary

from mcp_app.egress.client import Connections, connections
from mcp_app.egress.requests import Secrets, SiteAnswer, SiteRequest
from mcp_app.egress.resolving import EgressError
from mcp_app.egress.sites import Site
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.interface.server import VERSION
from mcp_app.kinds.other_sites import IN_THREAD, POSSIBLY, site_failure
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.client import (
    NEWEST_STATEFUL,
    NEWEST_STATELESS,
    ClientRequest,
    Dialog,
    EventReader,
    is_answer_to,
)
from mcp_app.protocol.errors import (
    InvalidParams,
    ParseError,
    UnsupportedProtocolVersion,
)
from mcp_app.protocol.headers import LARGEST_MIRRORED, MirroredParameter
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import SERVER_INFO

CLIENT: Final[JsonObject] = {"name": "django-mcp-app", "version": VERSION}
MAX_SESSIONS: Final = 200
"""Sessions that a process keeps, for all servers and callers together."""
IDLE_SESSION_S: Final = 600.0
END_S: Final = 1.0
"""How long the end of a session may take."""
MAX_PAGES: Final = 100
MAX_TOOLS: Final = 2_000
MAX_LIST_BYTES: Final = 16 * 1024 * 1024
MAX_MESSAGE: Final = 500
"""Characters of an error, or of progress, of another server."""

Progress: TypeAlias = Callable[[float, float | None, str | None], object]
"""Takes the progress, its total if that is known, and a text."""


class DialogRefused(Exception):
    """The server does not know the session or the revision: nothing ran."""


class Listing(NamedTuple):
    """The tools that a server lists, unchecked, and whether these are all."""

    tools: list[Any]
    is_complete: bool


@dataclass(slots=True)
class _Dialogs:
    """Which servers are stateless, and the sessions with others, for one loop."""

    stateless: set[Site] = field(default_factory=set)
    stateful: set[Site] = field(default_factory=set)
    sessions: OrderedDict[tuple[Site, str], tuple[float, Dialog]] = field(
        default_factory=OrderedDict
    )
    locks: WeakValueDictionary[tuple[Site, str], asyncio.Lock] = field(
        default_factory=WeakValueDictionary
    )

    def keep_session(self, key: tuple[Site, str], dialog: Dialog) -> None:
        self.sessions[key] = time.monotonic(), dialog
        self.sessions.move_to_end(key)
        if len(self.sessions) > MAX_SESSIONS:
            self.sessions.popitem(last=False)

    def find_session(self, key: tuple[Site, str]) -> Dialog | None:
        # The session is removed; `keep_session` puts it back with a new time.
        used, dialog = self.sessions.pop(key, (0.0, None))
        is_idle = time.monotonic() - used > IDLE_SESSION_S
        return None if is_idle else dialog


_by_connections: WeakKeyDictionary[Connections, _Dialogs] = WeakKeyDictionary()
"""The dialogs of each event loop, by the loop's connections."""


class Upstream:
    """Calls another MCP server for one caller; all it raises is ExternalError.

    Unless `only_reads`, a call without an answer may have changed something, and errors
    say so.  `through` are the connections to use, by default those of the loop.
    """

    def __init__(
        self,
        site: Site,
        access_request: AccessRequest,
        through: Connections | None = None,
        *,
        only_reads: bool = True,
    ) -> None:
        self._site = site
        self._access_request = access_request
        self._only_reads = only_reads
        self._may_change = False
        self._connections = through or connections()
        self._dialogs = _by_connections.setdefault(self._connections, _Dialogs())
        self._key = site, access_request.principal.key
        self.server: Mapping[str, Any] = {}
        """The server's `name` and `version`, if a dialog began."""

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        mirrors: Sequence[MirroredParameter] = (),
        is_repeatable: bool = False,
        tell_progress: Progress | None = None,
    ) -> JsonObject:
        """Return the `CallToolResult` of a tool; headers repeat `mirrors`."""
        return await self._ask(
            "tools/call",
            {"name": name, "arguments": dict(arguments)},
            mirrors=mirrors,
            is_repeatable=is_repeatable,
            tell_progress=tell_progress,
        )

    async def list_tools(self) -> Listing:
        """Return the tools of all pages, up to `MAX_TOOLS`, `MAX_PAGES` and bytes."""
        tools: list[Any] = []
        cursors, params, size = set[str](), dict[str, object](), 0
        while True:
            page = await self._ask("tools/list", params, is_repeatable=True)
            listed, cursor = page.get("tools"), page.get("nextCursor")
            is_list = isinstance(listed, list)
            listed = [*map(_tool_members, listed or ())] if is_list else []
            tools += listed
            size += len(jsonrpc.write(listed))
            if cursor is None:
                return Listing(tools[:MAX_TOOLS], is_list and len(tools) <= MAX_TOOLS)
            is_new = isinstance(cursor, str) and cursor not in cursors
            is_full = len(tools) >= MAX_TOOLS or size > MAX_LIST_BYTES
            if not is_new or is_full or len(cursors) >= MAX_PAGES - 1:
                return Listing(tools[:MAX_TOOLS], False)
            cursors.add(cursor)
            params = {"cursor": cursor}

    async def _ask(self, method: str, params: JsonObject, **how: Any) -> JsonObject:
        try:
            return await self._ask_in_dialog(method, params, **how)
        except DialogRefused:
            # The server was restarted, or supports another revision now.
            self._dialogs.stateless.discard(self._site)
            self._dialogs.stateful.discard(self._site)
        try:
            return await self._ask_in_dialog(method, params, **how)
        except DialogRefused as refusal:
            raise self._failure(str(refusal)) from None

    async def _ask_in_dialog(
        self, method: str, params: JsonObject, **how: Any
    ) -> JsonObject:
        dialog = await self._find_dialog()
        try:
            return await self._send(dialog, method, params, **how)
        except DialogRefused:
            # Another call may have opened a new session meanwhile: keep that.
            if self._dialogs.sessions.get(self._key, (0, None))[1] is dialog:
                del self._dialogs.sessions[self._key]
            raise
        finally:
            if dialog.session and self._access_request.principal.anonymous:
                await self._end_session(dialog)

    async def _find_dialog(self) -> Dialog:
        dialogs = self._dialogs
        if self._site in dialogs.stateless:
            return Dialog(NEWEST_STATELESS, CLIENT)
        if self._access_request.principal.anonymous:
            # All anonymous callers have one key, but must not share a session.
            return await self._open_dialog()
        async with dialogs.locks.setdefault(self._key, asyncio.Lock()):
            dialog = dialogs.find_session(self._key) or await self._open_dialog()
            if not dialog.is_stateless:
                dialogs.keep_session(self._key, dialog)
            return dialog

    async def _open_dialog(self) -> Dialog:
        if self._site not in self._dialogs.stateful:
            dialog = Dialog(NEWEST_STATELESS, CLIENT)
            with suppress(DialogRefused, _Refusal):
                result = await self._send(dialog, "server/discover", {})
                versions = result.get("supportedVersions")
                if isinstance(versions, list) and NEWEST_STATELESS in versions:
                    self.server = _server_info(result)
                    self._dialogs.stateless.add(self._site)
                    return dialog
        dialog = Dialog(NEWEST_STATEFUL, CLIENT)
        result = await self._send(dialog, "initialize", dialog.initialize_params())
        dialog.version = str(result.get("protocolVersion"))[:40]
        self.server = _server_info(result)
        await self._post(dialog.notification_message("notifications/initialized", {}))
        self._dialogs.stateful.add(self._site)
        return dialog

    async def _end_session(self, dialog: Dialog) -> None:
        with suppress(ExternalError, TimeoutError):
            # The answer to our client waits for this.
            async with asyncio.timeout(END_S):
                await self._request("DELETE", dialog.headers())

    async def _send(
        self,
        dialog: Dialog,
        method: str,
        params: JsonObject,
        *,
        mirrors: Sequence[MirroredParameter] = (),
        is_repeatable: bool = True,
        tell_progress: Progress | None = None,
    ) -> JsonObject:
        request = dialog.request_message(
            method, params, mirrors=mirrors, wants_progress=tell_progress is not None
        )
        self._may_change = method == "tools/call" and not self._only_reads
        reader = _AnswerReader(request.identifier, tell_progress)
        answer = await self._post(request, reader, is_repeatable=is_repeatable)
        if not dialog.is_stateless and not dialog.session:
            dialog.session = answer.headers.get("mcp-session-id", "")
        elif answer.status == HTTPStatus.NOT_FOUND and dialog.session:
            raise DialogRefused(f"{self._site.title} ends each session at once.")
        message = None
        if answer.status not in _KEY_REFUSED:
            message = await _read_message(reader, answer)
        if message is None:
            raise self._no_answer(answer, dialog)
        if "error" in message:
            raise self._error_answer(message["error"])
        result = message.get("result")
        if not isinstance(result, dict):
            raise self._unreadable()
        return result

    def _no_answer(self, answer: SiteAnswer, dialog: Dialog) -> Exception:
        status, title = answer.status, self._site.title
        kind, possibly_done = ExternalError, False
        if status in _KEY_REFUSED:
            text = (
                f"{title} did not accept this site's key. Do not retry; tell the user."
            )
        elif status in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND):
            text, kind = f"{title} refused the request ({status}).", _Refusal
            if dialog.session and _refuses_all(answer.body):
                return DialogRefused(text)
            self._dialogs.sessions.pop(self._key, None)
            # The server may support another revision now: the next call asks.
            self._dialogs.stateless.discard(self._site)
        elif status in _REDIRECTS:
            location = answer.headers.get("location", "").partition("?")[0]
            location = answer.secrets.blot(location)
            text = (
                f"{title} answered {status}. Write the address in the settings as it"
                f" redirects: {visible(location)}"
            )
        elif status != HTTPStatus.OK:
            text, kind, possibly_done = f"{title} failed ({status}).", _Refusal, True
        elif answer.media_type == "text/event-stream":
            text, kind = f"{title} ended before it answered.", _Refusal
            possibly_done = True
        else:
            return self._unreadable()
        return self._failure(text, kind, possibly_done=possibly_done)

    def _error_answer(self, error: Any) -> Exception:
        error = error if isinstance(error, dict) else {}
        code = error.get("code")
        if code == UnsupportedProtocolVersion.code:
            return DialogRefused(
                f"{self._site.title} speaks no revision of MCP that this site does."
            )
        text = visible(str(error.get("message", "an error.")), MAX_MESSAGE)
        outcome = Outcome.OTHER_SITE
        if code == InvalidParams.code:
            outcome = Outcome.TOOL_ERROR
        return _Refusal(f"{self._site.title}: {text}", outcome)

    def _failure(
        self,
        text: str,
        kind: type[ExternalError] = ExternalError,
        *,
        possibly_done: bool = False,
    ) -> ExternalError:
        doubt = POSSIBLY if possibly_done and self._may_change else ""
        return kind(text + doubt, Outcome.OTHER_SITE)

    def _unreadable(self) -> ExternalError:
        doubt = POSSIBLY if self._may_change else ""
        text = f"The answer of {self._site.title} cannot be read.{doubt}"
        return _Refusal(text, Outcome.SHAPE)

    async def _post(
        self,
        message: ClientRequest,
        reader: _AnswerReader | None = None,
        *,
        is_repeatable: bool = True,
    ) -> SiteAnswer:
        return await self._request(
            "POST",
            message.headers,
            body=message.body,
            reader=reader,
            idempotent=is_repeatable,
        )

    async def _request(self, method: str, headers: Any, **request: Any) -> SiteAnswer:
        site_request = SiteRequest(
            method=method, path="", headers=headers, log_path="MCP", **request
        )
        try:
            return await self._connections.call_site(
                self._site, site_request, self._access_request
            )
        except EgressError as error:
            raise site_failure(self._site, error, not self._may_change) from None


class _Refusal(ExternalError):
    """The server answered with an error."""


_KEY_REFUSED: Final = frozenset({401, 403})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TOOL_MEMBERS: Final = (
    *("name", "title", "description", "inputSchema", "outputSchema"),
    *("annotations", "execution"),
)


def _tool_members(tool: Any) -> Any:
    """Return a tool with only the members that are used; None if it is no object."""
    if not isinstance(tool, dict):
        return None
    return {name: tool[name] for name in _TOOL_MEMBERS if name in tool}


def _refuses_all(body: bytes) -> bool:
    """Whether an answer is an error of the connection, so that no request has run."""
    with suppress(ParseError):
        message = jsonrpc.read(body)
        if isinstance(message, dict) and "error" in message:
            # The SDK for Python has “server-error” in the place of null.
            return message.get("id") in (None, "server-error")
    return False


async def _read_message(reader: _AnswerReader, answer: SiteAnswer) -> Any:
    """Return the message that answers, without secrets; None if there is none.

    A large message is read in a thread.
    """
    if reader.message is not None:
        return answer.secrets.blot(reader.message)
    data = reader.data or answer.body

    def read() -> Any:
        with suppress(ParseError):
            message = jsonrpc.read(data)
            if is_answer_to(message, reader.identifier):
                return answer.secrets.blot(message)
        return None

    return read() if len(data) < IN_THREAD else await asyncio.to_thread(read)


class _AnswerReader:
    """Takes pieces of a stream until one request is answered; it is an `EventTaker`."""

    def __init__(self, identifier: int | None, tell_progress: Progress | None) -> None:
        self.message: Any = None
        """The answer."""
        self.data = b""
        """A large event with the answer, as bytes."""
        self.identifier = identifier
        self._tell_progress = tell_progress
        self._events = EventReader()

    def __call__(self, piece: bytes, *, secrets: Secrets) -> bool:
        """Take a piece; return whether the answer is complete."""
        for data in self._events.read_events(piece):
            if len(data) >= IN_THREAD:
                # Only answers are so large; `_read_message` reads them in a thread.
                if b'"result"' in data or b'"error"' in data:
                    self.data = data
                    return True
                continue
            with suppress(ParseError):
                message = jsonrpc.read(data)
                if is_answer_to(message, self.identifier):
                    self.message = message
                    return True
                self._pass_progress(message, secrets)
        return False

    def _pass_progress(self, message: Any, secrets: Secrets) -> None:
        tell = self._tell_progress
        params = message.get("params") if isinstance(message, dict) else None
        if tell is None or not isinstance(params, dict):
            return
        if params.get("progressToken") != self.identifier:
            return
        done, total, text = map(params.get, ("progress", "total", "message"))
        if _is_number(done) and (total is None or _is_number(total)):
            line = secrets.blot(text) if isinstance(text, str) else None
            tell(done, total, line and visible(line, MAX_MESSAGE))


def _is_number(value: Any) -> TypeGuard[float]:
    # Some clients cannot read larger numbers.
    return type(value) in (int, float) and abs(value) <= LARGEST_MIRRORED


def _server_info(result: JsonObject) -> Mapping[str, Any]:
    meta = result.get("_meta")
    in_meta = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
    info = in_meta or result.get("serverInfo")
    return info if isinstance(info, dict) else {}
