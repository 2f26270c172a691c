"""The process: everything that its requests share.  The first request starts it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from django.utils.module_loading import import_string
from pydantic import ValidationError

from mcp_app.audit.call_log import STRANGERS_ROWS, CallLog
from mcp_app.audit.turned_away import Reason, TurnedAway
from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.site_requests import CallerAddresses
from mcp_app.auth.users import UserRows
from mcp_app.catalog.autodiscovery import fingerprint
from mcp_app.catalog.registry import Registry, mcp
from mcp_app.conf import mcp_settings, secret_keys
from mcp_app.egress.callbacks import event_settings
from mcp_app.egress.client import connections
from mcp_app.interface.log_secrets import log_secrets
from mcp_app.interface.server import VERSION
from mcp_app.invalidation import changes
from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.invalidation.doorbell import Doorbell
from mcp_app.invalidation.workers import (
    FRESHNESS,
    HEARTBEAT,
    MAX_REASON_LENGTH,
    MOST_BROKEN,
    MOST_SESSIONS,
    PeerMonitor,
    Report,
    WorkerRow,
    here,
)
from mcp_app.pools import loop_thread
from mcp_app.pools.database import (
    POOLS,
    checks,
    give_up_hanging,
    lookups,
    reader,
    writer,
)
from mcp_app.pools.loop_thread import Mailbox
from mcp_app.pools.user_threads import UserThreads
from mcp_app.process.announcements import Announcements
from mcp_app.process.callers import Callers, may_read_resource
from mcp_app.process.event_changes import EventChanges
from mcp_app.process.event_delivery import EventDelivery
from mcp_app.process.event_streams import EventStreams
from mcp_app.process.freshness import TIMEOUT, FreshnessGate, refresh_caches
from mcp_app.process.heap import freeze_heap
from mcp_app.process.heartbeat import FINE, STOPPING, Health, Heartbeat, resident_bytes
from mcp_app.process.janitor import Janitor
from mcp_app.process.lifecycle import drain_process, retry_seconds
from mcp_app.process.loading import Catalogs
from mcp_app.process.quotas import Queues, Quotas, Uploads
from mcp_app.process.rates import Rates
from mcp_app.process.revocation import Revocation
from mcp_app.process.running import RunningCalls
from mcp_app.process.shared_rates import SharedRates
from mcp_app.process.stream_opening import StreamOpener
from mcp_app.process.tasks import TaskRunner
from mcp_app.process.ticker import Ticker
from mcp_app.process.upkeep import Upkeep
from mcp_app.process.webhooks import WebhookStore
from mcp_app.protocol.cursors import derived_key, key_fingerprint
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.server.conversation import QuestionPlaces, StateSealer
from mcp_app.server.invocation import InvocationPlaces
from mcp_app.server.ports import Adapters
from mcp_app.server.request_digests import request_key
from mcp_app.server.run import End
from mcp_app.streams.bound_sessions import SseSessions
from mcp_app.streams.listeners import Deliveries, Listener, Listeners
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.questions import OpenQuestions
from mcp_app.streams.replay import Followers
from mcp_app.streams.request_log import RequestLog
from mcp_app.streams.session_store import SessionStore
from mcp_app.streams.sse_reader import SseReader
from mcp_app.streams.steps import StoredSteps

if TYPE_CHECKING:
    from mcp_app.server.tracing import Tracing

logger = logging.getLogger("mcp_app.process")

Value = TypeVar("Value")

LOOK_S = 1.0
"""Seconds between two searches for statements that hang."""


class Process:
    """There is one per OS process and loop; it is used on that loop.

    Under WSGI, threads of requests also use `rates`, `running.in_threads` and what
    plain calls read (`running.in_threads.recognition`).
    """

    stopping: bool
    dropped = 0
    """Number of messages that were dropped, because their clients take JSON alone."""
    generation: int
    """It rises if definitions or rights change: earlier lookups are then outdated."""
    at_close: Callable[[], None] | None = None
    serves = False
    """Whether requests came to it; a process that only runs queued tasks may end."""
    _away = False
    """Whether the last check has failed or still runs."""

    def __init__(self, registry: Registry = mcp) -> None:
        self.stopping, self.generation = False, 0
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.lenient, self.registry = mcp_settings.is_lenient, registry
        self.limits = limits = mcp_settings.limits
        self.read_limits = ReadLimits(limits.depth, limits.nodes)
        # Bodies up to this size are parsed on the loop: a node has two bytes at least.
        self.inline_bytes = min(limits.parse_in_thread, 2 * limits.nodes_in_thread)
        self.listeners, self.questions = Listeners(), OpenQuestions()
        self.rights = RightsCache(registry.rules)
        self.sessions = SessionStore(
            self.limits, self._session_closed, self.settled, self.announced_number
        )
        self.threads = UserThreads(mcp_settings.threads)
        self.uploads = Uploads(self.loop, limits.bodies)
        self.running = RunningCalls(self.loop)
        self.queues = Queues(limits.queues)
        self.catalogs = Catalogs(registry)
        self._row = WorkerRow()
        self.callers = Callers(self)
        self.announcements = Announcements(
            self.listeners,
            self.check_for_changes,
            self._row,
            registry.bindings,
            self.catalogs.personal_lists,
            partial(may_read_resource, self),
        )
        self.log = RequestLog(self._row.id)
        self._peers = PeerMonitor(self._row.id)
        self.followers = Followers(self._peers, self._upkeep.end_orphans)
        self.stream_opener = StreamOpener(
            self.announcements, self.sessions, self._row, self.spawn_task
        )
        self.gate = FreshnessGate(
            self.read_changes, self.load_changes, _replace_threads
        )
        self._ticker = Ticker(self)
        self.watch = self._ticker.start_ticking
        self._quotas = Quotas(self.limits, self.listeners, self.running, self.catalogs)
        self.check_share = self._quotas.check_share
        self.audit, self.tracing = self._build_call_log(), _build_tracing()
        self.adapters = self._build_adapters()
        self._build_services()

    def _build_call_log(self) -> CallLog | None:
        if mcp_settings.audit == "off":
            return None
        return CallLog(
            self._row.id,
            max_calls=self.limits.audit_buffer,
            key=derived_key(secret_keys()[0], "call arguments"),
            strict=mcp_settings.audit == "strict",
            strangers_rows=STRANGERS_ROWS if self.limits.rates else math.inf,
        )

    def _build_adapters(self) -> Adapters:
        keys, limits, mailbox = secret_keys(), self.limits, Mailbox(self.loop)
        around = tuple(map(import_string, mcp_settings.call_context_managers))
        user_code = InvocationPlaces(
            mailbox, self.threads, around, self._quotas.halves_for_strangers
        )
        sealer = StateSealer(
            keys, age=limits.request_state_age, size=limits.request_state_size
        )
        return Adapters(
            loop=self.loop,
            thread=self.thread,
            handshakes=self.sessions,
            sessions=self.sessions,
            questions=self.questions,
            places=QuestionPlaces(limits, self.threads.size),
            steps=StoredSteps(),
            users=UserRows(),
            rights=self.rights,
            topics=self.announcements,
            post=mailbox.post,
            user_code=user_code,
            sealer=sealer,
            cursor_keys=[derived_key(key, "cursors") for key in keys],
            limits=limits,
            rates=self.rates,
            coerce=mcp_settings.coerce,
            audit=self.audit,
            tracing=self.tracing,
            tasks=self.tasks,
            events=self.events,
            webhooks=self.webhooks if find_spec("httpcore2") else None,
        )

    def _build_services(self) -> None:
        self.doorbell = Doorbell(mcp_settings.doorbell, self._ticker.heard)
        self.heartbeat = Heartbeat(
            self.loop,
            self._row,
            self.gate,
            self.spawn_task,
            self._maintain_rows,
            self.build_report,
        )
        self._health = Health(self.gate, self.heartbeat.confirm_writable)
        self.start_services()

    async def _maintain_rows(self) -> None:
        await self._upkeep.maintain_rows()
        await self.tasks.maintain()
        await self.event_delivery.maintain()

    def start_services(self) -> None:
        """Start the work that runs without a request."""
        here.register_process(self._row, self.gate.mark_stale, self._wake_after_commit)
        self._janitor = Janitor(self.loop, self.limits, self.spawn_task)
        self._delays = deque[float](maxlen=int(HEARTBEAT / LOOK_S))
        self._look_for_hanging()

    @cached_property
    def rates(self) -> Rates:
        shared = self._shared_rates
        return Rates(self.limits, shared.note_bucket_use, lock=shared.lock)

    @cached_property
    def _shared_rates(self) -> SharedRates:
        return SharedRates(
            self.loop,
            derived_key(secret_keys()[0], "demand"),
            self._peers.count_living,
            lambda text: writer.run(self._row.exchange_demand, text),
        )

    @cached_property
    def tasks(self) -> TaskRunner:
        return TaskRunner(self, self._row.id)

    @cached_property
    def events(self) -> EventChanges:
        return EventChanges(self)

    @cached_property
    def webhooks(self) -> WebhookStore:
        return WebhookStore(self.limits)

    @cached_property
    def event_streams(self) -> EventStreams:
        return EventStreams(self)

    @cached_property
    def event_delivery(self) -> EventDelivery:
        return EventDelivery(self)

    def offer_places(self) -> None:
        """Run tasks, in at most half of the threads, and deliver events.

        Only processes that serve requests do this.
        """
        if mcp_settings.tasks == "here":
            half = max(1, self.threads.size // 2)
            self.tasks.offer_places(min(self.limits.tasks_per_process, half))
        if event_settings().deliver == "here":
            self.event_delivery.offer()

    @cached_property
    def addresses(self) -> CallerAddresses:
        return CallerAddresses(mcp_settings.trusted_proxies)

    @cached_property
    def turned_away(self) -> TurnedAway:
        return TurnedAway()

    @cached_property
    def revocation(self) -> Revocation:
        return Revocation(
            self.listeners, self.running, self.catalogs, self.rights, self.spawn_task
        )

    @cached_property
    def sse_sessions(self) -> SseSessions:
        return SseSessions(self.sessions, self._row.id)

    @cached_property
    def sse_reader(self) -> SseReader:
        return SseReader(self._peers, self._upkeep.end_orphans)

    @cached_property
    def _upkeep(self) -> Upkeep:
        return Upkeep(
            self._row,
            self._peers,
            self.log,
            self.sessions,
            self.sse_sessions,
            steady=lambda: self.heartbeat.is_steady,
        )

    @cached_property
    def deliveries(self) -> Deliveries:
        return Deliveries()

    def _look_for_hanging(self, due: float = math.inf) -> None:
        """Each second, give up statements that the database does not answer."""
        now = self.loop.time()
        self._delays.append(max(0.0, now - due))
        due = now + LOOK_S
        self._hanging = self.loop.call_at(due, self._look_for_hanging, due)
        give_up_hanging()
        if self.running.in_threads:
            # Without the ticker, nothing notices that such a call takes long.
            self.watch()
        lookups.replace_hanging(TIMEOUT)
        if not self.gate.loading:
            reader.replace_hanging(TIMEOUT)

    # -- serving ----------------------------------------------------------------

    def refuse_if_stopping(self) -> None:
        if self.stopping:
            words, seconds = "This process is stopping.", retry_seconds()
            refusal = Unavailable(words, retry_after=seconds)
            # A proxy that kept this connection would send later requests here, too.
            refusal.headers = {**refusal.headers, "Connection": "close"}
            raise refusal

    async def failing_part(self) -> str:
        """Return the part that keeps this process from serving, "" if none does."""
        part = FINE if self.stopping else await self._health.failing_part()
        return STOPPING if self.stopping else part

    async def read_changes(self) -> ChangeSet:
        """Return what is new, with one statement."""
        await self.heartbeat.ensure_row()
        self.doorbell.listen()
        away, self._away = self._away, True
        change_set = await checks.run(self.announcements.read)
        if away:
            loop_thread.close_cut()
        self._away = False
        return change_set

    async def load_changes(self, change_set: ChangeSet) -> None:
        """Bring the caches up to date."""
        await refresh_caches(self, change_set)
        freeze_heap()

    async def cancel_elsewhere(
        self, session: OpenSession, request_id: str | int
    ) -> None:
        if await reader.run(self._row.others_live):
            await writer.run(changes.record_cancel, session.pk, request_key(request_id))

    def _wake_after_commit(self) -> None:
        """Check for changes after a commit in a thread here; wake other processes."""
        # If the loop is closed, there is nothing to wake.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._ring_and_check)

    def wake_reader(self, session: int) -> None:
        """Wake the process with the stream of an HTTP+SSE session, so that it reads."""
        if session in self.sse_reader:
            self.sse_reader.poll_soon()
        else:
            self.doorbell.ring()

    def _ring_and_check(self) -> None:
        self.doorbell.ring()
        self._ticker.heard()

    async def settled(self) -> None:
        """Return when every process knows what was committed just now."""
        self.gate.mark_stale()
        if await reader.run(self._row.others_live):
            await asyncio.sleep(FRESHNESS)

    # -- streams ----------------------------------------------------------------

    def add_listener(self, listener: Listener, person: str = "") -> None:
        """Open a stream, or raise 503 or 429; a stranger's `person` is an address."""
        self.refuse_if_stopping()
        # A person may have stopped the server while this request was on its way.
        self.catalogs.check_not_stopped(listener.server)
        address = person if listener.principal.anonymous else ""
        self._quotas.check_streams(listener, address)
        self.listeners.add(listener, address)
        self.watch()

    async def check_for_changes(self) -> None:
        try:
            await self.gate.wait_for_check()
        except Unavailable:
            # The streams stay open: the next look may succeed.
            return

    def spawn_task(self, work: Awaitable[Value]) -> asyncio.Future[Value]:
        return self.announcements.spawn_task(work)

    async def announced_number(self) -> int:
        return await self.announcements.wait_for_first_batch()

    def _session_closed(self, session: OpenSession) -> None:
        for run in list(session.running.values()):
            run.stop(End.CANCELLED)
        for stream in list(session.streams):
            stream.end()

    @cached_property
    def _code_fingerprint(self) -> str:
        return fingerprint(self.registry)

    @cached_property
    def _key_fingerprint(self) -> str:
        return key_fingerprint(secret_keys()[0])

    def build_report(self) -> Report:
        answered = self.log.answered_requests()
        return Report(
            streams=Counter(listener.server for listener in self.listeners),
            calls=Counter(
                each.request.catalog.server.slug
                for each in self.running
                if each.session is None
                or (each.session.pk, each.request_id) not in answered
            ),
            sessions=tuple(self.sessions.streaming()[:MOST_SESSIONS]),
            tasks=len(self.tasks),
            places=self.tasks.places,
            delivers=self.event_delivery.delivers,
            release=VERSION,
            waiting=0 if self.audit is None else self.audit.waiting_calls,
            memory=resident_bytes(),
            delay=max(self._delays),
            lost=self.threads.lost_threads,
            dropped=self.dropped,
            secrets=log_secrets.count,
            code=self._code_fingerprint,
            keys=self._key_fingerprint,
            refused=self.turned_away.counts_of_day(),
            broken=tuple(
                (*key, version, reason[:MAX_REASON_LENGTH])
                for key, version, reason in islice(
                    sorted(self.catalogs.broken_rows()), MOST_BROKEN
                )
            ),
        )

    def count_refused(self, reason: Reason, client: str) -> None:
        """Count a request that never became a call; `client` names its sender."""
        self.turned_away.count_refusal(reason, client)
        if not self.heartbeat.has_started and not self.stopping:
            # If every request is refused early, nothing else starts the heartbeat.
            self.gate.refresh()

    # -- the end ----------------------------------------------------------------

    async def drain(
        self, patience: float | None = None, end: End = End.SHUT_DOWN
    ) -> None:
        """Refuse new work, end the streams, and give running calls their time.

        They get `patience` seconds, by default the limit `drain`.  Calls that still run
        then end with `end`.
        """
        self.stopping = True
        patience = self.limits.drain if patience is None else patience
        await drain_process(self, patience, end)
        if self.tracing is not None:
            await self.tracing.send_spans()

    def stop_timers(self) -> None:
        self._ticker.stop()
        self._hanging.cancel()
        self._janitor.stop()
        self._shared_rates.stop()
        self.event_delivery.stop()
        self.heartbeat.stop()
        if self.audit is not None:
            self.audit.stop()

    def close(self) -> None:
        if self.at_close is not None:
            self.at_close()
        self.stop_timers()
        self.doorbell.close()
        here.forget_process(self._row)
        self.threads.close()
        for pool in POOLS:
            pool.close()


def _build_tracing() -> Tracing | None:
    if mcp_settings.tracing is None:
        return None
    try:
        from mcp_app.server import tracing as spans  # noqa: PLC0415 - an extra

        tracing = spans.Tracing(
            spans.TracingOptions.model_validate(mcp_settings.tracing)
        )
    except (ImportError, ValidationError):
        logger.error("Nothing is traced: `manage.py check` says why.")
        return None
    connections().tracing = tracing
    return tracing


def _replace_threads() -> None:
    """Let other threads work in place of those that a hanging check waits for."""
    checks.replace_hanging()
    for pool in (reader, lookups, writer):
        pool.replace_hanging(TIMEOUT / 2)
