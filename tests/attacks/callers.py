"""Who calls in the matrix: with real tokens, at real servers, and with real bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeAlias

from django.contrib.auth import get_user_model
from django.utils import timezone

from mcp_app.models import AccessToken, Server
from mcp_app.pools.database import writer
from mcp_app.transports.addresses import endpoint
from mcp_app.transports.asgi_types import Receive, Scope, Send
from tests.asgi_client import BASE_HEADERS, Client, Visit, routing_headers
from tests.attacks import matrix
from tests.auth.apps import Program, end
from tests.auth.issuers.loopback_issuer import LoopbackIssuer
from tests.behaviours import Stage
from tests.oauth.program import ORIGIN
from tests.old_client import OldClient
from tests.published import published
from tests.wire.middleware import WireCheck

SLUG: Final = "by-token"
PATHS: Final[Mapping[str, str]] = {matrix.CLOSED: "closed", matrix.LACKING: "lacking"}
UNKNOWN: Final = "u" * 43
NO_EVENT: Final = "nothing.1.1"
Bytes: TypeAlias = tuple[int, list[tuple[str, str]], bytes]


@dataclass(frozen=True, slots=True)
class Callers:
    """The tokens of those who call; nobody has none."""

    tokens: Mapping[str, str]

    def headers(self, caller: str) -> dict[str, str]:
        token = self.tokens.get(caller)
        return {} if token is None else {"authorization": f"Bearer {token}"}

    def path(self, caller: str) -> str:
        return f"/mcp/{PATHS.get(caller, SLUG)}"


@asynccontextmanager
async def callers(issuer: LoopbackIssuer | None = None) -> AsyncIterator[Callers]:
    """Make users, tokens and servers; remove them at the end.

    With an issuer, programs sign in, too, and its tokens are good.
    """
    users: Any = get_user_model()
    # She may do all, and he nothing that needs a right.
    ana, ben = users(username="ana", is_superuser=True), users(username="ben")
    servers = [
        Server(
            slug=SLUG,
            access="token" if issuer is None else "token oauth keycloak",
            page_size=1000,
            listing="search",
            listed_tags="private",
        ),
        Server(slug="lacking", access="token nothing"),
        *([Server(slug="elsewhere", access="oauth")] if issuer else []),
    ]

    def made() -> Callers:
        for each in (ana, ben):
            each.save()
        for server in servers:
            published(server)
        tokens = {
            matrix.OTHER_USER: _token(ben),
            matrix.OTHER_CLIENT: _token(ana),
            **_replaced(ana),
        }
        for closed in (matrix.CLOSED, matrix.LACKING):
            tokens[closed] = tokens[matrix.OWN]
        if issuer is not None:
            tokens |= _of_apps(servers[0], servers[-1], ana)
            tokens[matrix.ISSUED] = issuer.token(aud=f"{ORIGIN}/mcp/{SLUG}")
        return Callers(tokens)

    def gone() -> None:
        for each in (*servers, ana, ben):
            each.delete()

    try:
        yield await writer.run(made)
    finally:
        await writer.run(gone)


def _token(user: Any) -> str:
    return AccessToken.objects.make(user=user, name="laptop", may="change")[1]


def _of_apps(own: Server, elsewhere: Server, user: Any) -> dict[str, str]:
    programs = {
        matrix.APP: Program(own, user),
        matrix.APP_ELSEWHERE: Program(elsewhere, user),
        matrix.APP_ENDED: Program(own, user),
    }
    keys = {caller: each.sign_in().access for caller, each in programs.items()}
    end(programs[matrix.APP_ENDED].row.token)
    return keys


def _replaced(user: Any) -> dict[str, str]:
    """Return two tokens of one family, the first of which was revoked."""
    row, revoked = AccessToken.objects.make(user=user, name="laptop", may="change")
    _, own = row.replace(timedelta(hours=1))
    # Long ago: what is open is not ended by it any more.
    row.refresh_from_db()
    earlier = timezone.now() - timedelta(hours=1)
    AccessToken.objects.filter(pk=row.pk).update(revoked=earlier)
    return {matrix.OWN: own, matrix.REVOKED: revoked}


async def without_streams(scope: Scope, receive: Receive, send: Send) -> None:
    """The endpoint as the view calls it under WSGI."""
    slug = scope["path"].removeprefix("/mcp/")
    await endpoint(scope, receive, send, slug=slug, streams=False)


def posted(
    application: WireCheck, path: str, headers: Mapping[str, str], body: object
) -> Visit:
    return _visit(application, "POST", path, headers, json.dumps(body).encode())


def _visit(
    application: WireCheck,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> Visit:
    named = {**BASE_HEADERS, **headers}
    return Visit(application, method, path, list(named.items()), [body])


def sent(
    application: WireCheck,
    row: str,
    path: str,
    headers: Mapping[str, str],
    what: Any,
    event: str = NO_EVENT,
) -> Visit:
    if row in (matrix.GET, matrix.RESUME, matrix.DELETE):
        last = {"last-event-id": event} if row == matrix.RESUME else {}
        method = "DELETE" if row == matrix.DELETE else "GET"
        return _visit(application, method, path, {**headers, **last})
    return posted(application, path, headers, what)


async def read(visit: Visit) -> Bytes:
    """Return what was answered; a stream that stands is left at its first bytes."""
    await visit.begun()
    if visit.headers.get("content-type") == "text/event-stream" and visit.status == 200:
        await visit.opened()
        if not visit.ended:
            await visit.leave()
    else:
        await visit.body()
    return visit.status, sorted(visit.headers.items()), visit.raw


@dataclass(slots=True, kw_only=True)
class Victim:
    """Whose things others try to reach: a stream, a call that runs, a question."""

    transport: str
    version: str
    path: str
    """Where the messages of its session go."""
    headers: dict[str, str]
    """Those of its session, without who it is."""
    named: matrix.Named = field(default_factory=matrix.Named)
    event: str = NO_EVENT
    """The newest id of an event that it got."""
    open: list[Visit] = field(default_factory=list)
    client: Client | None = None
    old: OldClient | None = None

    def untouched(self) -> bool:
        """Whether nothing came to it, and nothing of it has ended."""
        return all(each._sent.empty() and not each.ended for each in self.open)

    def unknown(self) -> tuple[str, dict[str, str]]:
        """Return path and headers of a session that there is not."""
        path = self.path.partition("session_id=")
        named = path[0] + path[1] + (UNKNOWN if path[1] else "")
        headers = dict(self.headers)
        if "mcp-session-id" in headers:
            headers["mcp-session-id"] = UNKNOWN
        return named, headers

    @property
    def secrets(self) -> list[str]:
        """What nobody else may ever read."""
        session = self.headers.get("mcp-session-id") or self.path.partition("=")[2]
        values = (session, self.event, self.named.question)
        return [str(each) for each in values if each not in ("", NO_EVENT)]


async def victim(
    transport: str,
    version: str,
    application: WireCheck,
    who: Callers,
    stage: Stage,
    owner: str = matrix.OWN,
) -> Victim:
    headers = who.headers(owner)
    if transport == matrix.SSE:
        return await _on_sse(version, application, who.path(owner), headers, stage)
    client = Client(application, version, path=who.path(owner), headers=headers)
    await client.open()
    found = Victim(
        transport=transport,
        version=version,
        path=client.path,
        headers=client._era_headers(),
        client=client,
    )
    calls = ("waits", "roots") if client.revision.sessions else ("waits",)
    streams = transport == matrix.HTTP
    if streams and client.revision.sessions:
        found.open.append(await client.standing())
    elif streams:
        listening = client.begin(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
        )
        await listening.message()
        found.open.append(listening)
    for name in calls if streams else calls[:1]:
        call = {"name": name, "arguments": {}}
        found.open.append(client.begin("tools/call", call, id=f"call of {name}"))
    await stage.begun()
    question = "nobody asked"
    if streams and client.revision.sessions:
        asked = found.open[-1]
        told = await asked.message()
        assert told is not None
        question = told["id"]
        found.event = (asked.ids or [NO_EVENT])[-1]
    found.named = matrix.Named("call of waits", question)
    for each in found.open:
        # What begins a stream, such as an event that has an id alone.
        await each.quiet()
    return found


async def _on_sse(
    version: str,
    application: WireCheck,
    path: str,
    headers: dict[str, str],
    stage: Stage,
) -> Victim:
    old = OldClient(application, version, path=f"{path}/sse", headers=headers)
    await old.open()
    await old.begin("tools/call", {"name": "waits", "arguments": {}}, id="of waits")
    await stage.begun()
    await old.begin("tools/call", {"name": "roots", "arguments": {}}, id="of roots")
    question = (await old.told("roots/list"))["id"]
    await old.stream.quiet()
    return Victim(
        transport=matrix.SSE,
        version=version,
        path=old.messages,
        headers={},
        named=matrix.Named("of waits", question),
        open=[old.stream],
        old=old,
    )


def of_era(
    version: str, row: str, what: Any, client: Client | None
) -> matrix.JsonObject:
    """Return a message, and what the revision adds to a request of its own."""
    if client is None or not client.revision.stateless or not isinstance(what, dict):
        return {"message": what, "headers": {}}
    if "params" in what and "id" in what:
        what = {**what, "params": {**what["params"], "_meta": client.meta()}}
    return {"message": what, "headers": routing_headers(what)}


def initializing(version: str) -> matrix.JsonObject:
    return {
        "jsonrpc": "2.0",
        "id": "id of initialize",
        "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "drill-client", "version": "1.0"},
        },
    }


def whole(row: str, named: matrix.Named, version: str) -> Any:
    return initializing(version) if row == "initialize" else matrix.message(row, named)
