"""Tasks of a process: those that it runs, and those that its requests wait for.

A task is a row; a process runs only the tasks that it owns in their rows.  A run is a
call like any other: rights, stops, limits and the call log are those of `tools/call`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import Error as DatabaseError

from mcp_app.catalog.snapshot import Catalog
from mcp_app.pools.database import reader, unavailable, writer
from mcp_app.process.queues import UnusableQueue, has_queue, tell_queue
from mcp_app.process.stored_calls import AccessLost, make_request
from mcp_app.process.task_call import TaskCall, ending_of_error
from mcp_app.process.task_changes import TaskChanges
from mcp_app.protocol.errors import (
    InternalError,
    ProtocolError,
    SwitchedOff,
    Unavailable,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import (
    CANCELLED,
    STRANGERS,
    UNDECIDED,
    NewTask,
    TaskRecord,
    is_stranger,
)
from mcp_app.server import dispatch
from mcp_app.server.outcome import Response
from mcp_app.server.run import End, Run
from mcp_app.server.task_states import request_members
from mcp_app.streams import tasks as rows
from mcp_app.streams.tasks import task_rows

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

logger = logging.getLogger("mcp_app.process")

Value = TypeVar("Value")

RETRY_S: Final = 1.0
STORE_TIMEOUT_S: Final = 60.0
"""If the database refuses the end of a task for so long, a failure is stored."""
BATCH_SIZE: Final = 100
"""Tasks that the site's queue is told of at once."""


