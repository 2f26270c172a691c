"""One request being served: who asks, in which revision, and the ways back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp_app.interface.context import LEVELS, Client
from mcp_app.interface.definitions import Definition
from mcp_app.interface.outcomes import Outcome
from mcp_app.interface.principal import Principal
from mcp_app.interface.rights import Asked, Rights
from mcp_app.protocol.errors import InvalidRequest
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import CLIENT_CAPABILITIES, CLIENT_INFO
from mcp_app.protocol.revisions import Revision

if TYPE_CHECKING:
    from mcp_app.audit.call_log import CallLog
    from mcp_app.auth.permissions import KeptRights, UserRows
    from mcp_app.catalog.runnable import Runnable
    from mcp_app.catalog.snapshot import Catalog, Entry
    from mcp_app.conf import Limits
    from mcp_app.protocol.headers import Headers
    from mcp_app.server.request_state import StateSealer
    from mcp_app.streams.appending import Beside
    from mcp_app.streams.open_session import Opening, OpenSession
    from mcp_app.streams.questions import OpenQuestions
    from mcp_app.streams.steps import StoredSteps

Returned = TypeVar("Returned")

SEVERITY: Mapping[str, int] = {level: index for index, level in enumerate(LEVELS)}


class End(Enum):
    """The ways in which a call can end without its answer."""

    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    CLIENT_GONE = "client gone"
    SHUT_DOWN = "shut down"
    STOPPED = "stopped"
    """By the people who run the site; the client is told."""


class Outgoing(Protocol):
    """The way back to the client, while its request runs; used on the loop only."""

    @property
    def streams(self) -> bool:
        """Whether the client takes messages before the answer."""

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Queue a notification or a question, encoded.

        `beside` writes rows that belong to it, where it is logged.
        """

    def reconnect(self, after_ms: int) -> None:
        """Close the connection if the client can come back for the rest, so much later.

        It has then what was sent before.
        """


