"""Runs user code on the loop or in a thread of the pool.

Only this module of the room knows Django: it handles transactions, connections and the
signal for exceptions.

An async function runs on the loop, in the task of its request.  With `database=True`
it runs on its own loop in a thread of the pool, and with `atomic=True` also inside
`transaction.atomic()`.  A sync function runs in a thread, inside `atomic()` on
each database that has `ATOMIC_REQUESTS`, unless it says `atomic=False`.  If the site
has context managers in `MCP["CALL_CONTEXT_MANAGERS"]`, async functions also run in a
thread, unless every manager says `context_variables_only`.

Any exception rolls a transaction back, and so does a call that ended without an answer.
On PostgreSQL the remaining time of the call limits the statements of our own `atomic`.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.core.signals import got_request_exception
from django.db import connection, connections, transaction
from django.utils.datastructures import CaseInsensitiveMapping
from django.utils.functional import SimpleLazyObject

from mcp_app.catalog.runnable import Gate, Runnable
from mcp_app.conf import mcp_settings
from mcp_app.interface.errors import CallCancelled, QuestionInTransaction
from mcp_app.pools import loop_thread
from mcp_app.pools.connections import without_old_connections
from mcp_app.pools.loop_thread import Mailbox, settle_future
from mcp_app.pools.pump import PUMPS
from mcp_app.pools.statement_time import limit_transaction
from mcp_app.pools.turns import Owner, SharedPlaces
from mcp_app.pools.user_threads import Job, NoPlace, UserThreads
from mcp_app.server.context import call_core_of, current_call
from mcp_app.server.request import Request
from mcp_app.server.run import Run

Output = TypeVar("Output")
Value = TypeVar("Value")
CallContextManager = Callable[..., AbstractContextManager[object]]

GATE_S = 2.0
"""Seconds that a call waits for a place of its gate."""

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
"""The folder of this app: files outside of it are user code."""

_running = threading.local()
"""Its `job` is the job that the current thread runs."""
_waiting_job: contextvars.ContextVar[Job | None]
_waiting_job = contextvars.ContextVar("mcp_job", default=None)
"""The job whose thread waits for the current loop."""


class InvocationPlaces:
    """The loop, the pool, and the site's context managers around user code."""

    def __init__(
        self,
        mailbox: Mailbox,
        threads: UserThreads,
        around: Sequence[CallContextManager],
        halves_for_strangers: Callable[[], bool],
    ) -> None:
        """`halves_for_strangers` tells whether strangers share half of the places."""
        self._mailbox = mailbox
        self._loop = mailbox.loop
        self._threads = threads
        self._gates: dict[Gate, SharedPlaces] = {}
        self._around = around
        self._halves_for_strangers = halves_for_strangers
        self._plain = not around
        """Whether no context managers are entered around user code."""
        self._around_needs_thread = not all(
            getattr(each, "context_variables_only", False) for each in around
        )

    def inside(self, manager: CallContextManager) -> InvocationPlaces:
        """Return the same places with one more manager, inside those of the site.

        It is entered in the thread of the call, so async functions get a thread, too.
        """
        places = copy(self)
        places._around = (*self._around, manager)
        places._plain, places._around_needs_thread = False, True
        return places

    def nothing_around(self, runnable: Runnable[Any]) -> bool:
        """Whether an async function may be awaited directly: the hot path."""
        return self._plain and runnable.direct

    async def run(
        self,
        run: Run,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Output],
    ) -> Output:
        """Run a function as declared and return its converted result.

        A thread also converts its result, because that may be a queryset.
        """
        if runnable.gate is not None:
            async with self._hold_gate_place(runnable.gate, run):
                inside = replace(runnable, gate=None)
                return await self.run(run, inside, arguments, convert)
        if runnable.ours:
            return convert(await runnable.run(**arguments))  # type: ignore[misc]
        if runnable.style == "sync" or self.needs_thread(runnable):
            function = partial(
                self.run_in_this_thread, run, runnable, arguments, convert
            )
            name = "" if run.entry is None else run.entry.identity
            run.is_queued = True
            try:
                return await self._run_in_thread(run, function, name)
            except NoPlace:
                run.ran_nothing = True
                raise
        with self._enter_managers(run):
            output = await runnable.run(**arguments)  # type: ignore[misc]
        return convert(output)

    def _turn_owner(self, run: Run) -> Owner:
        """Return the caller for turns; marked as stranger only if others sign in."""
        stranger = run.principal.anonymous and self._halves_for_strangers()
        return Owner(run.turn, stranger)

    @asynccontextmanager
    async def _hold_gate_place(self, gate: Gate, run: Run) -> AsyncIterator[None]:
        """Hold a place of a gate; raise `NoPlace` if none is free soon."""
        places = self._gates.get(gate)
        if places is None:
            number = gate.places or max(1, self._threads.size // 2)
            places = self._gates[gate] = SharedPlaces(number)
        owner = self._turn_owner(run)
        run.is_queued = True
        try:
            async with asyncio.timeout(GATE_S):
                await places.occupy_place(owner)
        except TimeoutError:
            run.ran_nothing = True
            reason = f"Too many calls of “{gate.name}” run already."
            if places.is_crowded_by(owner):
                reason = (
                    f"This caller runs {places.most_of_one} calls of “{gate.name}”"
                    " already, and may not run more at once."
                )
            raise NoPlace(reason) from None
        run.is_queued = False
        try:
            yield
        finally:
            places.release_place(owner)

    async def call(self, run: Run, function: Callable[[], Value]) -> Value:
        """Run a blocking function in a thread.

        If the call has its own loop, a thread waits for that loop.  It has connections
        and perhaps a transaction, so the function runs in that thread.
        """
        if asyncio.get_running_loop() is not self._loop:
            return await sync_to_async(function)()
        fresh = partial(_with_fresh_connections, function)
        return await self._run_in_thread(run, fresh)

    def call_here(self, function: Callable[[], Value]) -> Value:
        """Run a blocking function in this thread.

        In a thread that user code started, we close the connections.
        """
        if getattr(_running, "job", None) is not None:
            return function()
        return _with_fresh_connections(function)

    def wait_for(self, future: Future[Value]) -> Value:
        """Block this thread until a future of the loop is done; return its result."""
        return future.result()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let another thread work while this one waits for an answer."""
        job: Job | None = getattr(_running, "job", None) or _waiting_job.get()
        with self._threads.waiting_for_answer(job) if job else nullcontext():
            yield

    def refuse_in_transaction(self) -> None:
        """Raise if a transaction is open: a question would hold it for minutes."""
        refuse_in(_transaction_alias())

    async def refuse_in_outer_transaction(self) -> None:
        """Raise if the thread around this loop has a transaction open."""
        if asyncio.get_running_loop() is not self._loop:
            refuse_in(await sync_to_async(_transaction_alias)())

    def needs_thread(self, runnable: Runnable[Any]) -> bool:
        """Whether an async function runs in a thread, with managers or transactions."""
        return runnable.needs_thread or (not self._plain and self._around_needs_thread)

    @contextmanager
    def enter_all(self, run: Run, runnable: Runnable[Any]) -> Iterator[None]:
        """Enter the context managers around user code, then its transactions."""
        with self._enter_managers(run), _transactions(run, runnable):
            yield

    @contextmanager
    def _enter_managers(self, run: Run) -> Iterator[None]:
        with ExitStack() as stack:
            arguments = _manager_arguments(run.request) if self._around else {}
            for manager in self._around:
                stack.enter_context(manager(**arguments))
            yield

    def run_in_this_thread(
        self,
        run: Run,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Output],
    ) -> Output:
        """Run a function in this thread, note its duration, and convert its result."""
        if run.end is not None:
            raise CallCancelled("The call ended before a thread was free.")
        run.is_queued = False
        function = runnable.run
        if runnable.style == "async":
            function = _blocking_function(run, function)  # type: ignore[arg-type]
        began = time.monotonic()
        try:
            with without_old_connections:
                if self._plain and not _atomic_aliases(runnable):
                    return convert(function(**arguments))
                with self.enter_all(run, runnable):
                    return convert(function(**arguments))
        finally:
            runnable.pace.note_duration(time.monotonic() - began)

    async def _run_in_thread(
        self, run: Run, function: Callable[[], Value], name: str = ""
    ) -> Value:
        future: asyncio.Future[Value] = self._loop.create_future()
        work = partial(contextvars.copy_context().run, function)
        job = self._threads.submit(
            partial(self._run_as_job, future, work), name, self._turn_owner(run)
        )
        try:
            return await future
        except asyncio.CancelledError:
            self._threads.give_up_job(job)
            raise

    def _run_as_job(
        self, future: asyncio.Future[Value], function: Callable[[], Value], job: Job
    ) -> None:
        _running.job = job
        settle_future(self._mailbox.post, future, function)
        _running.job = None


def _manager_arguments(request: Request) -> dict[str, Any]:
    """Return the arguments of a context manager; the user is read at first use."""
    users, principal = request.adapters.users, request.principal
    return {
        "host": request.host,
        "path": request.path,
        "principal": principal,
        "user": SimpleLazyObject(
            lambda: users.active_user(principal) or AnonymousUser()
        ),
        "headers": CaseInsensitiveMapping(context_headers(request)),
    }


def context_headers(request: Request) -> dict[str, str]:
    """Return the headers of a call that `MCP["CALL_CONTEXT_HEADERS"]` names."""
    headers, present_headers = request.headers, dict[str, str]()
    if headers is not None:
        for name in mcp_settings.call_context_headers:
            value = headers.get(name.lower().encode())
            if value is not None:
                present_headers[name] = value
    return present_headers


def _blocking_function(
    run: Run, function: Callable[..., Coroutine[Any, Any, Value]]
) -> Callable[..., Value]:
    """Return an async function as a blocking one, which is cancelled with its call."""

    job: Job | None = getattr(_running, "job", None)

    async def cancellable(**arguments: object) -> Value:
        _waiting_job.set(job)
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def cancel_task() -> None:
            # If the function has ended, its loop is closed: nothing is left to cancel.
            with suppress(RuntimeError):
                if task is not None:
                    loop.call_soon_threadsafe(task.cancel)

        run.add_end_callback(cancel_task)
        return await function(**arguments)

    return async_to_sync(cancellable)


def _with_fresh_connections(function: Callable[[], Value]) -> Value:
    with without_old_connections:
        return function()


@contextmanager
def _transactions(run: Run, runnable: Runnable[Any]) -> Iterator[None]:
    """Run in transactions; any exception rolls them back, also `ToolError`.

    They are also rolled back if the call was ended, because its client gets no result.
    """
    aliases = _atomic_aliases(runnable)
    with ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(transaction.atomic(using=alias))
            call = current_call.get()
            rest_s = None if call is None else call_core_of(call).clock.seconds_left()
            if rest_s is not None:
                # PostgreSQL cancels statements that outlast the call.
                limit_transaction(alias, rest_s)
        yield
        if run.end is not None:
            for alias in aliases:
                transaction.set_rollback(True, using=alias)


@contextmanager
def discard_changes() -> Iterator[None]:
    """Roll back all that the block writes to the default database."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _atomic_aliases(runnable: Runnable[Any]) -> list[str]:
    if runnable.atomic:
        return [connection.alias]
    if runnable.atomic is False or runnable.style == "async":
        return []
    databases = connections.settings.items()
    return [alias for alias, options in databases if options["ATOMIC_REQUESTS"]]


def _transaction_alias() -> str | None:
    initialized = connections.all(initialized_only=True)
    return next((each.alias for each in initialized if each.in_atomic_block), None)


def refuse_in(alias: str | None) -> None:
    """Raise `QuestionInTransaction` if this database has a transaction open."""
    if alias is not None:
        frames = reversed(traceback.extract_stack())
        asking = next(each for each in frames if not each.filename.startswith(PACKAGE))
        raise QuestionInTransaction(
            f"The code asked a question inside a transaction on {alias!r} at"
            f" {asking.filename}:{asking.lineno}. Ask before the transaction begins, or"
            " declare the tool with atomic=False."
        )


def report_exception() -> None:
    """Send `got_request_exception` for user code, as Django's handler does.

    Django logs a receiver that fails; the answer is not affected.
    """
    got_request_exception.send_robust(sender=None, request=None)
    # If a test waits for its calls (`PUMPS`), they use the test's thread instead.
    if not PUMPS:
        loop_thread.close_broken()
