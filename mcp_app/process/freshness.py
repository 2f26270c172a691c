"""Decides whether this process may answer from its caches.

A request may be served if the last successful check of the database started less than
`FRESHNESS` before the request arrived; otherwise it waits for a check.  While requests
arrive, a check starts when half of that time is over.  So requests do not wait, and
there are at most eight statements a second, however many requests arrive.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from django.db import Error as DatabaseError

from mcp_app.auth.caches import authentication_cache
from mcp_app.auth.token_cache import token_cache
from mcp_app.invalidation import changes
from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.invalidation.workers import FRESHNESS
from mcp_app.pools.connections import lacks_migration
from mcp_app.pools.database import reader, writer
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.protocol.errors import Unavailable
from mcp_app.publishing.overlays import make_overlays
from mcp_app.server.request_digests import request_key
from mcp_app.server.run import End

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

logger = logging.getLogger("mcp_app.process")

TIMEOUT = 2.0
RETRY = 0.25
"""Seconds from one check to the next during an outage."""
NEVER = float("-inf")
AWAY: Final = "The database cannot be reached."
NOT_MIGRATED: Final = (
    "The database lacks a table or a column: a migration is missing. Run manage.py"
    " migrate."
)


class FreshnessGate:
    """Runs one check at a time; `load_changes` applies its changes to the caches.

    If a check hangs, `give_up` is called, so that the next one need not wait for it.
    Loading has no time limit: while it is slow, requests wait and are not refused.
    """

    def __init__(
        self,
        check: Callable[[], Awaitable[ChangeSet]],
        load: Callable[[ChangeSet], Awaitable[None]],
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._check = check
        self._load = load
        self._give_up = give_up
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._started = NEVER
        self._quiet_until = NEVER
        self._fresh_until = NEVER
        self._trusted_until = NEVER
        self._stale_since = NEVER
        self._running: asyncio.Task[bool] | None = None
        self._running_since = NEVER
        self._failed = NEVER
        self._why = AWAY
        self.loading = False
        """Whether a check has been answered, and the caches are being loaded."""

    def fresh(self, arrived: float) -> bool:
        """Whether a request that arrived then (monotonic) may be served at once."""
        if arrived < self._quiet_until:
            return True
        self.refresh()
        return arrived < self._fresh_until

    async def wait_until_fresh(self, arrived: float) -> None:
        """Wait until the caches are fresh for the request; raise `Unavailable`."""
        # After `_trusted_until`, other processes do not wait for this one to check, so
        # only a check that began after the request arrived is new enough.
        moment = arrived - FRESHNESS if arrived < self._trusted_until else arrived
        await self._checked_since(
            max(moment, self._stale_since), self._failed > arrived - RETRY
        )

    def seconds_since_check(self) -> float:
        return time.monotonic() - self._started

    def refresh(self) -> None:
        """Start a check, from any thread, unless one is running or has just failed."""
        if self._loop is not None and threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.refresh)
            return
        now = time.monotonic()
        running = self._running is not None and not self._running.done()
        if not running and now >= self._quiet_until and now - self._failed > RETRY:
            self._start_check()

    def trust(self, until: float) -> None:
        """Set until when other processes wait for ours; later each request checks."""
        self._trusted_until = until
        self._reckon()

    def mark_stale(self) -> None:
        """Ignore all checks that began before now; callable from any thread."""
        self._stale_since = time.monotonic()
        self._reckon()

    def _reckon(self) -> None:
        if self._started <= self._stale_since:
            self._quiet_until = self._fresh_until = NEVER
            return
        self._quiet_until = min(self._started + FRESHNESS / 2, self._trusted_until)
        self._fresh_until = min(self._started + FRESHNESS, self._trusted_until)

    async def wait_for_check(self) -> None:
        """Wait for a check that starts after now; raise `Unavailable`."""
        await self._checked_since(time.monotonic(), outage=False)

    async def _checked_since(self, moment: float, outage: bool) -> None:
        while self._started <= moment:
            if outage or not await self._join_check(moment):
                seconds = random.randint(5, 15)  # noqa: S311 - no secret
                raise Unavailable(self._why, retry_after=seconds)

    async def _join_check(self, moment: float) -> bool:
        running, since = self._running, self._running_since
        if running is None or running.done():
            return await asyncio.shield(self._start_check())
        good = await asyncio.shield(running)
        # If a check that began earlier fails, the caller tries again.  Another waiter
        # may have started the next one meanwhile.
        return good or since <= moment

    def _start_check(self) -> asyncio.Task[bool]:
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._running_since = time.monotonic()
        self._running = start_background_task(self._run_check(self._running_since))
        self._running.add_done_callback(_log_exception)
        return self._running

    async def _run_check(self, started: float) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT):
                change_set = await self._check()
            self.loading = True
            await self._load(change_set)
        except (DatabaseError, TimeoutError, Unavailable) as error:
            if isinstance(error, TimeoutError):
                self._give_up()
            reason = error.__cause__ or error
            logger.warning("A check of the database for changes failed: %r", reason)
            cause = reason if isinstance(error, Unavailable) else error
            self._why = NOT_MIGRATED if lacks_migration(cause) else AWAY
            self._failed = time.monotonic()
            return False
        finally:
            self.loading = False
        self._started = started
        self._reckon()
        return True


def _log_exception(task: asyncio.Task[bool]) -> None:
    """Log an unexpected exception: perhaps no request awaits this check."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error(
            "A check of the database for changes raised an exception.", exc_info=error
        )


