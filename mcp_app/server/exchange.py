"""One request while it is served: its caller, revision and way back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from mcp_app.interface.call_record import ANSWERED, Ending
from mcp_app.interface.context import LEVELS, Client
from mcp_app.interface.definitions import Definition
from mcp_app.interface.principal import AccessRequest, Principal, Rights
from mcp_app.pools.turns import GUESS, Owner
from mcp_app.protocol import results
from mcp_app.protocol.errors import InvalidRequest
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import CLIENT_CAPABILITIES, CLIENT_INFO
from mcp_app.protocol.revisions import Revision
from mcp_app.protocol.tasks import declares_tasks

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from mcp_app.audit.call_log import CallLog
    from mcp_app.auth.permissions import RightsCache
    from mcp_app.auth.users import UserRows
    from mcp_app.catalog.runnable import Runnable
    from mcp_app.catalog.snapshot import Catalog, Entry, ToolEntry
    from mcp_app.conf import Limits
    from mcp_app.egress.callbacks import Callback
    from mcp_app.protocol.events import Occurred
    from mcp_app.protocol.headers import Headers
    from mcp_app.protocol.tasks import Decision, NewTask, TaskRecord
    from mcp_app.protocol.webhooks import NewWebhook
    from mcp_app.server.conversation import QuestionPlaces, RequestState, StateSealer
    from mcp_app.streams.event_subscriptions import Refusal, Stored
    from mcp_app.streams.log_writer import Beside
    from mcp_app.streams.occurrences import OutboxState, Portion
    from mcp_app.streams.open_session import Opening, OpenSession
    from mcp_app.streams.questions import OpenQuestions
    from mcp_app.streams.steps import StoredSteps

Value = TypeVar("Value")

UNKNOWN_ADDRESS: Final = "@"
"""The key of the rate that all share whose address is not known (`CallerAddresses`)."""
IS_DRAWN: Final = "mcp_app.is_drawn"
"""The key of a connection's scope that has what was drawn for the span of a request."""
SEVERITY: Mapping[str, int] = {level: index for index, level in enumerate(LEVELS)}


class End(Enum):
    """The ways in which a call can end without its answer."""

    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    CLIENT_GONE = "client gone"
    SHUT_DOWN = "shut down"
    STOPPED = "stopped"
    """By staff of the site; the client gets an error."""


class Outgoing(Protocol):
    """The way back to the client, while its request runs; used on the loop only."""

    @property
    def streams(self) -> bool:
        """Whether the client takes messages before the answer."""

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Queue a notification or a question, encoded.

        `beside` writes rows that belong to it, if it is logged.
        """

    def reconnect(self, after_ms: int) -> None:
        """Close the connection if the client can fetch the rest after so many ms.

        Earlier messages are sent first.
        """


class NoWayBack:
    """A way back that drops all messages."""

    streams = False

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Drop the message."""

    def reconnect(self, after_ms: int) -> None:
        """Do nothing."""


class ToolRates(Protocol):
    """Limits how often a person calls a tool."""

    def wait_for_tool(self, person: str, entry: ToolEntry) -> int:
        """Charge a person for a call; return how many seconds to wait instead, or 0."""

    def sentence(self, entry: ToolEntry, wait: int) -> str:
        """Return what a model reads if it has to wait."""


class Handshakes(Protocol):
    """Opens sessions for `initialize`."""

    async def create(self, opening: Opening) -> str:
        """Open a session and return its id."""


class Sessions(Handshakes, Protocol):
    """Keeps sessions: in rows, or as long as a connection lasts."""

    async def wait_for_handshake(self, session: OpenSession) -> None:
        """Wait until the client has finished its side of the handshake."""

    async def set_level(self, session: OpenSession, level: int) -> None:
        """Keep the least severe level that the client wants."""

    async def subscribe(self, session: OpenSession, uri: str, most: int) -> bool:
        """Subscribe the session to a URI; return False if it has too many."""

    async def unsubscribe(self, session: OpenSession, uri: str) -> None:
        """End the session's subscription to a URI."""


