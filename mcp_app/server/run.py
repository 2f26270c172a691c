"""A request while it is served: its way back, its state, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from mcp_app.interface.call_record import ANSWERED, Ending
from mcp_app.interface.principal import Principal
from mcp_app.server.request import Request

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from mcp_app.catalog.snapshot import Entry
    from mcp_app.protocol.tasks import Decision
    from mcp_app.server.ports import Outgoing
    from mcp_app.streams.log_writer import Beside
    from mcp_app.streams.open_session import OpenSession


class End(Enum):
    """The ways in which a call can end without its answer."""

    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    CLIENT_GONE = "client gone"
    SHUT_DOWN = "shut down"
    STOPPED = "stopped"
    """By staff of the site; the client gets an error."""


class NoWayBack:
    """A way back that drops all messages."""

    streams = False

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Drop the message."""

    def reconnect(self, after_ms: int) -> None:
        """Do nothing."""


NO_WAY_BACK: Final = NoWayBack()


class Run:
    """A request while it is served.

    Members that most calls never set have class defaults, so a new run sets few.
    """

    end: End | None = None
    task: asyncio.Task[Any] | None = None
    began = 0.0
    """When the call began, on the loop's clock."""
    seconds: float | None = None
    """Time limit of the user code that runs; None if none does."""
    is_queued = False
    """The call waits for a thread, or for a place of its gate."""
    ran_nothing = False
    """No thread or place was free, so no user code has run."""
    core: Any = None
    """Its `context.CallCore`; None if the call has not needed one so far."""
    decision: Decision | None = None
    """What a person must decide before the call runs; None until that is known."""
    entry: Entry[Any, Any] | None = None
    """The called definition, once it is found."""
    ending: Ending = ANSWERED
    """How the call ended; only `dispatch` sets it, and a plain call for itself."""
    session_id = ""
    """The id of the session that `initialize` opened, for its header."""
    span: Span | None = None
    """Its span if it is recorded."""
    _on_end: tuple[Callable[[], object], ...] = ()

    _reply: Outgoing | None = NO_WAY_BACK

    def __init__(self, request: Request) -> None:
        self.request = request
        # A renewed request has the same caller: these stay, and are read quickly.
        self.session: OpenSession | None = request.session
        self.principal: Principal = request.principal
        self.person: str = request.person

    def answer_through(self, reply: Outgoing) -> None:
        """Take the way back to the client; without one all messages are dropped."""
        self._reply = reply

    # A plain call answers these in its own way, without a `Request`.

    @property
    def reply(self) -> Outgoing:
        """The way back for messages before the answer."""
        return self._reply or NO_WAY_BACK

    @property
    def request_id(self) -> str | int:
        """The id of the request."""
        return self.request.id

    @property
    def turn(self) -> str:
        """The key of the caller for turns of threads and places (`Request.turn`)."""
        return self.request.turn

    def stop(self, end: End) -> None:
        """End the call without its answer; the first end counts."""
        if self.end is None:
            self.end = end
            for callback in self._on_end:
                callback()
            if self.task is not None:
                self.task.cancel()

    def add_end_callback(self, callback: Callable[[], object]) -> None:
        """Call a function when the call is ended; at once if it is."""
        self._on_end = (*self._on_end, callback)
        if self.end is not None:
            callback()
