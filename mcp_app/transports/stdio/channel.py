"""One client's channel: its output, its running requests, and its subscriptions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from mcp_app.catalog.snapshot import EventEntry
from mcp_app.interface.principal import Principal
from mcp_app.process.running import Waiting
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import InternalError, ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import subscriptions
from mcp_app.server.outcome import Response
from mcp_app.server.request import Request
from mcp_app.server.run import End, Run
from mcp_app.server.subscriptions import Interest
from mcp_app.streams.listeners import SESSION_LISTS
from mcp_app.streams.log_writer import Beside
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports.asgi_types import APART_S
from mcp_app.transports.client_messages import encoded_error
from mcp_app.transports.open_streams import ListenStream, OpenStream, PushStream

Write = Callable[[bytes], object]


class Cancellable(Protocol):
    """A request that runs."""

    def cancel(self) -> None:
        """Cancel it without an answer."""


class Channel:
    """One client at the end of a two-way channel; used on the loop only.

    A message is written with `write` once it is whole; `count_waiting` returns how
    many bytes the reader has not taken yet (`int` returns 0).
    """

    def __init__(
        self, current: Process, slug: str, principal: Principal, write: Write
    ) -> None:
        self.write = write
        self.count_waiting: Callable[[], int] = int
        self.current = current
        self.slug = slug
        self.principal = principal
        self.running: dict[str | int, Cancellable] = {}

    def free_request_id(self, request_id: str | int, running: Cancellable) -> None:
        """Free an id, unless another request has it by now."""
        if self.running.get(request_id) is running:
            del self.running[request_id]


# -- calls -----------------------------------------------------------------------------
# The way back of a call on a channel.


class Alone:
    """Writes the answer of one request as one message."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def lasting(self) -> None:
        """Nothing has to be kept open."""

    def beat(self) -> None:
        """Nothing has to be kept open."""

    def send_answer(self, status: int, body: bytes) -> None:
        self._write(body)

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Write the answer; a call that was cancelled has none."""
        if not task.cancelled() and task.exception() is None:
            self._write(task.result().body)


class RunningCall:
    """The way back of one call."""

    _message_at = float("-inf")
    """When the last message before the answer was sent."""

    def __init__(
        self, channel: Channel, run: Run, answers: Waiting, *, streams: bool
    ) -> None:
        """Drop messages before the answer if `streams` is false."""
        self.streams = streams
        self._channel = channel
        self._request_id = run.request.id
        self._run: Run | None = run
        self._answers = answers

    @property
    def _may_send_more(self) -> bool:
        return self._run is not None

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        if self._may_send_more and self.streams:
            self._message_at = self._channel.current.loop.time()
            self._channel.write(message)

    def reconnect(self, after_ms: int) -> None:
        """Do nothing: there is only one connection."""

    def cancel(self) -> None:
        """Cancel open questions, then stop the call without an answer."""
        run = self._run
        if run is not None:
            run.stop(End.CANCELLED)
            self._run = None
            self._channel.free_request_id(self._request_id, self)

    def lasting(self) -> None:
        self._channel.current.watch()

    def beat(self) -> None:
        """A pipe needs no heartbeat."""

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Send the answer of a call, not sooner than `APART_S` after a message."""
        self._run = None
        loop = self._channel.current.loop
        if loop.time() - self._message_at < APART_S:
            loop.call_later(APART_S, self._write_answer, task)
        else:
            self._write_answer(task)

    def _write_answer(self, task: asyncio.Task[Response]) -> None:
        self._channel.free_request_id(self._request_id, self)
        self._answers.finished(task)


# -- listening -------------------------------------------------------------------------
# Announcements on a channel: changes of a session, and subscriptions.

logger = logging.getLogger("mcp_app.transports")