# -- refresh ---------------------------------------------------------------------------
# Applies changes to the caches, calls and streams of a process.


async def refresh_caches(process: Process, change_set: ChangeSet) -> None:
    """Apply the changes to the caches, then announce them."""
    definitions_changed = change_set.definitions_changed
    if definitions_changed:
        before = process.revocation.access_by_server()
        await reader.run(process.catalogs.load_changes, change_set)
        process.revocation.close_after_access_change(before)
        if change_set.first and process.catalogs.missing_overlays():
            process.spawn_task(writer.run(make_overlays, process.registry))
    if definitions_changed or change_set.rights_changed:
        process.generation += 1
        process.rights.forget_all()
        token_cache.forget_all()
        authentication_cache.forget_all()
        process.revocation.start_check()
    everything, refs_of_kind = change_set.everything, change_set.refs_of_kind
    closed = refs_of_kind(changes.SESSION)
    if closed or everything:
        await process.sessions.reload_sessions(None if everything else closed)
    await _end_and_answer_calls(process, change_set)
    if everything or refs_of_kind(changes.STOP) or refs_of_kind("server"):
        process.revocation.close_stopped()
    if change_set.refs_of_kind(changes.EVENT) or (everything and not change_set.first):
        process.events.note_changes()
    logged = None if everything else refs_of_kind(changes.LOGGED)
    for session in process.sessions.standing_sessions(logged):
        process.spawn_task(process.deliveries.deliver_messages(session))
    process.announcements.take_in(change_set)


async def _end_and_answer_calls(process: Process, change_set: ChangeSet) -> None:
    answered = change_set.refs_of_kind(changes.QUESTION)
    if change_set.everything:
        answered = process.questions.open_identifiers
    await process.questions.resolve_stored(answered)
    tasks = {int(ref) for ref in change_set.refs_of_kind(changes.TASK) if ref.isdigit()}
    if tasks or change_set.everything:
        process.tasks.apply_changes(None if change_set.everything else tasks)
    ends = {changes.CALL_CANCELLED: End.CANCELLED, changes.CALL_STOPPED: End.STOPPED}
    for kind, end in ends.items():
        for ref in change_set.refs_of_kind(kind):
            # The ref has the key of the session and the digest of the request's id.
            session, _, key = ref.partition(":")
            for run in list(process.sessions.running_requests(session)):
                if request_key(run.request.id) == key:
                    run.stop(end)
