"""The interfaces that the server room needs from rooms above it, and `Adapters`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp_app.protocol.json_types import JsonObject

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from mcp_app.audit.call_log import CallLog
    from mcp_app.auth.permissions import RightsCache
    from mcp_app.auth.users import UserRows
    from mcp_app.catalog.runnable import Runnable
    from mcp_app.catalog.snapshot import ToolEntry
    from mcp_app.conf import Limits
    from mcp_app.egress.callbacks import Callback
    from mcp_app.protocol.events import Occurred
    from mcp_app.protocol.tasks import NewTask, TaskRecord
    from mcp_app.protocol.webhooks import NewWebhook
    from mcp_app.server.conversation import QuestionPlaces, RequestState, StateSealer
    from mcp_app.server.request import Request
    from mcp_app.server.run import Run
    from mcp_app.streams.event_subscriptions import Refusal, Stored
    from mcp_app.streams.log_writer import Beside
    from mcp_app.streams.occurrences import OutboxState, Portion
    from mcp_app.streams.open_session import Opening, OpenSession
    from mcp_app.streams.questions import OpenQuestions
    from mcp_app.streams.steps import StoredSteps

Value = TypeVar("Value")


class Outgoing(Protocol):
    """The way back to the client, while its request runs; used on the loop only."""

    @property
    def streams(self) -> bool:
        """Whether the client takes messages before the answer."""

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Queue a notification or a question, encoded.

        `beside` writes rows that belong to the message, if the message is logged.
        """

    def reconnect(self, after_ms: int) -> None:
        """Close the connection if the client can fetch the rest after so many ms.

        Earlier messages are sent first.
        """


class ToolRates(Protocol):
    """Limits how often a person calls a tool."""

    def wait_for_tool(self, person: str, entry: ToolEntry) -> int:
        """Charge a person for a call; return how many seconds to wait instead, or 0."""

    def sentence(self, entry: ToolEntry, wait: int) -> str:
        """Return the text for a model that has to wait."""


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

    async def subscribe(self, session: OpenSession, uri: str, limit: int) -> bool:
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
        """Store and run a task; return the reason if the caller has too many."""

    async def find(self, public_id: str) -> TaskRecord | None:
        """Return a task that has not expired."""

    async def list_of(
        self, server: str, person: str, before: int | None, limit: int
    ) -> Sequence[TaskRecord]:
        """Return the tasks of a person, the newest first, before a key."""

    async def wait(self, record: TaskRecord, seconds: float) -> TaskRecord | None:
        """Return the task when it has changed, or after so many seconds."""

    async def answer(self, record: TaskRecord, replies: JsonObject) -> None:
        """Store answers to a task's questions; after the last the task goes on."""

    async def cancel(self, record: TaskRecord, message: str) -> bool:
        """End a task and stop its code; return whether the task was still open."""

    async def let_go(self, record: TaskRecord) -> None:
        """Drop a result that its client has, if the client does not know the task."""


class Events(Protocol):
    """Reads the outbox."""

    async def current_state(self, topic: str, min_number: int = 0) -> OutboxState:
        """Return the last numbers, with `last` for this topic only.

        `min_number` may come from another process: the state is at least as new.
        """

    async def load(self, topic: str, after: int, limit: int) -> Portion:
        """Return the occurrences after a number, `limit` at most."""

    async def load_latest(self, topic: str, limit: int) -> Sequence[Occurred]:
        """Return the latest occurrences, in the order of their numbers."""

    async def last_before(self, topic: str, after: int, age_ms: int) -> int:
        """Return the last number above `after` older than `age_ms`, 0 without one."""

    async def wait(self, topics: Collection[str], seconds: float) -> bool:
        """Return at the next event of these topics, or after so many seconds.

        Return False if no request should wait here any more.
        """

    async def renew_request(self, request: Request) -> Request:
        """Return a request with current rights; raise `EventError` without access."""


class Webhooks(Protocol):
    """Keeps webhook subscriptions."""

    async def subscribe(
        self, callback: Callback, new: NewWebhook
    ) -> Stored | Refusal | str:
        """Store or refresh a subscription if its receiver agrees, or say why not."""

    async def end(self, public_id: str) -> bool:
        """Delete a subscription; return whether there was one."""


class Tracing(Protocol):
    """Records requests, and what they wait for, as spans."""

    def start_request(self, run: Run) -> Span | None:
        """Start the span of a request, None if it is not recorded."""

    def record_request(self, run: Run, span: Span) -> AbstractContextManager[None]:
        """Make a span the current one, and end it with the outcome of the request."""

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
        """Store the progress of the run, or drop it; used on the loop."""


class UserCode(Protocol):
    """Runs user code."""

    def inside(
        self, manager: Callable[..., AbstractContextManager[object]]
    ) -> UserCode:
        """Return the same with one more context manager, which needs a thread."""

    def nothing_around(self, runnable: Runnable[Any]) -> bool:
        """Whether an async function may be awaited directly."""

    async def run(
        self,
        run: Run,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Value],
    ) -> Value:
        """Run a function as declared, on the loop or in a thread, and convert there."""

    async def call(self, run: Run, function: Callable[[], Value]) -> Value:
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
        """Do the same for a coroutine: the transaction is that of its thread."""


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
    """None if calls do not run in the background, such as in *Try it*."""
    webhooks: Webhooks | None = None
    """None in *Try it*, too, and if nothing can be posted."""
    tracing: Tracing | None = None
    """None if nothing is recorded."""