class SharedChannel:
    """The output of a stream on a channel that other messages share."""

    def __init__(
        self,
        write: Write,
        last: bytes | None = None,
        count_waiting: Callable[[], int] = int,
    ) -> None:
        """Write `last` at the end."""
        self._write = write
        self._count_waiting = count_waiting
        self._last = last
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def waiting(self) -> int:
        return self._count_waiting()

    def queue_message(self, data: bytes, event_id: str | None = None) -> None:
        if not self.closed.done():
            self._write(data)

    def queue_priming_event(self, event_id: str) -> None:
        """Do nothing: there are no ids."""

    def queue_heartbeat(self) -> None:
        """A pipe needs no heartbeat."""

    def end_output(self, *, retry_ms: int | None = None) -> None:
        if not self.closed.done():
            if self._last is not None:
                self._write(self._last)
            self.closed.set_result(None)

    def abandon_output(self) -> None:
        self.closed.cancel()


class SessionChanges(OpenStream):
    """Tells a session about changes of lists and of watched resources."""

    lasts = True

    __slots__ = ("_session",)

    def __init__(self, channel: Channel, session: OpenSession) -> None:
        super().__init__(
            SharedChannel(channel.write),
            channel.current.listeners,
            server=session.server,
            principal=channel.principal,
            session=session.digest,
        )
        self._session = session

    def watched(self, what: str) -> str | None:
        return what if what in SESSION_LISTS else self._session.uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*SESSION_LISTS, *self._session.uris.values())

    def _write_changes(self, what: Sequence[str], number: int) -> None:
        for each in what:
            self._stream.queue_message(subscriptions.change_message(each, None))

    def _write_end(self, retry_ms: int | None) -> None:
        self._stream.end_output()
        self._listeners.discard(self)


class Listening:
    """One `subscriptions/listen` or `events/stream` request, as long as it lasts."""

    def __init__(self, channel: Channel, request: Request) -> None:
        self._channel = channel
        self._request = request
        self._task: asyncio.Task[None] | None = None
        self._entered = ExitStack()

    def begin_listening(self, interest: Interest, honoured: JsonObject) -> None:
        """Let it listen from now on; raise 503 or 429 if it may not."""
        channel, request = self._channel, self._request
        stream = SharedChannel(
            channel.write, subscriptions.cancelled_message(request.id)
        )
        listening = ListenStream(
            stream,
            channel.current.listeners,
            server=channel.slug,
            principal=channel.principal,
            interest=interest,
            subscription=request.id,
            closing=subscriptions.closed_message(request),
        )
        first = subscriptions.acknowledged_message(request, honoured)
        work = self._wait_until_closed(listening, interest, first, stream.closed)
        self._begin(listening, work)

    def begin_pushing(self, entry: EventEntry, position: int, truncated: bool) -> None:
        """Push events from now on; raise 503 or 429 if it may not."""
        channel, request = self._channel, self._request
        stream = SharedChannel(
            channel.write,
            subscriptions.cancelled_message(request.id),
            channel.count_waiting,
        )
        push = PushStream(stream, channel.current, request, entry, position)
        self._begin(push, self._push_until_closed(push, truncated, stream.closed))

    async def _push_until_closed(
        self, push: PushStream, truncated: bool, closed: Awaitable[None]
    ) -> None:
        push.open_with_cursor(truncated)
        with self._channel.current.event_streams.listen(push):
            await closed

    def _begin(self, stream: OpenStream, work: Coroutine[Any, Any, None]) -> None:
        channel = self._channel
        try:
            channel.current.add_listener(stream)
        except ProtocolError:
            work.close()
            raise
        channel.running[self._request.id] = self
        # Not in the task: a task that is cancelled before it begins enters nothing.
        self._entered.enter_context(stream)
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._close_subscription)

    async def _wait_until_closed(
        self,
        listening: ListenStream,
        interest: Interest,
        first: bytes,
        closed: Awaitable[None],
    ) -> None:
        current = self._channel.current
        async with current.stream_opener.store_watched_uris(interest.uris):
            listening.open_with_message(first)
            with current.tasks.listen(listening, interest.tasks):
                await closed

    def cancel(self) -> None:
        """End the subscription without a message."""
        self._channel.free_request_id(self._request.id, self)
        if self._task is not None:
            self._task.cancel()

    def _close_subscription(self, task: asyncio.Task[None]) -> None:
        self._entered.close()
        self._channel.free_request_id(self._request.id, self)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if not isinstance(error, ProtocolError):
            logger.error("A subscription failed.", exc_info=error)
            error = InternalError("The server failed; its log says why.")
        self._channel.write(encoded_error(self._request, error).body)
