"""One run of a task: its call, and what the call writes to the task's row."""

from __future__ import annotations

import asyncio
import time
from functools import cached_property
from typing import Any, Final

from mcp_app.interface.call_record import Outcome
from mcp_app.pools.database import writer
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InternalError, ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import (
    COMPLETED,
    FAILED,
    MAX_MESSAGE_LENGTH,
    TaskRecord,
    TaskState,
    read_json,
)
from mcp_app.server.conversation import RequestState
from mcp_app.server.handlers import tools
from mcp_app.server.outcome import Encoded, Response
from mcp_app.server.round_trip import InputRequired
from mcp_app.server.run import End, Run
from mcp_app.server.task_states import parked_state, request_state_of, state_members
from mcp_app.streams.tasks import task_rows

PROGRESS_S: Final = 1.0
ANNOUNCED_EVERY_S: Final = 5.0
"""Progress is stored at most each second, and announced each five."""
SHUT_DOWN: Final = (
    "The worker that ran this task was stopped. Nobody knows whether it had an effect."
)


def ending_of_error(error: ProtocolError) -> dict[str, str]:
    """Return the columns of a task that ends with an error of the protocol."""
    members: JsonObject = {"code": error.code, "message": error.message}
    if error.data is not None:
        members["data"] = error.data
    return {"status": FAILED, "error": jsonrpc.write(members).decode()}


class TaskCall:
    """One run of a task: a `TaskRun` for its request, a `Waiting` for its answer."""

    def __init__(self, owner: str, record: TaskRecord) -> None:
        self.record = record
        self.run: Run | None = None
        self.ending: dict[str, str] = {}
        """The columns of the row when the task ends; empty if another run follows."""
        self.parked: InputRequired | None = None
        self.is_abandoned = False
        """This run writes nothing more: another worker may have the row."""
        self.done = asyncio.Event()
        self._owner = owner
        self._progress: dict[str, object] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._announced_at = 0.0

    @cached_property
    def state(self) -> TaskState:
        return self.record.read_state()

    @cached_property
    def request_state(self) -> RequestState:
        return request_state_of(self.state)

    # -- what the call does ----------------------------------------------------------

    async def call_tool(self, run: Run) -> Encoded:
        """Call the tool; a question parks the task."""
        try:
            result, ending = await tools.call_tool(run)
        except InputRequired as needed:
            self.parked = needed
            raise
        # In 2025-11-25 a result with `isError` ends as failed ("Task Status").
        is_error = ending.outcome is not Outcome.ANSWERED
        ends_as_failed = run.request.revision.task_requests and is_error
        status = FAILED if ends_as_failed else COMPLETED
        self.ending = {"status": status, "result": result.decode()}
        return result, ending

    def stop(self, end: End) -> None:
        self.is_abandoned = self.is_abandoned or end is End.CANCELLED
        if self.run is not None:
            self.run.stop(end)
        else:
            self.done.set()

    def ending_of_answer(self, run: Run, body: bytes) -> dict[str, str]:
        """Return the columns for an answer that is an error; none if a run follows."""
        if self.parked is not None:
            return {}
        if run.end is End.SHUT_DOWN:
            if self.record.rerun:
                return {}
            return ending_of_error(InternalError(SHUT_DOWN, {"retryable": False}))
        message: Any = read_json(body.decode())
        return {"status": FAILED, "error": jsonrpc.write(message["error"]).decode()}

    def store_ending(self) -> None:
        """Write the row; blocks.  Does nothing if another worker has the row."""
        pk, owner = self.record.pk, self._owner
        if self.ending:
            task_rows.end(pk, owner, self.ending)
        elif self.parked is not None:
            state = parked_state(self.state, self.parked)
            task_rows.park(pk, owner, state_members(state))
        else:
            task_rows.release(pk, owner)

    # -- progress --------------------------------------------------------------------

    def offer_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        text = (message or "").replace("\0", "")[:MAX_MESSAGE_LENGTH]
        self._progress = {"progress": progress, "total": total, "message": text}
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(PROGRESS_S, self._store_progress)

    def _store_progress(self) -> None:
        self._timer = None
        if self.done.is_set() or self.run is None:
            return
        now = time.monotonic()
        tell = now - self._announced_at >= ANNOUNCED_EVERY_S
        self._announced_at = now if tell else self._announced_at
        pk, owner = self.record.pk, self._owner
        work = writer.run(task_rows.note_progress, pk, owner, self._progress, tell=tell)
        asyncio.ensure_future(work).add_done_callback(self._check_owned)

    def _check_owned(self, work: asyncio.Future[bool]) -> None:
        if work.cancelled() or work.exception() is not None:
            return
        if not work.result() and not self.done.is_set():
            self.stop(End.CANCELLED)

    # -- what waits for the call (`process.running.Waiting`) -------------------------

    def lasting(self) -> None:
        """Do nothing: nobody is connected."""

    def beat(self) -> None:
        """Do nothing."""

    def finished(self, task: asyncio.Task[Response]) -> None:
        if task.cancelled() or task.exception() is not None:
            # The loop ends, and can store nothing; the row still names its owner.
            self.is_abandoned = True
        self.done.set()
