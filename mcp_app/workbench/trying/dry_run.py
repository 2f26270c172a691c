"""Runs user code so that nothing of it is left in the databases.

`DryRunUserCode` replaces `adapters.user_code` while one request is tried.  Each
function runs in a thread of the pool, an async one on a loop of its own there, inside a
transaction on each database of the site, which is rolled back at the end.

What is outside these transactions is not undone: e-mail, files, caches, tasks, calls of
other sites, tables without transactions, numbers of sequences, what the site's context
managers do around calls, and **what threads write that the function starts**: they have
connections of their own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

from django.db import Error, IntegrityError, connections

from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Entry
from mcp_app.conf import Limits
from mcp_app.interface.errors import CallCancelled
from mcp_app.pools.connections import cut_connections
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.call import look_after
from mcp_app.server.ports import Adapters, UserCode
from mcp_app.server.run import Run
from mcp_app.workbench.trying.dry_run_outcome import (
    DryRunOutcome,
    Ending,
    Remark,
    remark_on,
    unreachable,
)
from mcp_app.workbench.trying.trial_transaction import Statements, TrialTransaction

Value = TypeVar("Value")
Entries = TypeVar("Entries", bound=Entry[Any, Any])

logger = logging.getLogger("mcp_app.workbench")

GRACE_S: Final = 0.25
"""How long a cancelled function may end by itself.  Then its connections are cut, after
which nobody can say whether it had committed."""
NO_DATABASE: Final = "django.db.backends.dummy"
"""The engine of an alias that a site leaves empty."""


def limit_time(entry: Entries, limits: Limits) -> Entries:
    """Return an entry whose time is at most that of a dry run."""
    definition = entry.definition
    seconds = min(definition.timeout or limits.tool_timeout, limits.dry_run)
    return replace(entry, definition=replace(definition, timeout=seconds))


class DryRunUserCode:
    """User code whose changes are undone, and the topics that it would announce.

    An instance is for one request at a time: `outcome` is that of the last function
    that ran.  Questions are asked inside the transactions, so their answers must be
    there already.  Code of ours that the loop awaits is not undone: it uses no
    database.
    """

    def __init__(self, user_code: UserCode, limits: Limits) -> None:
        self._user_code = user_code
        self._limits = limits
        self._run: _Run | None = None
        self.topics: list[str] = []

    def adapters_for_trial(self, adapters: Adapters) -> Adapters:
        """Return adapters with which a request is tried."""
        return replace(adapters, user_code=self, topics=self)

    def tell(self, what: str, server: str) -> None:
        """Note a topic instead of announcing it."""
        self.topics.append(what)

    @property
    def outcome(self) -> DryRunOutcome:
        """The outcome; if nothing was run, there is nothing to undo."""
        outcome = DryRunOutcome() if self._run is None else self._run.current_outcome()
        return replace(outcome, topics=tuple(dict.fromkeys(self.topics)))

    async def run(
        self,
        run: Run,
        runnable: Runnable[Any],
        arguments: dict[str, object],
        convert: Callable[[object], Value],
    ) -> Value:
        """Run user code in a thread, convert its result there, and undo what it wrote.

        Raises `Unavailable` if a database cannot be reached; nothing is run then.
        """
        if runnable.ours:
            return await self._user_code.run(run, runnable, arguments, convert)
        self.topics.clear()
        limit = self._limits.dry_run
        run.seconds = seconds = min(run.seconds or limit, limit)
        self._run = trial_run = _Run(run, seconds)
        user_code = self._user_code.inside(trial_run.transactions_around)
        look_after(run)
        run.add_end_callback(trial_run.stop_running)
        try:
            return await user_code.run(run, runnable, arguments, convert)
        except asyncio.CancelledError:
            trial_run.stop_running()
            await trial_run.wait_until_settled()
            raise

    def inside(
        self, manager: Callable[..., AbstractContextManager[object]]
    ) -> UserCode:
        return DryRunUserCode(self._user_code.inside(manager), self._limits)

    def nothing_around(self, runnable: Runnable[Any]) -> bool:
        """Whether the loop may await the runnable: never, it needs transactions."""
        return False

    async def call(self, run: Run, function: Callable[[], Value]) -> Value:
        return await self._user_code.call(run, function)

    def call_here(self, function: Callable[[], Value]) -> Value:
        return self._user_code.call_here(function)

    def wait_for(self, future: Future[Value]) -> Value:
        return self._user_code.wait_for(future)

    def waiting(self) -> AbstractContextManager[None]:
        return self._user_code.waiting()

    def refuse_in_transaction(self) -> None:
        """Let questions pass: nobody waits for the answer."""

    async def refuse_in_outer_transaction(self) -> None:
        """Let questions pass: nobody waits for the answer."""


class _Run:
    """One run of a function: what its thread does, and what the loop may ask."""

    def __init__(self, run: Run, limit: float) -> None:
        self._run = run
        self._limit = limit
        self._loop = run.request.adapters.loop
        self._statements = Statements()
        self._transactions: list[TrialTransaction] = []
        self._opening = ""
        self._missing = ""
        self._remarks: list[Remark] = []
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._lock = threading.Lock()
        """While another thread holds it, the run does not leave its transactions."""
        self._is_begun = self._is_leaving = self._is_done = False
        self._done = asyncio.Event()
        self._cutting: asyncio.TimerHandle | None = None

    # -- in the thread ----------------------------------------------------------

    @contextmanager
    def transactions_around(self, **_: object) -> Iterator[None]:
        """Undo what the code inside writes."""
        with self._lock:
            self._check_is_wanted()
            self._is_begun = True
        try:
            with ExitStack() as stack:
                self._open_transactions(stack)
                stack.callback(self._begin_to_leave)
                try:
                    with ExitStack() as guards:
                        for transaction in self._transactions:
                            guards.enter_context(transaction.statement_guard())
                        yield
                    self._check_constraints()
                except Exception as error:
                    if (remark := remark_on(error)) is not None:
                        self._remarks.append(remark)
                    raise
        finally:
            self._finish_run()

    def _check_is_wanted(self) -> None:
        if self._statements.are_over:
            raise CallCancelled("The dry run ended before its transactions were open.")

    def _open_transactions(self, stack: ExitStack) -> None:
        for alias, options in connections.settings.items():
            if options["ENGINE"] == NO_DATABASE:
                continue
            self._opening = alias
            try:
                seconds_left = self._limit - (time.monotonic() - self._began)
                opened = TrialTransaction(alias, self._statements, seconds_left)
                self._transactions.append(stack.enter_context(opened))
            except Error as error:
                logger.warning(
                    "A dry run could not reach the database %r: %r", alias, error
                )
                self._missing = alias
                self._run.ran_nothing = True
                raise Unavailable(unreachable(alias)) from error
            self._opening = ""
            self._check_is_wanted()

    def _check_constraints(self) -> None:
        for transaction in self._transactions:
            try:
                transaction.check_constraints()
            except IntegrityError:
                self._remarks.append(Remark.AT_COMMIT)
                raise

    def _begin_to_leave(self) -> None:
        # An interrupt that comes now would hit the rollback.
        with self._lock:
            self._is_leaving = True

    def _finish_run(self) -> None:
        with self._lock:
            self._is_done = True
            self._seconds = time.monotonic() - self._began
        for transaction in self._transactions:
            if transaction.is_cut:
                # Another thread may be about to cut this connection.
                transaction.close()
            if self._statements.are_over and transaction.ending is Ending.COMMITTED:
                # Nobody waits for the result any more.
                logger.warning(
                    "A dry run committed on %r by itself. What it wrote stays.",
                    transaction.alias,
                )
        with suppress(RuntimeError):
            # The loop may be closed: then nobody waits.
            self._loop.call_soon_threadsafe(self._mark_settled)

    # -- on the loop --------------------------------------------------------------

    def stop_running(self) -> None:
        """Refuse further statements, and cut its connections after a moment."""
        with self._lock:
            if self._statements.are_over or self._is_done:
                return
            self._statements.are_over = True
            self._interrupt_statements()
        if self._is_begun:
            self._cutting = self._loop.call_later(GRACE_S, self._cut_connections)

    def _interrupt_statements(self) -> None:
        for each in () if self._is_leaving else self._transactions:
            each.interrupt_statement()

    def _cut_connections(self) -> None:
        with self._lock:
            if self._is_done:
                return
            # A statement may have begun just after the first interrupt.
            self._interrupt_statements()
            for transaction in self._transactions:
                transaction.is_cut = transaction.line is not None
            cut_connections(
                [each.line for each in self._transactions if each.line is not None]
            )

    def _mark_settled(self) -> None:
        self._done.set()
        if self._cutting is not None:
            self._cutting.cancel()

    async def wait_until_settled(self) -> None:
        """Wait until it has ended, or long enough to know that it goes on."""
        if self._is_begun:
            with suppress(TimeoutError):
                async with asyncio.timeout(2 * GRACE_S):
                    await self._done.wait()

    def current_outcome(self) -> DryRunOutcome:
        """Return the outcome; if the function still runs, the outcome so far."""
        with self._lock:
            seconds = self._seconds
            if seconds is None:
                seconds = time.monotonic() - self._began
            runs = self._is_begun and not self._is_done and not self._opening
            return DryRunOutcome(
                statements=self._statements.count,
                seconds=seconds,
                endings=self._unusual_endings(),
                refusals=tuple(self._statements.refusals),
                remarks=(*self._remarks, *([Remark.STILL_RUNS] if runs else ())),
            )

    def _unusual_endings(self) -> Mapping[str, Ending]:
        if missing := self._missing or self._opening:
            return {missing: Ending.UNREACHABLE}
        endings = {each.alias: self._ending_of(each) for each in self._transactions}
        return {
            alias: each for alias, each in endings.items() if each is not Ending.UNDONE
        }

    def _ending_of(self, of: TrialTransaction) -> Ending:
        if self._is_done:
            return Ending.CUT if of.is_cut and of.ending is Ending.LOST else of.ending
        if of.is_cut:
            return Ending.CUT
        return Ending.STILL_OPEN if of.may_hold_lock else Ending.UNDONE
