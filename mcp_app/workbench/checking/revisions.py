"""A short conversation in each revision: does it begin, list, and open a stream?

No tool is called.  What a session was opened for is closed again.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.interface.server import VERSION
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import PREFIX
from mcp_app.protocol.revisions import REVISIONS, Revision
from mcp_app.workbench.checking.client import Reply, Request, send
from mcp_app.workbench.checking.findings import Finding, Grade
from mcp_app.workbench.checking.observing import messages_of

CLIENT: Final = {"name": "mcp_check", "version": VERSION}
LISTS: Final = ("tools", "resources", "prompts")
"""Capabilities with a list, of which the first is asked for."""
STREAM: Final = "a stream"
_UNAUTHORIZED: Final = 401
_TOO_MANY: Final = 429
_JSON: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a conversation, and what came of it."""

    revision: str
    method: str
    reply: Reply
    result: JsonObject | None

    @property
    def is_fine(self) -> bool:
        return self.result is not None


@dataclass(frozen=True, slots=True)
class Conversations:
    """Speaks to one server; `shown` are headers with the credential, or nothing."""

    url: str
    tls: ssl.SSLContext
    shown: Mapping[str, str] = field(default_factory=dict, repr=False)
    streams: bool = True

    def all(self) -> list[Step]:
        """Speak in each revision, the newest last; blocks."""
        return [step for each in REVISIONS.values() for step in self._speak(each)]

    def _speak(self, revision: Revision) -> Iterator[Step]:
        return (
            self._in_session(revision)
            if revision.sessions
            else self._without_session(revision)
        )

    def _in_session(self, revision: Revision) -> Iterator[Step]:
        asked = {
            "protocolVersion": revision.version,
            "capabilities": {},
            "clientInfo": CLIENT,
        }
        opened = self._step(revision, "initialize", asked, {})
        yield opened
        session = opened.reply.headers.get("mcp-session-id")
        if not opened.is_fine or session is None:
            return
        headers = {"Mcp-Session-Id": session}
        if revision.version_header:
            headers["MCP-Protocol-Version"] = revision.version
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self._send(headers, note)
        yield self._step(revision, "ping", {}, headers)
        yield from self._list(revision, opened, {}, headers)
        if self.streams:
            events = {**headers, "Accept": "text/event-stream"}
            yield _opened(revision, self._send(events, None, "GET", first=True))
        self._send(headers, None, "DELETE")

    def _without_session(self, revision: Revision) -> Iterator[Step]:
        meta = {
            f"{PREFIX}protocolVersion": revision.version,
            f"{PREFIX}clientInfo": CLIENT,
            f"{PREFIX}clientCapabilities": {},
        }
        headers = {"MCP-Protocol-Version": revision.version}
        found = self._step(revision, "server/discover", {"_meta": meta}, headers)
        yield found
        if not found.is_fine:
            return
        yield from self._list(revision, found, {"_meta": meta}, headers)
        if self.streams:
            method = "subscriptions/listen"
            asked = {"_meta": meta, "notifications": {"toolsListChanged": True}}
            message = _request(method, asked)
            own = {**headers, "Mcp-Method": method}
            yield _opened(revision, self._send(own, message, first=True))

    def _list(
        self,
        revision: Revision,
        begun: Step,
        params: JsonObject,
        headers: Mapping[str, str],
    ) -> Iterator[Step]:
        offered = (begun.result or {}).get("capabilities") or {}
        for each in LISTS:
            if each in offered:
                yield self._step(revision, f"{each}/list", params, headers)
                return

    def _step(
        self,
        revision: Revision,
        method: str,
        params: JsonObject,
        headers: Mapping[str, str],
    ) -> Step:
        own = {**headers, "Mcp-Method": method} if revision.stateless else headers
        reply = self._send(own, _request(method, params))
        results = [
            each["result"]
            for each in messages_of(reply)
            if isinstance(each.get("result"), dict)
        ]
        return Step(revision.version, method, reply, results[0] if results else None)

    def _send(
        self,
        headers: Mapping[str, str],
        message: JsonObject | None,
        method: str = "POST",
        *,
        first: bool = False,
    ) -> Reply:
        body = b"" if message is None else jsonrpc.write(message)
        both = {**_JSON, **headers, **self.shown}
        asked = Request(self.url, both, body, method=method, first=first)
        return send(asked, self.tls)


def _request(method: str, params: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _opened(revision: Revision, reply: Reply) -> Step:
    kind = reply.headers.get("content-type", "")
    fine = reply.status == 200 and kind.startswith("text/event-stream")  # noqa: PLR2004
    return Step(revision.version, STREAM, reply, {} if fine else None)


def judge_revisions(steps: Iterable[Step], *, shown: bool = False) -> list[Finding]:
    """Return what is found: one finding for each step that failed, or a good one.

    `shown` says whether there was a token.
    """
    told = list(steps)
    failed = [each for each in told if not each.is_fine]
    if shown and any(each.reply.status == _UNAUTHORIZED for each in failed):
        said = _("The server does not accept the token, so nothing was tried.")
        why = _(
            "The token has expired, or it is for other servers or networks, or the"
            " server accepts no access tokens."
        )
        return [Finding("revisions", Grade.UNKNOWN, said, why)]
    if any(each.reply.status == _UNAUTHORIZED for each in failed):
        said = _("The server asks who is calling, so nothing was tried.")
        why = _("Name a user with --user, or put a token into MCP_TOKEN.")
        return [Finding("revisions", Grade.UNKNOWN, said, why)]
    if any(each.reply.status == _TOO_MANY for each in failed):
        said = _("The server refused some requests of clients as too many at once.")
        why = _("Its rates may be low, or others call as the same person. Try again.")
        return [Finding("revisions", Grade.UNKNOWN, said, why)]
    if failed:
        return [_failed(each) for each in failed]
    versions: dict[str, Any] = dict.fromkeys(each.revision for each in told)
    said = _("Clients of these revisions are served: %(versions)s.")
    return [Finding("revisions", Grade.GOOD, said % {"versions": ", ".join(versions)})]


def _failed(step: Step) -> Finding:
    said = _("In revision %(version)s, %(method)s failed (status %(status)d): %(text)s")
    errors = [each.get("error") for each in messages_of(step.reply)]
    told = [each.get("message") for each in errors if isinstance(each, dict)]
    text = str(told[0]) if told else step.reply.detail or step.reply.text
    named = {
        "version": step.revision,
        "method": step.method,
        "status": step.reply.status,
        "text": visible(text[:200]),
    }
    why = _("Clients that speak this revision cannot use the server.")
    return Finding("revisions", Grade.PROBLEM, said % named, why)