class Topics(Protocol):
    """Announces changes that calls report."""

    def tell(self, what: str, server: str) -> None:
        """Write the change and announce it; returns at once."""


class Tasks(Protocol):
    """Keeps calls that run in the background."""

    async def create(self, new: NewTask) -> TaskRecord | str:
        """Store a task, and run it; return why not if the caller has too many."""

    async def find(self, public_id: str) -> TaskRecord | None:
        """Return a task that has not expired."""

    async def list_of(
        self, server: str, person: str, before: int | None, most: int
    ) -> Sequence[TaskRecord]:
        """Return the tasks of a person, the newest first, before a key."""

    async def wait(self, record: TaskRecord, seconds: float) -> TaskRecord | None:
        """Return the task when it has changed, or after so many seconds."""

    async def answer(self, record: TaskRecord, replies: JsonObject) -> None:
        """Store answers to its questions; after the last it goes on."""

    async def cancel(self, record: TaskRecord, message: str) -> bool:
        """End it, and return whether it had not ended; its code is stopped."""

    async def let_go(self, record: TaskRecord) -> None:
        """Keep no result whose client has it, and was told of no task."""


class Events(Protocol):
    """Reads the outbox."""

    async def current_state(self, topic: str, least: int = 0) -> OutboxState:
        """Return how far the numbers go, `last` of this topic alone.

        If another process has told of the number `least`, they go so far.
        """

    async def load(self, topic: str, after: int, most: int) -> Portion:
        """Return what happened after a number, `most` occurrences at most."""

    async def load_latest(self, topic: str, most: int) -> Sequence[Occurred]:
        """Return what happened last, in the order of numbers."""

    async def last_before(self, topic: str, after: int, age_ms: int) -> int:
        """Return the last number after another one that is older, 0 if none."""

    async def wait(self, topics: Collection[str], seconds: float) -> bool:
        """Return when something happened of these topics, or after so long.

        That is False if nobody should wait here any more.
        """

    async def renew_exchange(self, exchange: Exchange) -> Exchange:
        """Return a request as it would come now; raise `EventError` if it may not."""


class Webhooks(Protocol):
    """Keeps webhook subscriptions."""

    async def subscribe(
        self, callback: Callback, new: NewWebhook
    ) -> Stored | Refusal | str:
        """Insert or refresh it, once its receiver has agreed; else return why not."""

    async def end(self, public_id: str) -> bool:
        """Delete it; return whether there was one."""


class Tracing(Protocol):
    """Records requests, and what they wait for, as spans."""

    def start_request(self, exchange: Exchange) -> Span | None:
        """Start the span of a request, None if it is not recorded."""

    def record_request(
        self, exchange: Exchange, span: Span
    ) -> AbstractContextManager[None]:
        """Make a span the current one, and end it with what became of the request."""

    def record_questions(
        self, request: Span, methods: Sequence[str]
    ) -> AbstractContextManager[None]:
        """Record questions to the client, from their sending to their answers."""


