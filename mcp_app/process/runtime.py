"""The process: everything that its requests share, started by the first of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Iterable
from functools import cached_property
from typing import TypeVar

from django.conf import settings
from django.db import Error as DatabaseError
from django.utils.module_loading import import_string

from mcp_app.audit.call_log import CallLog
from mcp_app.audit.turned_away import Reason, TurnedAway
from mcp_app.auth.kept import answers
from mcp_app.auth.permissions import KeptRights, UserRows
from mcp_app.auth.tokens import tokens
from mcp_app.catalog.fingerprint import fingerprint
from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.snapshot import Catalog
from mcp_app.catalog.stops import SERVER_OFF
from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import Principal
from mcp_app.interface.rights import Rights
from mcp_app.pools import loop_thread
from mcp_app.pools.database import (
    POOLS,
    give_up_everything,
    give_up_hanging,
    log_writer,
    reader,
    writer,
)
from mcp_app.pools.mailbox import Mailbox
from mcp_app.pools.user_threads import UserThreads
from mcp_app.process.announcements import Announcements
from mcp_app.process.evictions import Evictions, back_s
from mcp_app.process.freshness import TIMEOUT, Gate
from mcp_app.process.health import FINE, STOPPING, Health
from mcp_app.process.heartbeat import Heartbeat
from mcp_app.process.janitor import Janitor
from mcp_app.process.lifecycle import install_drain
from mcp_app.process.loading import Catalogs
from mcp_app.process.openings import Openings
from mcp_app.process.running import RunningCalls
from mcp_app.process.uploads import Uploads
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import Refused, SwitchedOff, Unavailable
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.protocol.revisions import LATEST
from mcp_app.publishing.overlays import make_overlays
from mcp_app.server import identity
from mcp_app.server.exchange import Adapters, End, Exchange, NoWayBack
from mcp_app.server.handlers import resources
from mcp_app.server.invocation import InvocationPlaces
from mcp_app.server.request_state import StateSealer, derived_key
from mcp_app.streams.claims import claim, end_own, open_streams, owners
from mcp_app.streams.following import Followers
from mcp_app.streams.gathering import Gathering
from mcp_app.streams.held import HeldSessions
from mcp_app.streams.listeners import Listener, Listeners
from mcp_app.streams.logged import Deliveries
from mcp_app.streams.questions import OpenQuestions
from mcp_app.streams.request_log import RequestLog
from mcp_app.streams.sessions import OpenSession, SessionStore
from mcp_app.streams.steps import StoredSteps
from mcp_app.wakeup import changes
from mcp_app.wakeup.doorbell import Doorbell
from mcp_app.wakeup.news import News
from mcp_app.wakeup.others import Others
from mcp_app.wakeup.workers import FRESHNESS, MOST_SESSIONS, Report, WorkerRow, here

logger = logging.getLogger("mcp_app.process")

Made = TypeVar("Made")

AGED = 0.5
"""Seconds between two looks for sessions that are too old."""
LAST_WORDS = 1.0
"""Seconds in which the ends of streams and calls may still be sent at a stop."""
LAST_CALLS = 2.0
"""Seconds in which calls may still be written at a stop."""
LAST_BYTES = 0.1
LOOK_S = 1.0


class Process:
    """One per OS process and loop; everything here is used on that loop only."""

    stopping = False
    dropped = 0
    """Messages of calls that went nowhere: their clients take JSON alone."""
    generation = 0
    """It goes up where other things are served, or somebody may have other rights."""
    _away = False
    _answering: asyncio.TimerHandle | None = None
    _watching: asyncio.TimerHandle | None = None

    def __init__(self, registry: Registry = mcp) -> None:
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.lenient = mcp_settings.lenient
        self.registry = registry
        self.limits = mcp_settings.limits
        self.read_limits = ReadLimits(self.limits.depth, self.limits.nodes)
        self.listeners = Listeners()
        self.questions = OpenQuestions()
        self.rights = KeptRights(registry.rules)
        self.sessions = SessionStore(
            self.limits, self._session_closed, self.settled, self.announced
        )
        self.threads = UserThreads(mcp_settings.threads)
        self.running = RunningCalls(self.loop)
        self.uploads = Uploads(self.loop)
        self._catalogs = Catalogs(registry)
        self._row = WorkerRow()
        self._announcements = Announcements(
            self.listeners,
            self._looked,
            self._row,
            registry.bindings,
            self._personal,
            self._hears,
        )
        self.log = RequestLog(self._row.id)
        self._others = Others(self._row.id)
        self.followers = Followers(self._others, self._claim)
        self.openings = Openings(
            self._announcements, self.sessions, self._row, self.spawn
        )
        self.gate = Gate(self._check, self._load, _replace)
        self._doorbell = Doorbell(mcp_settings.doorbell, self._heard)
        here.serves(self._row, self.gate.stale, self._committed)
        self._heartbeat = Heartbeat(
            self.loop, self._row, self.gate, self.spawn, self._beat, self.report
        )
        self._health = Health(self.gate, self._heartbeat.confirmed)
        self.audit = self._audit()
        self.adapters = self._adapters()
        self._beaten = self._aged = self.loop.time()
        self._janitor = Janitor(self.loop, self.limits, self.spawn)
        self._look_for_hanging()

    @cached_property
    def turned_away(self) -> TurnedAway:
        """What never became a call."""
        return TurnedAway()

    @cached_property
    def _evictions(self) -> Evictions:
        """Who ends what may not go on."""
        return Evictions(
            self.listeners, self.running, self._catalogs, self.rights, self.spawn
        )

    @cached_property
    def held(self) -> HeldSessions:
        """The sessions of HTTP+SSE."""
        return HeldSessions(self.sessions, self._row.id)

    @cached_property
    def gathering(self) -> Gathering:
        """Who reads what is said in them."""
        return Gathering(self._others, self._claim)

    @cached_property
    def deliveries(self) -> Deliveries:
        """Who sends what was logged for sessions."""
        return Deliveries()

    def _look_for_hanging(self) -> None:
        """Each second cut what the database has not answered for too long."""
        self._hanging = self.loop.call_later(LOOK_S, self._look_for_hanging)
        give_up_hanging()

    def _audit(self) -> CallLog | None:
        if mcp_settings.audit == "off":
            return None
        return CallLog(
            self._row.id,
            most=self.limits.audit_buffer,
            key=derived_key(_secrets()[0], "call arguments"),
            strict=mcp_settings.audit == "strict",
        )

    def _adapters(self) -> Adapters:
        secrets = _secrets()
        mailbox = Mailbox(self.loop)
        around = tuple(import_string(path) for path in mcp_settings.around)
        return Adapters(
            loop=self.loop,
            thread=self.thread,
            handshakes=self.sessions,
            sessions=self.sessions,
            questions=self.questions,
            steps=StoredSteps(),
            users=UserRows(),
            rights=self.rights,
            topics=self._announcements,
            post=mailbox.post,
            user_code=InvocationPlaces(mailbox, self.threads, around),
            sealer=StateSealer(
                secrets,
                age=self.limits.request_state_age,
                size=self.limits.request_state_size,
            ),
            cursor_keys=[derived_key(each, "cursors") for each in secrets],
            limits=self.limits,
            coerce=mcp_settings.coerce,
            audit=self.audit,
        )

    # -- serving ----------------------------------------------------------------

    def catalog(self, slug: str) -> Catalog:
        """Return a server's catalog; 404 where there is no such server."""
        found = self.served(slug)
        if found is None:
            raise Refused(404, f"There is no MCP server {slug!r} here.")
        return found

    def served(self, slug: str) -> Catalog | None:
        """Return a server's catalog, None where there is no such server.

        Raises 503 where people have switched it off.
        """
        found = self._catalogs.by_slug.get(slug)
        if found is None:
            self._refuse_switched_off(slug)
        return found

    def _refuse_switched_off(self, slug: str) -> None:
        catalogs = self._catalogs
        # Where everything is stopped, nothing is said of what there would be.
        if slug in catalogs.stopped or catalogs.stops.everything:
            raise SwitchedOff(SERVER_OFF, retry_after=back_s())

    async def rights_in(self, catalog: Catalog, principal: Principal) -> Rights:
        """Return which demands of a server and its offers a principal meets."""
        slug = catalog.server.slug
        return await self.rights.of(principal, slug, catalog.demands)

    def _personal(self, slug: str) -> Iterable[str]:
        """Return the lists of a server that differ from user to user."""
        catalog = self._catalogs.by_slug.get(slug)
        return () if catalog is None else catalog.personal_lists

    async def _hears(self, listener: Listener, uri: str) -> bool:
        """Whether a stream's client may read a resource, as things are now."""
        catalog = self._catalogs.by_slug.get(listener.server)
        if catalog is None or not catalog.restricted:
            return True
        principal = listener.principal
        rights = await self.rights_in(catalog, principal)
        if rights.gone or not rights.meet(catalog.server.demands):
            return False
        asked = Exchange(
            adapters=self.adapters,
            catalog=catalog,
            revision=LATEST,
            principal=principal,
            rights=rights,
            request_id=0,
            method="resources/read",
            params={},
            meta={},
            outgoing=NoWayBack(),
        )
        return await resources.visible(asked, uri) is not None

    def refuse_if_stopping(self) -> None:
        if self.stopping:
            raise Unavailable("This process is stopping.", retry_after=_soon())

    async def read_in_thread(self, body: bytes) -> object:
        """Return the value of a body that would hold the loop up for too long."""
        return await asyncio.to_thread(jsonrpc.read, body, self.read_limits)

    async def failing(self) -> str:
        """Return which part keeps this process from serving, "" where none does."""
        found = FINE if self.stopping else await self._health.failing()
        return STOPPING if self.stopping else found

    async def _check(self) -> News:
        """Return what is new, with one statement."""
        await self._heartbeat.begun()
        self._doorbell.listen()
        away, self._away = self._away, True
        news = await reader.run(self._announcements.read)
        if away:
            loop_thread.close_cut()
        self._away = False
        return news

    async def _load(self, news: News) -> None:
        """Bring the caches up to date."""
        if news.definitions_changed:
            before = self._evictions.ways()
            await reader.run(self._catalogs.load, news)
            self._evictions.where_others_come_in(before)
            if news.first and self._catalogs.missing_overlays():
                self.spawn(writer.run(make_overlays, self.registry))
        if news.definitions_changed or news.rights_changed:
            self.generation += 1
            self.rights.forget()
            tokens.forget()
            answers.forget()
            self._evictions.look()
        closed = news.refs(changes.SESSION)
        if closed or news.everything:
            await self.sessions.reload(None if news.everything else closed)
        await self._load_of_calls(news)
        if news.everything or news.refs(changes.STOP) or news.refs("server"):
            self._evictions.where_stopped()
        for session in self.sessions.standing(
            None if news.everything else news.refs(changes.LOGGED)
        ):
            self.spawn(self.deliveries.deliver(session))
        self._announcements.seen(news)

    async def _load_of_calls(self, news: News) -> None:
        """Take answers and cancellations that came to other processes."""
        answered = news.refs(changes.QUESTION)
        if news.everything:
            answered = self.questions.open
        await self.questions.look(answered)
        for ref in news.refs(changes.CANCELLED):
            self._end(ref, End.CANCELLED)
        for ref in news.refs(changes.STOPPED):
            self._end(ref, End.STOPPED)

    def _end(self, ref: str, end: End) -> None:
        session, _, key = ref.partition(":")
        for exchange in list(self.sessions.running(session)):
            if identity.key(exchange.request_id) == key:
                exchange.stop(end)

    async def cancel_elsewhere(
        self, session: OpenSession, request_id: str | int
    ) -> None:
        """Cancel a request of a session that does not run here, if it runs at all."""
        if await reader.run(self._row.others_live):
            key = identity.key(request_id)
            await writer.run(changes.cancelled, session.pk, key)

    def _committed(self) -> None:
        """A thread of this OS process has committed a change: wake everybody."""
        # A loop that is closed has nobody to tell.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._rung)

    def said(self, session: int) -> None:
        """Something was logged for a session of HTTP+SSE: who has its stream reads."""
        if session in self.gathering:
            self.gathering.hurry()
        else:
            self._doorbell.ring()

    def _rung(self) -> None:
        self._doorbell.ring()
        self._heard()

    def _heard(self) -> None:
        """Something was committed somewhere: look, if anybody is to be told.

        However often it rings, a check starts when the last one is T/2 old.
        """
        self.gathering.hurry()
        if self._answering is None and (self.listeners or self.running):
            delay = self.gate.age()
            self._answering = self.loop.call_later(
                max(0.0, FRESHNESS / 2 - delay), self._answer_ring
            )

    def _answer_ring(self) -> None:
        self._answering = None
        self.spawn(self._looked())

    async def settled(self) -> None:
        """Return when what was committed just now is true in every process."""
        self.gate.stale()
        if await reader.run(self._row.others_live):
            await asyncio.sleep(FRESHNESS)

    # -- streams ----------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Open a stream; raise 503 or 429 where there are as many as there may be."""
        self.refuse_if_stopping()
        if listener.server in self._catalogs.stopped:
            # It was, while this was on its way.
            self._refuse_switched_off(listener.server)
        if self.limits.rates:
            self._check_streams(listener)
        self.listeners.add(listener)
        self.watch()

    def _check_streams(self, listener: Listener) -> None:
        limits = self.limits
        if len(self.listeners) >= limits.streams_per_process:
            raise Unavailable("This process has as many open streams as it may.")
        own = [each for each in self.listeners if each.owner == listener.owner]
        if listener.owner and len(own) >= limits.streams_per_principal:
            raise _too_many(limits.streams_per_principal, "open streams")
        session = [each for each in own if each.session == listener.session]
        if listener.session and len(session) >= limits.streams_per_session:
            raise _too_many(limits.streams_per_session, "open streams in a session")

    def admit(self, principal: Principal, calls: int) -> None:
        """Raise 429 where a principal would have more running calls than it may."""
        most = self.limits.running_calls
        if self.limits.rates and self.running.of(principal.key) + calls > most:
            raise _too_many(most, "running calls")

    def watch(self) -> None:
        """Beat, and look for changes, as long as there is a stream or a call."""
        tokens.doubt()
        if self._watching is None:
            self._beaten = self.loop.time()
            self._watching = self.loop.call_later(FRESHNESS / 2, self._tick)

    def _tick(self) -> None:
        """Look for changes while somebody listens; beat less often."""
        if not self.listeners and not self.running:
            self._watching = None
            return
        # First this: what fails below must not be the last look of this process.
        self._watching = self.loop.call_later(FRESHNESS / 2, self._tick)
        self._evictions.look()
        if self.loop.time() - self._beaten >= self.limits.heartbeat:
            self._beaten = self.loop.time()
            self.running.beat()
            for listener in self.listeners:
                listener.beat()
        if self.loop.time() - self._aged >= AGED:
            self._aged = self.loop.time()
            self.sessions.end_old()
        self.gate.refresh()

    async def _looked(self) -> None:
        try:
            await self.gate.look()
        except Unavailable:
            # The streams stay open: the next look may succeed.
            return

    def spawn(self, work: Awaitable[Made]) -> asyncio.Future[Made]:
        """Let something run beside the requests; it is kept until it is done."""
        task = asyncio.ensure_future(work)
        self._announcements.keep(task)
        return task

    async def announced(self) -> int:
        """Return the number up to which every change has been announced."""
        return await self._announcements.begun()

    def _session_closed(self, session: OpenSession) -> None:
        for exchange in list(session.running.values()):
            exchange.stop(End.CANCELLED)
        for stream in list(session.streams):
            stream.end()

    async def _beat(self) -> None:
        """Do with each heartbeat what the rows of others, and of sessions, need."""
        await self._end_unknown()
        await self._look_around()
        await self.sessions.touch_used()
        await tokens.write_uses()
        await self.held.sweep()

    async def _end_unknown(self) -> None:
        """End streams of this process that it knows no more: nobody else will."""
        found = await log_writer.run(open_streams, self._row.id)
        if unknown := self.log.unknown(found):
            logger.error("Streams are ended that nobody would end: %s.", unknown)
            await log_writer.run(end_own, self._row.id, unknown)

    async def _look_around(self) -> None:
        """Look which other processes live."""
        began = time.monotonic()
        self._others.look(await reader.run(owners), began)
        self._row.judged = self._others.judged()
        await self._claim()

    async def _claim(self) -> None:
        """End the streams of processes that died, and the sessions that they held."""
        dead = self._others.orphaning()
        if dead and self._heartbeat.steady:
            await log_writer.run(claim, self._row.id, dead)
            await self.held.end_of_dead(dead)

    @cached_property
    def _code(self) -> str:
        return fingerprint(self.registry)

    def report(self) -> Report:
        """Return what this process says of itself."""
        answered = self.log.answered()
        return Report(
            streams=Counter(each.server for each in self.listeners),
            calls=Counter(
                each.catalog.server.slug
                for each in self.running
                if each.session is None
                or (each.session.pk, each.request_id) not in answered
            ),
            sessions=tuple(self.sessions.streaming()[:MOST_SESSIONS]),
            lost=self.threads.lost,
            dropped=self.dropped,
            code=self._code,
            refused=self.turned_away.said(),
        )

    def refused(self, reason: Reason, client: str) -> None:
        """Count a request that never became a call; `client` names what sent it."""
        self.turned_away.note(reason, client)
        if not self._heartbeat.beats and not self.stopping:
            # Where all are refused before anything is looked up, nobody would know.
            self.gate.refresh()

    # -- the end ----------------------------------------------------------------

    async def drain(self, patience: float | None = None) -> None:
        """Refuse new work, end the streams, and give running calls their time.

        That is `patience` in seconds, without one the limit `drain`.
        """
        if patience is None:
            patience = self.limits.drain
        self.stopping = True
        self.uploads.give_up()
        for listener in self.listeners:
            listener.end(retry_ms=1_000 * _soon())
        deadline = self.loop.time() + patience
        known = self.gathering.next_whole
        while self._at_work(known) and self.loop.time() < deadline:
            await asyncio.sleep(0.05)
        self.uploads.give_up()
        for exchange in self.running:
            exchange.stop(End.SHUT_DOWN)
        deadline = self.loop.time() + LAST_WORDS
        while self._has_words() and self.loop.time() < deadline:
            await asyncio.sleep(0.02)
        self._doorbell.close()
        # A call is over before its answer is sent, and some servers cut what is left.
        await asyncio.sleep(LAST_BYTES)
        await self._written()
        with contextlib.suppress(DatabaseError, Unavailable):
            await tokens.write_uses()
        await self._heartbeat.end()
        await self._answered()
        # The server waits for requests that wait for the database.
        give_up_everything()

    async def _answered(self) -> None:
        """Return when the database has answered everything, or that takes too long."""
        deadline = self.loop.time() + LAST_WORDS
        while self.loop.time() < deadline and any(pool.busy for pool in POOLS):
            await asyncio.sleep(0.02)

    async def _written(self) -> None:
        """Return when all calls are written, or that takes too long."""
        deadline = self.loop.time() + LAST_CALLS
        while self.audit is not None and self.audit.busy:
            if self.loop.time() >= deadline:
                return
            self.audit.hurry()
            await asyncio.sleep(0.02)

    def _at_work(self, known: int) -> bool:
        """Whether a call runs, or is waited for by a client that is connected here.

        It may run elsewhere, and have begun a moment ago: others close the session of
        such a client as soon as this process is gone.
        """
        waited_for = self.gathering.at_work(known)
        return bool(self.running or self.log.busy or waited_for)

    def _has_words(self) -> bool:
        """Whether anything is still to be sent, or logged."""
        return bool(self.running or self.listeners or self.log.busy)

    def rest(self) -> None:
        """Begin nothing any more that nobody has asked for."""
        for timer in (self._answering, self._watching, self._hanging):
            if timer is not None:
                timer.cancel()
        self._janitor.stop()
        self._heartbeat.stop()
        if self.audit is not None:
            self.audit.stop()

    def close(self) -> None:
        """Let go of threads and connections."""
        if _alive.get(self.loop) is self:
            del _alive[self.loop]
        self.rest()
        self._doorbell.close()
        here.forget(self._row)
        self.threads.close()
        for pool in POOLS:
            pool.close()


