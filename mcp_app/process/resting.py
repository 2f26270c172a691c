"""Runs user code in the thread that waits for the call, with its database connection.

Tests use this, and programs that call a command within their own transaction.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import ThreadSensitiveContext
from django.db import connections
from django.utils.module_loading import import_string

from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.runnable import Runnable
from mcp_app.conf import mcp_settings
from mcp_app.interface.errors import CallCancelled
from mcp_app.invalidation.change_reader import ChangeReader, ChangeSet
from mcp_app.pools.database import checks, reader
from mcp_app.pools.loop_thread import Mailbox
from mcp_app.pools.pump import Pump
from mcp_app.process.current import begin_process
from mcp_app.process.lifecycle import write_call_log
from mcp_app.process.runtime import Process
from mcp_app.server.invocation import InvocationPlaces, refuse_in
from mcp_app.server.round_trip import InputRequired
from mcp_app.server.run import Run

Output = TypeVar("Output")
Value = TypeVar("Value")


class RestingProcess(Process):
    """A process that does nothing between two calls: no timer, no thread, no row."""

    def __init__(self, registry: Registry = mcp) -> None:
        super().__init__(registry)
        self._reader = ChangeReader()

    def start_services(self) -> None:
        """Start nothing."""
        self.watch = lambda: None

    def close(self) -> None:
        """Forget the process; there is nothing to stop."""
        if self.at_close is not None:
            self.at_close()

    async def read_changes(self) -> ChangeSet:
        return await checks.run(self._reader.read_changes)

    async def load_changes(self, change_set: ChangeSet) -> None:
        if change_set.definitions_changed:
            await reader.run(self.catalogs.load_changes, change_set)
        self._reader.advance_past(change_set)


class PumpUserCode(InvocationPlaces):
    """Sync functions run in the waiting thread, async functions on the loop.

    The queries of async functions also run in the waiting thread, and so do the
    transactions and the site's context managers.
    """

    def __init__(self, process: Process, pump: Pump) -> None:
        around = tuple(map(import_string, mcp_settings.call_context_managers))
        mailbox, threads = Mailbox(process.loop), process.threads
        super().__init__(mailbox, threads, around, halves_for_strangers=lambda: False)
        self._pump = pump
        self._depths: dict[str, int] = {}
        self.error: BaseException | None = None
        """The first exception that the function of this call raised."""

    def begin_call(self) -> None:
        """Note which transactions are open already; called in the waiting thread."""
        self.error, self._depths = None, _open_transactions()

    def nothing_around(self, runnable: Runnable[Any]) -> bool:
        """Return False: queries of an async function must run in the waiting thread."""
        return False

    async def run(
        self,
        run: Run,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Output],
    ) -> Output:
        if runnable.ours:
            return await super().run(run, runnable, arguments, convert)
        try:
            if runnable.style == "sync":
                call = partial(self._run_sync, run, runnable, arguments, convert)
                return await self._pump.run(call)
            return await self._run_async(run, runnable, arguments, convert)
        except (asyncio.CancelledError, CallCancelled, InputRequired):
            raise
        except BaseException as error:
            self.error = self.error or error
            raise

    def _run_sync(
        self,
        run: Run,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Output],
    ) -> Output:
        if run.end is not None:
            raise CallCancelled("The call ended before it began.")
        with self.enter_all(run, runnable):
            return convert(runnable.run(**arguments))

    async def _run_async(
        self,
        run: Run,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Output],
    ) -> Output:
        # The function sees the context variables that managers set, as in a thread.
        context = contextvars.copy_context()
        around = self.enter_all(run, runnable)

        async def run_function() -> object:
            async with ThreadSensitiveContext(executor=self._pump):
                try:
                    return await runnable.run(**arguments)  # type: ignore[misc]
                except (SystemExit, KeyboardInterrupt) as error:
                    # They would end the loop, and with it all clients.
                    raise RuntimeError(f"The function raised {error!r}.") from error

        await self._run_in_context(context, around.__enter__)
        try:
            task = run.request.adapters.loop.create_task(
                run_function(), context=context
            )
            output = await task
            if self.needs_thread(runnable):
                converted = await self._run_in_context(
                    context, partial(convert, output)
                )
            else:
                converted = convert(output)
        except BaseException:
            leave = partial(around.__exit__, *sys.exc_info())
            await self._run_in_context(context, leave)
            raise
        await self._run_in_context(context, partial(around.__exit__, None, None, None))
        return converted

    async def _run_in_context(
        self, context: contextvars.Context, function: Callable[[], Value]
    ) -> Value:
        return await self._pump.run(partial(context.run, function))

    async def call(self, run: Run, function: Callable[[], Value]) -> Value:
        return await self._pump.run(function)

    def call_here(self, function: Callable[[], Value]) -> Value:
        return function()

    def wait_for(self, future: Future[Value]) -> Value:
        return self._pump.wait_for(future)

    def refuse_in_transaction(self) -> None:
        for alias, depth in _open_transactions().items():
            if depth > self._depths.get(alias, 0):
                refuse_in(alias)

    async def refuse_in_outer_transaction(self) -> None:
        await self._pump.run(self.refuse_in_transaction)

    def tell(self, what: str, server: str) -> None:
        """Announce nothing: nobody else listens."""


def _open_transactions() -> dict[str, int]:
    """Return how many transactions and savepoints are open on each database."""
    opened = connections.all(initialized_only=True)
    return {each.alias: len(each.atomic_blocks) for each in opened}


async def run_at_rest(work: Callable[[], Awaitable[Value]], pump: Pump) -> Value:
    """Run work in a resting process of this loop; close the process at the end."""
    current = begin_process(RestingProcess)
    code = PumpUserCode(current, pump)
    current.adapters = replace(current.adapters, user_code=code)
    await pump.run(code.begin_call)
    try:
        return await work()
    finally:
        await write_call_log(current.audit)
        current.close()