class TaskRun(Protocol):
    """A run of a task, for the call that is made for it."""

    record: TaskRecord

    @property
    def request_state(self) -> RequestState:
        """The questions and answers so far."""

    def offer_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Store how far it is, or drop that; used on the loop."""


class UserCode(Protocol):
    """Runs user code."""

    def inside(
        self, manager: Callable[..., AbstractContextManager[object]]
    ) -> UserCode:
        """Return the same with a manager more around it, which needs a thread."""

    def nothing_around(self, runnable: Runnable[Any]) -> bool:
        """Whether an async function may be awaited directly."""

    async def run(
        self,
        exchange: Exchange,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Value],
    ) -> Value:
        """Run it as declared, on the loop or in a thread, and convert there."""

    async def call(self, exchange: Exchange, function: Callable[[], Value]) -> Value:
        """Run a blocking function in a thread: the call's own if it has one."""

    def call_here(self, function: Callable[[], Value]) -> Value:
        """Run a blocking function in this thread."""

    def wait_for(self, future: Future[Value]) -> Value:
        """Block this thread until a future of the loop is done; return its result."""

    def waiting(self) -> AbstractContextManager[None]:
        """Let another thread work while this one waits for an answer."""

    def refuse_in_transaction(self) -> None:
        """Raise `QuestionInTransaction` if a database transaction is open."""

    async def refuse_in_outer_transaction(self) -> None:
        """Do the same for a coroutine, whose transaction is its thread's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The parts that the server room uses without knowing rows or threads."""

    loop: asyncio.AbstractEventLoop
    thread: int
    """The loop's thread (`threading.get_ident`)."""
    handshakes: Handshakes
    sessions: Sessions
    questions: OpenQuestions
    places: QuestionPlaces
    steps: StoredSteps
    users: UserRows
    rights: RightsCache
    topics: Topics
    user_code: UserCode
    post: Callable[..., object]
    """Call a function on the loop, from any thread, in the order of posting."""
    sealer: StateSealer
    cursor_keys: Sequence[bytes]
    events: Events
    limits: Limits
    rates: ToolRates
    coerce: bool
    audit: CallLog | None = None
    """None if the call log is off."""
    tasks: Tasks | None = None
    """None where calls do not run in the background, such as in *Try it*."""
    webhooks: Webhooks | None = None
    """None there, too, and where nothing can be posted."""
    tracing: Tracing | None = None
    """None if nothing is recorded."""