class NoWayBack:
    """The way back of a notification, and of a client that takes one answer only."""

    streams = False

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Drop the message: nobody is there to get it."""

    def reconnect(self, after_ms: int) -> None:
        """Nobody is there to come back."""


class CallState(Protocol):
    """What a call of user code has needed so far: its time, questions and messages."""

    @property
    def needed(self) -> BaseException | None:
        """What the request must end with, once a question has no answer."""

    def close(self) -> None:
        """Free it: the call is over."""


class Handshakes(Protocol):
    """Where `initialize` leaves what it agrees on."""

    async def create(self, opening: Opening) -> str:
        """Open a session and return its id."""


class Sessions(Handshakes, Protocol):
    """Where sessions are kept: in rows, or as long as a connection lasts."""

    async def opened(self, session: OpenSession) -> None:
        """Wait until the client has finished its side of the handshake."""

    async def set_level(self, session: OpenSession, level: int) -> None:
        """Keep the least severe level that the client wants."""

    async def subscribe(self, session: OpenSession, uri: str, most: int) -> bool:
        """Keep that the session watches a URI; return whether there was room."""

    async def unsubscribe(self, session: OpenSession, uri: str) -> None:
        """Keep that the session no longer watches a URI."""


class Topics(Protocol):
    """The way to say that something changed."""

    def tell(self, what: str, server: str) -> None:
        """Write the change and announce it; returns at once."""


class UserCode(Protocol):
    """Where user code runs."""

    def nothing_around(self, runnable: Runnable[Any]) -> bool:
        """Whether an async function may be awaited as it is."""

    async def run(
        self,
        exchange: Exchange,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Returned],
    ) -> Returned:
        """Run it in its own way, on the loop or in a thread, and convert there."""

    async def call(self, function: Callable[[], Returned]) -> Returned:
        """Run a blocking function in a thread: the call's own where it has one."""

    def call_here(self, function: Callable[[], Returned]) -> Returned:
        """Run a blocking function in this thread."""

    def waiting(self) -> AbstractContextManager[None]:
        """Let another thread work while this one waits for an answer."""

    def refuse_in_transaction(self) -> None:
        """Raise `QuestionInTransaction` where a database transaction is open."""

    async def refuse_in_outer_transaction(self) -> None:
        """The same for a coroutine, whose transaction is that of its thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """What the server room is handed, so that it knows neither rows nor threads."""

    loop: asyncio.AbstractEventLoop
    thread: int
    """Where the loop runs (`threading.get_ident`)."""
    handshakes: Handshakes
    sessions: Sessions
    questions: OpenQuestions
    steps: StoredSteps
    users: UserRows
    rights: KeptRights
    topics: Topics
    user_code: UserCode
    post: Callable[..., object]
    """Call a function on the loop, from any thread, in the order of posting."""
    sealer: StateSealer
    cursor_keys: Sequence[bytes]
    limits: Limits
    coerce: bool
    audit: CallLog | None = None
    """None where the site keeps no calls."""


@dataclass(eq=False, kw_only=True)
class Exchange:
    """A request on its way through `server.dispatch`.

    `session` is None in the stateless era and for `initialize`; `headers` is None
    where the transport has none.  What a call may need later has its default on the
    class, so that a new exchange sets only what it is given.
    """

    adapters: Adapters
    catalog: Catalog
    revision: Revision
    principal: Principal
    rights: Rights
    request_id: str | int
    method: str
    params: JsonObject
    meta: JsonObject
    outgoing: Outgoing
    session: OpenSession | None = None
    headers: Headers | None = None
    path: str = ""
    renew: Callable[[Exchange], Awaitable[None]] | None = None
    """Brings it up to date where it has waited; raises what refuses it now."""
    streams: bool = True
    """Whether the way in can keep a stream open, for this request or another one."""
    end: End | None = field(init=False, default=None)
    task: asyncio.Task[Any] | None = field(init=False, default=None)
    opened_session: str | None = field(init=False, default=None)
    """The id of the session that `initialize` opened, for its header."""
    _client: Client | None = field(init=False, default=None)
    began: float = field(init=False, default=0.0)
    """When the call began, on the loop's clock."""
    seconds: float | None = field(init=False, default=None)
    """The time of the user code that runs; None where none does."""
    untouched: bool = field(init=False, default=False)
    """No place was free for user code: nothing has run."""
    queued: bool = field(init=False, default=False)
    """The call waits for a thread."""
    core: CallState | None = field(init=False, default=None)
    """None for a call that needed nothing so far."""
    entry: Entry[Any, Any] | None = field(init=False, default=None)
    """What the call is of, once that is found."""
    outcome: str = field(init=False, default=Outcome.ANSWERED.value)
    said: str = field(init=False, default="")
    """What the client was told of a failure."""
    failure: str = field(init=False, default="")
    """The id by which a failure is found in the log."""
    _on_end: tuple[Callable[[], object], ...] = field(init=False, default=())

    @property
    def client(self) -> Client:
        """The client as it describes itself."""
        if self._client is None:
            self._client = self.session.client if self.session else client_of(self.meta)
        return self._client

    @property
    def own_session(self) -> OpenSession:
        """The session, for the methods that only the stateful era has."""
        if self.session is None:
            raise InvalidRequest(f"{self.method} needs a session: initialize first.")
        return self.session

    @property
    def host(self) -> str:
        """The host that the client named, "" where its transport has none."""
        return (self.headers.get(b"host") or "") if self.headers is not None else ""

    def sees(self, definition: Definition) -> bool:
        """Whether a definition exists for the principal."""
        scope = self.principal.scope
        if scope is not None and not scope.includes(definition):
            return False
        return self.rights.meet(definition.demands)

    async def allows(
        self, definition: Definition, arguments: Mapping[str, object]
    ) -> bool:
        """Whether the principal may use what it sees with these arguments."""
        rules = (*self.catalog.server.demands.rules, *definition.demands.rules)
        if not rules:
            return True
        asked = Asked(
            principal=self.principal,
            server=self.catalog.server.slug,
            name=definition.name,
            arguments=arguments,
        )
        return await self.adapters.rights.allow(rules, asked)

    def failed(self, outcome: Outcome, said: str = "") -> None:
        """Note what became of the call; what is noted first counts."""
        if self.outcome == Outcome.ANSWERED:
            self.outcome, self.said = outcome.value, said

    def stop(self, end: End) -> None:
        """End the call without its answer; the first end counts."""
        if self.end is None:
            self.end = end
            for tell in self._on_end:
                tell()
            if self.task is not None:
                self.task.cancel()

    def on_end(self, tell: Callable[[], object]) -> None:
        """Call a function when the call is ended; at once where it was."""
        self._on_end = (*self._on_end, tell)
        if self.end is not None:
            tell()


def client_of(meta: JsonObject) -> Client:
    """Return the client that the `_meta` of a stateless request describes."""
    return described_client(meta.get(CLIENT_INFO), meta.get(CLIENT_CAPABILITIES))


def described_client(info: object, capabilities: object) -> Client:
    """Return a client from its `Implementation` and `ClientCapabilities`."""
    named = info if isinstance(info, dict) else {}
    return Client(
        name=str(named.get("name", "")),
        version=str(named.get("version", "")),
        title=str(named.get("title", "")),
        capabilities=capabilities if isinstance(capabilities, dict) else {},
    )