def _replace() -> None:
    """A check hangs: let others go on in place of the threads that it needs."""
    reader.replace()
    writer.replace(TIMEOUT / 2)


def _soon() -> int:
    """Return after how many seconds to come back: not all clients at once."""
    return random.randint(2, 5)  # noqa: S311 - no secret


def _too_many(limit: int, what: str) -> Unavailable:
    return Unavailable(f"There are {limit} {what} already.", http_status=429)


def _secrets() -> list[str]:
    if mcp_settings.state_keys:
        return list(mcp_settings.state_keys)
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


_current: Process | None = None
"""The one that was asked for last: nearly always the only one."""
_alive: dict[asyncio.AbstractEventLoop, Process] = {}
_lock = threading.Lock()


def _forget() -> None:
    """A forked child has no threads and another loop: it starts a process anew."""
    global _current, _lock  # noqa: PLW0603 - one per OS process is what this is
    _current = None
    _alive.clear()
    # Another thread may have held it at the fork.
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def running_process(loop: asyncio.AbstractEventLoop) -> Process | None:
    """Return the process of a loop, None where it has none; from any thread."""
    return _alive.get(loop)


def process() -> Process:
    """Return the process of the running loop; a fork or a new loop gets its own.

    To ask for the running loop is a system call (CPython 3.11): a loop that runs in
    this thread is the running one.
    """
    current = _current
    if (
        current is None
        or current.thread != threading.get_ident()
        or not current.loop.is_running()
    ):
        current = _of_running_loop()
    return current


def _of_running_loop() -> Process:
    """Return the process of this loop, which one of another loop stood before."""
    global _current  # noqa: PLW0603 - one per OS process is what this is
    current = _alive.get(asyncio.get_running_loop())
    if current is None:
        current = begun()
        install_drain(current)
    _current = current
    return current


def begun() -> Process:
    """Begin the process of the running loop; the caller drains and closes it."""
    global _current  # noqa: PLW0603 - one per OS process is what this is
    with _lock:
        for loop in [each for each in _alive if each.is_closed()]:
            del _alive[loop]
        _current = Process()
        _alive[_current.loop] = _current
    return _current
