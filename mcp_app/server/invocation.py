"""Where user code runs: on the loop, or in a thread of the pool.

The only module of this room that knows Django: transactions, connections and the
signal for exceptions surround user code here, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from django.core.signals import got_request_exception
from django.db import close_old_connections, connection, connections, transaction

from mcp_app.catalog.runnable import Runnable
from mcp_app.interface.errors import CallCancelled, QuestionInTransaction
from mcp_app.pools.user_threads import Job, UserThreads
from mcp_app.server.exchange import Exchange

Output = TypeVar("Output")
Returned = TypeVar("Returned")
Around = Callable[..., AbstractContextManager[object]]

_running = threading.local()


class InvocationPlaces:
    """The loop and the pool, and the managers that the site puts around user code."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: UserThreads,
        around: Sequence[Around],
    ) -> None:
        self._loop = loop
        self._threads = threads
        self._around = around
        self._around_needs_thread = not all(
            getattr(each, "context_variables_only", False) for each in around
        )

    async def run(
        self,
        exchange: Exchange,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Output],
    ) -> Output:
        """Run it in its own way and return what it returned, converted.

        What ran in a thread is converted there: it may be a queryset.
        """
        if runnable.style == "sync" or self._needs_thread(runnable):
            function = partial(self._in_thread, exchange, runnable, arguments, convert)
            return await self._threaded(function)
        return convert(await self._on_loop(exchange, runnable, arguments))

    async def call(self, function: Callable[[], Returned]) -> Returned:
        """Run a blocking function in a thread of the pool."""
        return await self._threaded(partial(_with_fresh_connections, function))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let another thread work while this one waits for an answer."""
        job: Job | None = getattr(_running, "job", None)
        if job is None:
            yield
            return
        with self._threads.waiting(job):
            yield

    def refuse_in_transaction(self) -> None:
        """Raise where a transaction is open: a question would hold it for minutes."""
        for each in connections.all(initialized_only=True):
            if each.in_atomic_block:
                raise QuestionInTransaction(
                    f"A question was asked inside a transaction on {each.alias!r}"
                    f" at {_user_line()}. Ask before it begins, or declare the tool"
                    " with atomic=False."
                )

    def _needs_thread(self, runnable: Runnable[Any]) -> bool:
        if runnable.database or runnable.atomic:
            return True
        return bool(self._around) and self._around_needs_thread

    async def _on_loop(
        self,
        exchange: Exchange,
        runnable: Runnable[Any],
        arguments: dict[str, object],
    ) -> object:
        if not self._around:
            return await runnable.run(**arguments)  # type: ignore[misc]
        with self._entered(exchange):
            return await runnable.run(**arguments)  # type: ignore[misc]

    @contextmanager
    def _entered(self, exchange: Exchange) -> Iterator[None]:
        with ExitStack() as stack:
            for manager in self._around:
                stack.enter_context(
                    manager(
                        host=exchange.host,
                        path=exchange.path,
                        principal=exchange.principal,
                    )
                )
            yield

    def _in_thread(
        self,
        exchange: Exchange,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Output],
    ) -> Output:
        if exchange.end is not None:
            raise CallCancelled("The call ended before a thread was free.")
        run = runnable.run
        if runnable.style == "async":
            run = async_to_sync(run)  # type: ignore[arg-type]
        close_old_connections()
        try:
            with self._entered(exchange), _transactions(runnable):
                return convert(run(**arguments))
        finally:
            close_old_connections()

    async def _threaded(self, function: Callable[[], Returned]) -> Returned:
        future: asyncio.Future[Returned] = self._loop.create_future()
        context = contextvars.copy_context()
        work = partial(self._settle, future, context, function)
        job = self._threads.submit(work)
        try:
            return await future
        except asyncio.CancelledError:
            if not self._threads.discard(job):
                # The thread is lost to others only on paper: a substitute may start.
                self._threads.uncount(job)
            raise

    def _settle(
        self,
        future: asyncio.Future[Returned],
        context: contextvars.Context,
        function: Callable[[], Returned],
        job: Job,
    ) -> None:
        _running.job = job
        try:
            value = context.run(function)
        except BaseException as error:
            self._post(_fail, future, error)
        else:
            self._post(_succeed, future, value)
        finally:
            _running.job = None

    def _post(self, settle: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(settle, *arguments)
        except RuntimeError:
            # The loop has closed: the process is at its end, and nobody waits.
            return


def _succeed(future: asyncio.Future[Returned], value: Returned) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):
        # A future cannot carry it (PEP 479).
        error = RuntimeError(f"The function raised {error!r}.")
    future.set_exception(error)


def _with_fresh_connections(function: Callable[[], Returned]) -> Returned:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


@contextmanager
def _transactions(runnable: Runnable[Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for alias in _atomic_aliases(runnable):
            stack.enter_context(transaction.atomic(using=alias))
        yield


def _atomic_aliases(runnable: Runnable[Any]) -> list[str]:
    if runnable.atomic is False:
        return []
    if runnable.atomic:
        return [connection.alias]
    if runnable.style == "async":
        return []
    return [
        alias
        for alias, options in connections.settings.items()
        if options["ATOMIC_REQUESTS"]
    ]


def _user_line() -> str:
    """Return the place in user code that asked."""
    frames = [
        frame for frame in traceback.extract_stack() if "mcp_app" not in frame.filename
    ]
    return (
        f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    )


def report_exception() -> None:
    """Tell the site of an exception of user code, as Django's handler does."""
    got_request_exception.send(sender=None, request=None)