@dataclass(eq=False, kw_only=True)
class Exchange:
    """A request on its way through `server.dispatch`.

    `session` is None in the stateless era and for `initialize`; `headers` is None
    if the transport has none.  Fields that a call may need later have class defaults,
    so that a new exchange sets few fields.
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
    person: str = ""
    """Whose rates and questions these are; "" if there are none, as on stdio."""
    connection: str | None = None
    """Names the connection of the request; None if its transport has only one."""
    renew: Callable[[Exchange], Awaitable[None]] | None = None
    """Updates it after a wait; raises the error if it is now refused."""
    streams: bool = True
    """Whether the transport can keep streams open, for this or another request."""
    end: End | None = field(init=False, default=None)
    task: asyncio.Task[Any] | None = field(init=False, default=None)
    opened_session: str | None = field(init=False, default=None)
    """The id of the session that `initialize` opened, for its header."""
    _client: Client | None = field(init=False, default=None)
    began: float = field(init=False, default=0.0)
    """When the call began, on the loop's clock."""
    seconds: float | None = field(init=False, default=None)
    """Time limit of the user code that runs; None if none does."""
    wide: bool = field(init=False, default=False)
    """Its arguments are many: threads check and write them."""
    written: tuple[bytes, int, str] | None = field(init=False, default=None)
    """What the call log has of them, if that was made before it is recorded."""
    renamed: bool = field(init=False, default=False)
    """Another tool was called by `call_tool`: headers mirror no parameter of it."""
    untouched: bool = field(init=False, default=False)
    """No thread was free, so no user code has run."""
    queued: bool = field(init=False, default=False)
    """The call waits for a thread."""
    task_run: TaskRun | None = field(init=False, default=None)
    """The run of a task that this call is; None for the call of a client."""
    core: Any = field(init=False, default=None)
    """Its `context.CallCore`; None for a call that needed nothing so far."""
    decision: Decision | None = field(init=False, default=None)
    """What a person must decide before the call runs; None until that is known."""
    entry: Entry[Any, Any] | None = field(init=False, default=None)
    """The called definition, once it is found."""
    ending: Ending = field(init=False, default=ANSWERED)
    """How it ended; `dispatch` alone says so, and a plain call for itself."""
    span: Span | None = field(init=False, default=None)
    """Its span if it is recorded."""
    is_drawn: bool | None = field(init=False, default=None)
    """What was drawn for its span already, None for nothing."""
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
    def owner(self) -> Owner:
        """Who asks, for work that is done in turn."""
        return Owner(self.person, self.principal.anonymous)

    @property
    def turn(self) -> str:
        """Whose turn it is for threads and places, "" for nobody in particular.

        Who has no known address is told apart by session, proxied address or
        connection.  Anybody can have many of these: they count for turns alone.
        """
        if self.person or self.connection is None:
            return self.person
        if self.session is not None:
            return f"{GUESS}session:{self.session.digest}"
        hops = self.headers.get(b"x-forwarded-for") if self.headers is not None else ""
        hop = (hops or "").rpartition(",")[2].strip()
        return f"{GUESS}{hop[:64] or self.connection}"

    @property
    def payer(self) -> str:
        """The key of the rates that are charged for a call, "" for none."""
        return self.person or ("" if self.headers is None else UNKNOWN_ADDRESS)

    @property
    def host(self) -> str:
        """The host that the client named, "" if its transport has none."""
        return (self.headers.get(b"host") or "") if self.headers is not None else ""

    def sees(self, definition: Definition) -> bool:
        """Whether a definition exists for the principal."""
        scope = self.principal.scope
        if scope is not None and not scope.includes(definition):
            return False
        return self.rights.meets_demands(definition.demands)

    def lacks_scope(self, definition: Definition) -> bool:
        """Whether a definition is hidden only because the token may change nothing."""
        scope = self.principal.scope
        hidden = scope is not None and scope.lacks_change(definition)
        return hidden and self.rights.meets_demands(definition.demands)

    @property
    def takes_tasks(self) -> bool:
        """Whether the client of a call wants, or takes, a task as the answer."""
        revision = self.revision
        if revision.task_extension:
            return declares_tasks(self.client.capabilities)
        # A server that has not said that it has tasks ignores that one is wanted.
        has_tasks = revision.task_requests and self.catalog.has_tasks
        return has_tasks and self.params.get("task") is not None

    def complete_result(
        self, result: JsonObject, hint: results.CacheHint | None = None
    ) -> JsonObject:
        """Add what the revision wants in every result, in place; return the result."""
        info = self.catalog.server_info(self.revision)
        return results.complete_result(result, self.revision, info, hint)

    async def allows_arguments(
        self, definition: Definition, arguments: Mapping[str, object]
    ) -> bool:
        """Whether the principal may use a definition with these arguments."""
        rules = (*self.catalog.server.demands.rules, *definition.demands.rules)
        if not rules:
            return True
        request = AccessRequest(
            principal=self.principal,
            server=self.catalog.server.slug,
            name=definition.name,
            arguments=arguments,
        )
        return await self.adapters.rights.allows_call(rules, request)

    def stop(self, end: End) -> None:
        """End the call without its answer; the first end counts."""
        if self.end is None:
            self.end = end
            for tell in self._on_end:
                tell()
            if self.task is not None:
                self.task.cancel()

    def add_end_callback(self, tell: Callable[[], object]) -> None:
        """Call a function when the call is ended; at once if it is."""
        self._on_end = (*self._on_end, tell)
        if self.end is not None:
            tell()


def client_of(meta: JsonObject) -> Client:
    """Return the client that the `_meta` of a stateless request describes."""
    return described_client(meta.get(CLIENT_INFO), meta.get(CLIENT_CAPABILITIES))


def described_client(info: object, capabilities: object) -> Client:
    """Return a client from its `Implementation` and `ClientCapabilities`."""
    members = info if isinstance(info, dict) else {}
    return Client(
        name=str(members.get("name", "")),
        version=str(members.get("version", "")),
        title=str(members.get("title", "")),
        capabilities=capabilities if isinstance(capabilities, dict) else {},
    )