class TaskRunner:
    """The tasks of a process; used on its loop only."""

    def __init__(self, process: Process, owner: str) -> None:
        """`owner` is the key of this worker; it runs tasks after `offer_places`."""
        self._process = process
        self._owner = owner
        self._places = self._places_to_fill = 0
        self._busy: Counter[str] = Counter()
        """The places in use, by the person whose task it is."""
        self._claims = False
        self._runs: dict[int, TaskCall] = {}
        self.run_count = 0
        """The number of runs that have begun."""
        self._changes = TaskChanges(process)
        self.listen = self._changes.listen
        self._is_claiming = self._claims_again = False
        self._unknown: set[int] = set()
        """Tasks that were ours in their rows, but not run, at the last heartbeat."""

    def __len__(self) -> int:
        return self._busy.total()

    @property
    def places(self) -> int:
        """The number of tasks that may run here at a time."""
        return self._places

    def offer_places(self, places: int, *, claims: bool = True) -> None:
        """Run up to `places` tasks at once; with `claims`, those of all processes."""
        self._places, self._claims = places, claims

    # -- for the handlers of requests (`server.ports.Tasks`) ----------------------

    async def create(self, new: NewTask) -> TaskRecord | str:
        # The client may leave meanwhile, but a stored task must run.
        return await asyncio.shield(self._process.spawn_task(self._create(new)))

    async def _create(self, new: NewTask) -> TaskRecord | str:
        is_here = self._may_begin(new) and not self._places_to_fill
        self._busy[new.person] += is_here
        record: TaskRecord | str = ""
        try:
            owner = self._owner if is_here else ""
            record = await writer.run(rows.store_task, new, owner, self._process.limits)
        except DatabaseError as error:
            raise unavailable() from error
        finally:
            self._busy -= Counter({new.person: is_here})
        if not is_here:
            self.claim_soon()
        elif isinstance(record, TaskRecord):
            self._start(record)
        return record

    async def find(self, public_id: str) -> TaskRecord | None:
        return await self._changes.find(public_id)

    async def wait(self, record: TaskRecord, seconds: float) -> TaskRecord | None:
        return await self._changes.wait(record, seconds)

    async def list_of(
        self, server: str, person: str, before: int | None, limit: int
    ) -> Sequence[TaskRecord]:
        return await reader.run(rows.list_tasks, server, person, before, limit)

    async def answer(self, record: TaskRecord, replies: JsonObject) -> None:
        await writer.run(task_rows.answer, record.pk, replies)
        self.apply_changes({record.pk})
        if self._has_place and not self._claims:
            # A process that claims nothing continues the tasks of its own client.
            self._process.spawn_task(self.run_waiting(record.pk))

    async def cancel(self, record: TaskRecord, message: str) -> bool:
        cancelled = await writer.run(task_rows.cancel, record.pk, message)
        self.apply_changes({record.pk})
        return cancelled

    async def let_go(self, record: TaskRecord) -> None:
        with suppress(DatabaseError, Unavailable):
            await writer.run(task_rows.let_go, record.pk)

    # -- changes and upkeep ----------------------------------------------------------

    def apply_changes(self, keys: Collection[int] | None) -> None:
        """Wake requests that wait for these tasks, None for all; run or stop tasks."""
        self._changes.apply(keys)
        if keys is None or not self._runs.keys().isdisjoint(keys):
            self._process.spawn_task(self._stop_foreign())
        self.claim_soon()

    async def maintain(self) -> None:
        """At each heartbeat, stop tasks that are not ours any more, and claim others.

        A task that we own but have not run for two heartbeats is given up: we claimed
        it, but the database's answer was lost.
        """
        if self._runs or self._has_tools():
            unknown = await self._stop_foreign() - self._runs.keys()
            for key in unknown & self._unknown:
                await writer.run(rows.release_unknown, key, self._owner)
            self._unknown = unknown
        self.claim_soon()

    async def _stop_foreign(self) -> set[int]:
        """Stop the code of tasks that we do not own any more; return the owned keys."""
        running = dict(self._runs)
        try:
            owned_keys = await writer.run(rows.owned_keys, self._owner)
        except (DatabaseError, Unavailable):
            return set()
        for key, task_call in running.items():
            if key not in owned_keys:
                task_call.stop(End.CANCELLED)
        return owned_keys

    def claim_soon(self) -> None:
        """Claim tasks that wait, if there is a place and the site has such tools.

        If the site has a queue, tell it of them instead.
        """
        wants = has_queue() or (self._claims and self._has_place)
        self._claims_again = wants and self._has_tools()
        if self._claims_again and not self._is_claiming:
            self._is_claiming = True
            self._process.spawn_task(self._claim())

    @property
    def _has_place(self) -> bool:
        return len(self) < self._places and not self._process.stopping

    def _full_persons(self) -> set[str]:
        """Return the persons whose tasks may not begin here now, so that others can.

        A person may use half of the places, all strangers together a quarter.  For
        strangers without a known address, only the quarter counts.
        """
        busy, quarter = self._busy, max(1, self._places // 4)
        # A process that claims nothing has one client only, as on stdio.
        half = (self._places + 1) // 2 if self._claims else self._places
        full = {person for person in busy if busy[person] >= half}
        full -= {"", STRANGERS}
        strangers = sum(busy[person] for person in busy if is_stranger(person))
        if self._process.catalogs.ask_to_sign_in and strangers >= quarter:
            full.add(STRANGERS)
        return full

    def _may_begin(self, new: NewTask) -> bool:
        if new.status in UNDECIDED:
            return False
        keys = {new.person, STRANGERS if is_stranger(new.person) else new.person}
        return self._has_place and self._full_persons().isdisjoint(keys)

    @property
    def _catalogs(self) -> Iterable[Catalog]:
        return self._process.catalogs.by_slug.values()

    def _has_tools(self) -> bool:
        return any(catalog.has_tasks for catalog in self._catalogs)

    async def _claim(self) -> None:
        try:
            while self._claims_again:
                self._claims_again = False
                await (self._tell_queue() if has_queue() else self._fill_places())
        except (DatabaseError, Unavailable):
            # The next heartbeat tries again.
            return
        finally:
            self._is_claiming = False

    async def _fill_places(self) -> None:
        # Since this claim was wanted, the process may have begun to stop.
        if not self._has_place:
            return
        # Tasks that clients begin meanwhile must not take these places: they wait.
        self._places_to_fill = places = self._places - len(self)
        tools = sorted(set[str]().union(*(each.task_tools for each in self._catalogs)))
        try:
            full = self._full_persons()
            claim = writer.run(rows.claim_tasks, self._owner, places, tools, full)
            for record in (records := await claim):
                self._start(record)
            # A claim takes one task of each person, so more may wait.
            self._claims_again |= bool(records) and self._has_place
        finally:
            self._places_to_fill = 0

    async def _tell_queue(self) -> None:
        while keys := await writer.run(rows.claim_sending, BATCH_SIZE):
            try:
                await tell_queue(keys)
            except UnusableQueue as error:
                logger.warning("The queue of the site takes no tasks: %s", error)
                return
            except Exception as error:
                # The tasks wait in their rows; the queue is told of them again.
                reason = error.__cause__ or error
                logger.warning("The queue of the site takes no tasks: %r", reason)
                return

    async def run_waiting(self, key: int) -> bool:
        """Run a waiting task until its run ends; return False if it does not wait.

        Raise `Unavailable` if the database is away.
        """
        # A place in use keeps an idle process from ending (`process.current`).
        self._busy[""] += 1
        try:
            await self._process.gate.wait_until_fresh(time.monotonic())
            record = await writer.run(rows.claim_task, key, self._owner)
        finally:
            self._busy -= Counter([""])
        if record is not None:
            await self._start(record)
        return record is not None

    def give_up(self, key: int) -> None:
        """Stop a run, as the end of its process does."""
        if key in self._runs:
            self._runs[key].stop(End.SHUT_DOWN)

    # -- runs ------------------------------------------------------------------------

    def _start(self, record: TaskRecord) -> asyncio.Future[None]:
        self._busy[record.person] += 1
        self.run_count += 1
        self._runs[record.pk] = task_call = TaskCall(self._owner, record)
        task = self._process.spawn_task(self._run(task_call))
        task.add_done_callback(partial(self._finish, task_call))
        return task

    def _finish(self, task_call: TaskCall, _: object) -> None:
        del self._runs[task_call.record.pk]
        self._busy -= Counter([task_call.record.person])
        self.apply_changes({task_call.record.pk})

    async def _run(self, task_call: TaskCall) -> None:
        """Run a task, and store how it ended; try until that succeeds."""
        process = self._process
        try:
            await process.gate.wait_until_fresh(time.monotonic())
            run = await self._admit(task_call)
        except (DatabaseError, Unavailable) as error:
            if isinstance(error, SwitchedOff):
                task_call.ending = ending_of_error(error)
            else:
                # The task goes back to waiting, until the database is there.
                await asyncio.sleep(RETRY_S)
        except AccessLost as error:
            task_call.ending = {"status": CANCELLED, "message": error.message}
        except ProtocolError as error:
            task_call.ending = ending_of_error(error)
        except Exception:
            logger.exception("A task could not begin.")
            failed = InternalError("The server failed; its log says why.")
            task_call.ending = ending_of_error(failed)
        else:
            task_call.run = run
            process.running.start_call(run, self._call(task_call, run), task_call)
            process.watch()
            await task_call.done.wait()
        await self._store_ending(task_call)

    async def _call(self, task_call: TaskCall, run: Run) -> Response:
        try:
            _, body = await dispatch.answer_request(run, task_call.call_tool)
        except asyncio.CancelledError:
            if run.end is None:
                raise
            # `Run.stop` has cancelled this task, which may now end as usual.
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - a coroutine runs in one
            task.uncancel()
            task_call.is_abandoned = True
            return Response(200, b"")
        if not task_call.ending:
            task_call.ending = task_call.ending_of_answer(run, body)
        return Response(200, b"")

    async def _admit(self, task_call: TaskCall) -> Run:
        """Return the run of a task's call; raise if its caller may not call now."""
        record = task_call.record
        request = await make_request(
            self._process,
            record.server,
            record.revision,
            **request_members(record),
            task=task_call,
            mirrors_headers=False,
        )
        return Run(request)

    async def _store_ending(self, task_call: TaskCall) -> None:
        begun, is_logged = time.monotonic(), False
        while not task_call.is_abandoned:
            try:
                await writer.run(task_call.store_ending)
                return
            except (DatabaseError, Unavailable) as error:
                reason = error.__cause__ or error
                if not is_logged:
                    logger.warning("The end of a task cannot be stored yet: %r", reason)
                is_logged = True
                lasts = time.monotonic() - begun > STORE_TIMEOUT_S
                if lasts and self._process.heartbeat.is_steady:
                    # Heartbeats can be stored, so the database refuses this row.
                    failed = InternalError("The result of this task cannot be stored.")
                    task_call.parked, task_call.ending = None, ending_of_error(failed)
                await asyncio.sleep(RETRY_S)
