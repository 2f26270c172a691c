"""One client on one two-way channel of messages: both eras, and one table of ids."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_app.protocol import envelope, jsonrpc, negotiation
from mcp_app.protocol.envelope import Notification, Reply, Request
from mcp_app.protocol.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    ProtocolError,
    Unavailable,
)
from mcp_app.protocol.lines import Broken
from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL, Revision
from mcp_app.server import conversation, dispatch, subscriptions
from mcp_app.server.exchange import End, Exchange, NoWayBack
from mcp_app.streams.in_memory import MemoryQuestions, MemorySessions
from mcp_app.streams.listeners import LISTS
from mcp_app.transports.batches import Together, array
from mcp_app.transports.client_messages import cancelled_id
from mcp_app.transports.open_streams import ListenStream, OpenStream

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import Catalog
    from mcp_app.interface.principal import Principal
    from mcp_app.interface.rights import Rights
    from mcp_app.process.running import Answer, Waiting
    from mcp_app.process.runtime import Process
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.server.subscriptions import Interest
    from mcp_app.streams.appending import Beside
    from mcp_app.streams.sessions import OpenSession

logger = logging.getLogger("mcp_app.transports")

Write = Callable[[bytes], object]

NO_WAY_BACK: Final = NoWayBack()
APART_S: Final = 0.005
"""An answer follows a notification after so long: the TypeScript SDK handles those that
it reads together in another order, and then knows the progress token no more."""


class NotServed(InvalidRequest):
    """The server is not there, or not for this caller."""


class Connection:
    """What comes from one client, and goes to it; used on the loop only.

    A message is written with `write` once it is whole. The session of the stateful era
    lives in memory, and so do its questions.
    """

    def __init__(
        self, current: Process, slug: str, principal: Principal, write: Write
    ) -> None:
        self.write = write
        self.current = current
        self.slug = slug
        self.principal = principal
        self.questions = MemoryQuestions()
        self.sessions = MemorySessions(current.announced, current.openings.watching)
        self.running: dict[str | int, Cancellable] = {}
        self._adapters = replace(
            current.adapters,
            handshakes=self.sessions,
            sessions=self.sessions,
            questions=self.questions,
        )
        self._request_id: str | int | None = None
        self._revision: Revision = LATEST_STATEFUL

    async def served(self) -> tuple[Catalog, Rights]:
        """Return what the caller is offered, and what it may; raise `NotServed`.

        Raises 503 where people have switched the server off.
        """
        catalog = self.current.served(self.slug)
        if catalog is None:
            raise NotServed(f"There is no MCP server {self.slug!r} here.")
        if self.principal.anonymous and not catalog.public:
            raise NotServed(
                f"The MCP server {self.slug!r} is not public: it needs a user"
                " (--user, or MCP_USER)."
            )
        rights = await self.current.rights_in(catalog, self.principal)
        if rights.gone:
            raise NotServed(
                f"The user {self.principal.user_name!r} is not active any more."
            )
        # While the rights were read, something may have been published or stopped.
        catalog = self.current.served(self.slug) or catalog
        if not rights.meet(catalog.server.demands):
            raise NotServed(
                f"The user {self.principal.user_name!r} has not the rights that the"
                f" MCP server {self.slug!r} asks for."
            )
        return catalog, rights

    async def take(self, line: bytes | Broken, arrived: float) -> None:
        """Take a line that came then (monotonic); requests go on by themselves."""
        session = self.sessions.session
        self._request_id = None
        self._revision = LATEST_STATEFUL if session is None else session.revision
        try:
            await self._read(line, arrived)
        except ProtocolError as error:
            self._refuse(error)
        except Exception:
            logger.exception("A message failed.")
            self._refuse(InternalError("The server failed; its log says why."))

    def _refuse(self, error: ProtocolError) -> None:
        request_id = error.request_id
        if request_id is None:
            request_id = self._request_id
        self.write(dispatch.refusal(self._revision, request_id, error)[1])

    async def _read(self, line: bytes | Broken, arrived: float) -> None:
        limits = self.current.limits
        if isinstance(line, Broken):
            raise InvalidRequest(f"The line is longer than {limits.body} bytes.")
        value = (
            jsonrpc.read(line, self.current.read_limits)
            if len(line) <= limits.parse_in_thread
            else await self.current.read_in_thread(line)
        )
        if type(value) is list:
            await self._batch(value, arrived)
            return
        try:
            message = envelope.parse(value, lenient=self.current.lenient)
        except InvalidRequest as error:
            if _wants_no_answer(value):
                logger.info("A message is none: %s", error.message)
                return
            raise
        if type(message) is Request:
            self._request_id = message.id
            await self._fresh(arrived)
            await self._request(message)
        else:
            await self._take_other(message, arrived)

    async def _fresh(self, arrived: float) -> None:
        """Wait until nothing is answered from caches that are too old; raise 503."""
        gate = self.current.gate
        if not gate.fresh(arrived):
            await gate.wait(arrived)

    def forget(self, request_id: str | int, running: Cancellable) -> None:
        """Free an id, unless another request has it by now."""
        if self.running.get(request_id) is running:
            del self.running[request_id]

    # -- requests -------------------------------------------------------------------

    async def _request(self, request: Request) -> None:
        if negotiation.is_stateless(request.params, None):
            self._revision = LATEST
            self._revision, meta = negotiation.check_in_body(request)
            exchange = await self._exchange(request, self._revision, meta, None)
            self._check(exchange)
            await self._stateless(exchange, request)
            return
        session = self.sessions.session
        conversation.check_turn(request.method, session.revision if session else None)
        meta = negotiation.meta_of(request.params) or {}
        exchange = await self._exchange(request, self._revision, meta, session)
        self._check(exchange)
        if request.method == "initialize":
            await self._initialize(exchange)
        else:
            self._run(exchange)

    async def _exchange(
        self,
        request: Request,
        revision: Revision,
        meta: JsonObject,
        session: OpenSession | None,
    ) -> Exchange:
        catalog, rights = await self.served()
        return Exchange(
            adapters=self._adapters,
            catalog=catalog,
            revision=revision,
            principal=self.principal,
            rights=rights,
            request_id=request.id,
            method=request.method,
            params=request.params,
            meta=meta,
            outgoing=NO_WAY_BACK,
            session=session,
        )

    def _check(self, exchange: Exchange) -> None:
        """Raise for an id that is taken, at a stop, and where too much runs."""
        conversation.check_id(exchange.request_id, self.running)
        self.current.refuse_if_stopping()
        if not self.principal.anonymous:
            self.current.admit(self.principal, 1)

    async def _stateless(self, exchange: Exchange, request: Request) -> None:
        ready = dispatch.ready(
            exchange.catalog, exchange.revision, request, exchange.principal
        )
        if ready is not None:
            self.write(ready)
        elif exchange.method == subscriptions.METHOD:
            Listening(self, exchange).begin(*await subscriptions.accept(exchange))
        else:
            self._run(exchange)

    def _run(self, exchange: Exchange) -> None:
        self._start(exchange, dispatch.answer(exchange), Alone(self.write))

    def _start(self, exchange: Exchange, work: Any, answers: Waiting) -> None:
        call = RunningCall(self, exchange, answers)
        exchange.outgoing = call
        self.running[exchange.request_id] = call
        self.current.running.start(exchange, work, call)

    async def _initialize(self, exchange: Exchange) -> None:
        """Open the session; what follows on the line waits for it."""
        _, body = await dispatch.answer(exchange)
        self.write(body)
        if exchange.opened_session is not None:
            self._hear()

    def _hear(self) -> None:
        """Tell the session of changes from now on."""
        session = self.sessions.session
        if session is None:
            return
        heard = SessionChanges(self, session)
        try:
            self.current.listen(heard)
        except Unavailable as error:
            logger.warning("A session is told of no changes: %s", error)
            return
        heard.opened()

    # -- batches of 2025-03-26 --------------------------------------------------------

    async def _batch(self, value: list[object], arrived: float) -> None:
        session, current = self.sessions.session, self.current
        batch = conversation.read_batch(
            value,
            session.revision if session else None,
            self.running,
            most=current.limits.batch,
            lenient=current.lenient,
        )
        if batch.requests:
            await self._fresh(arrived)
        for each in batch.others:
            await self._take_other(each, arrived)
        if batch.requests and session is not None:
            await self._call_all(session, batch.requests)

    async def _call_all(self, session: OpenSession, requests: list[Request]) -> None:
        if not self.principal.anonymous:
            self.current.admit(self.principal, len(requests))
        exchanges, refused = [], []
        for each in requests:
            try:
                meta = negotiation.meta_of(each.params) or {}
            except InvalidParams as error:
                refused.append(dispatch.refusal(session.revision, each.id, error)[1])
                continue
            exchange = await self._exchange(each, session.revision, meta, session)
            self._check(exchange)
            exchanges.append(exchange)
        if not exchanges:
            self.write(array(refused))
            return
        together = Together(Alone(self.write), len(exchanges), refused)
        for exchange in exchanges:
            self._start(exchange, together.answer(exchange), together)

    # -- what has no answer -----------------------------------------------------------

    async def _take_other(self, message: envelope.Message, arrived: float) -> None:
        """Take a notification or a reply, in an outage of the database, too."""
        try:
            await self._fresh(arrived)
        except Unavailable as error:
            logger.debug("A message is taken in an outage: %s", error)
        if type(message) is Notification:
            self._notified(message)
        elif type(message) is Reply:
            await self._replied(message)

    async def _replied(self, reply: Reply) -> None:
        session = self.sessions.session
        try:
            await self.served()
        except NotServed as error:
            logger.info("An answer is not taken: %s", error.message)
            return
        except Unavailable as error:
            logger.debug("An answer is taken in an outage: %s", error)
        if session is None or not await self.questions.take(
            session, reply.id, reply.result, reply.error
        ):
            logger.info("Nobody asked a question %r.", str(reply.id)[:80])

    def _notified(self, message: Notification) -> None:
        session = self.sessions.session
        if message.method == "notifications/initialized" and session is not None:
            self.sessions.initialized(session)
        elif message.method == "notifications/cancelled":
            request_id = cancelled_id(message.params)
            running = None if request_id is None else self.running.get(request_id)
            if running is not None:
                running.cancel()


def _wants_no_answer(value: object) -> bool:
    """Whether something that is no message looks like a notification or a reply.

    To answer those would be to answer what nobody asks.
    """
    if not isinstance(value, dict):
        return False
    if "method" in value:
        return "id" not in value
    return "result" in value or "error" in value


class Cancellable(Protocol):
    """A request that runs."""

    def cancel(self) -> None:
        """The client wants no answer any more."""


class Alone:
    """Writes the answer of a request by itself."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def lasting(self) -> None:
        """Nothing has to be kept open."""

    def beat(self) -> None:
        """Nothing has to be kept open."""

    def answered(self, status: int, body: bytes) -> None:
        self._write(body)

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Write the answer; a call that was cancelled has none."""
        if not task.cancelled() and task.exception() is None:
            self._write(task.result()[1])


class RunningCall:
    """The way back of one call, which is over with it."""

    streams = True
    _said = float("-inf")

    def __init__(
        self, connection: Connection, exchange: Exchange, answers: Waiting
    ) -> None:
        self._connection = connection
        self._request_id = exchange.request_id
        self._exchange: Exchange | None = exchange
        self._answers = answers

    @property
    def _heard(self) -> bool:
        """Whether the call may still say something."""
        return self._exchange is not None

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        if self._heard:
            self._said = self._connection.current.loop.time()
            self._connection.write(message)

    def reconnect(self, after_ms: int) -> None:
        """There is one connection, and no other to come back with."""

    def cancel(self) -> None:
        """Stop, and say nothing more of it; a question is withdrawn before."""
        exchange = self._exchange
        if exchange is not None:
            exchange.stop(End.CANCELLED)
            self._exchange = None
            self._connection.forget(self._request_id, self)

    def lasting(self) -> None:
        self._connection.current.watch()

    def beat(self) -> None:
        """A pipe needs no heartbeat."""

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """The call is over: nothing follows but its answer."""
        self._exchange = None
        loop = self._connection.current.loop
        if loop.time() - self._said < APART_S:
            loop.call_later(APART_S, self._finished, task)
        else:
            self._finished(task)

    def _finished(self, task: asyncio.Task[Answer]) -> None:
        self._connection.forget(self._request_id, self)
        self._answers.finished(task)


class SharedChannel:
    """The part of a stream that shares its channel with everything else."""

    def __init__(self, write: Write, last: bytes | None = None) -> None:
        """Write `last` at the end."""
        self._write = write
        self._last = last
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def message(self, data: bytes, event_id: str | None = None) -> None:
        if not self.closed.done():
            self._write(data)

    def prime(self, event_id: str) -> None:
        """There are no ids: nobody comes back."""

    def beat(self) -> None:
        """A pipe needs no heartbeat."""

    def end(self, *, retry_ms: int | None = None) -> None:
        if not self.closed.done():
            if self._last is not None:
                self._write(self._last)
            self.closed.set_result(None)

    def abandon(self) -> None:
        self.closed.cancel()


class SessionChanges(OpenStream):
    """Tells a session of lists, and of what it watches."""

    lasts = True

    __slots__ = ("_session",)

    def __init__(self, connection: Connection, session: OpenSession) -> None:
        super().__init__(
            SharedChannel(connection.write),
            connection.current.listeners,
            server=session.server,
            principal=connection.principal,
            session=session.digest,
        )
        self._session = session

    def opened(self) -> None:
        """Its client is told from now on."""
        self._opened(0)

    def watched(self, what: str) -> str | None:
        return what if what in LISTS else self._session.uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*LISTS, *self._session.uris.values())

    def _tell(self, what: Sequence[str], number: int) -> None:
        for each in what:
            self._stream.message(subscriptions.change_message(each, None))

    def _end(self, retry_ms: int | None) -> None:
        self._stream.end()
        self._listeners.discard(self)


class Listening:
    """One `subscriptions/listen` request, as long as it lasts."""

    def __init__(self, connection: Connection, exchange: Exchange) -> None:
        self._connection = connection
        self._exchange = exchange
        self._task: asyncio.Task[None] | None = None
        self._entered = ExitStack()

    def begin(self, interest: Interest, honoured: JsonObject) -> None:
        """Let it listen from now on; raise 503 or 429 where it may not."""
        connection, exchange = self._connection, self._exchange
        stream = SharedChannel(
            connection.write, subscriptions.cancelled(exchange.request_id)
        )
        listening = ListenStream(
            stream,
            connection.current.listeners,
            server=connection.slug,
            principal=connection.principal,
            interest=interest,
            subscription=exchange.request_id,
            closing=subscriptions.closed(exchange),
        )
        connection.current.listen(listening)
        connection.running[exchange.request_id] = self
        # A task that is cancelled before it begins enters nothing, and leaves nothing.
        self._entered.enter_context(listening)
        work = self._listen(listening, interest, honoured, stream.closed)
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._over)

    async def _listen(
        self,
        listening: ListenStream,
        interest: Interest,
        honoured: JsonObject,
        closed: Awaitable[None],
    ) -> None:
        async with self._connection.current.openings.watching(interest.uris):
            listening.opened(subscriptions.acknowledged(self._exchange, honoured))
            await closed

    def cancel(self) -> None:
        """The client wants to hear no more; nothing is said of that."""
        self._connection.forget(self._exchange.request_id, self)
        if self._task is not None:
            self._task.cancel()

    def _over(self, task: asyncio.Task[None]) -> None:
        self._entered.close()
        self._connection.forget(self._exchange.request_id, self)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        """What it watches could not be written: it never began."""
        if not isinstance(error, ProtocolError):
            logger.error("A subscription failed.", exc_info=error)
            error = InternalError("The server failed; its log says why.")
        exchange = self._exchange
        refusal = dispatch.refusal(exchange.revision, exchange.request_id, error)
        self._connection.write(refusal[1])
