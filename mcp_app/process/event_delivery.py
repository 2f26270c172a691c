"""Delivers events to webhook subscriptions (SEP-3415, "Webhook delivery").

A process claims a row for a limited time; its writes after that time are ignored.  If
the process dies before it has stored a delivery, the event is posted again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from django.db import Error as DatabaseError

from mcp_app.egress.callbacks import CallbackAnswer, UnusableCallback, read_callback
from mcp_app.interface.call_record import Ending, Outcome
from mcp_app.pools.database import reader, writer
from mcp_app.process.stored_calls import AccessLost, make_request
from mcp_app.process.webhooks import WebhookStore
from mcp_app.protocol import jsonrpc, webhooks
from mcp_app.protocol.errors import InvalidParams, SwitchedOff, Unavailable
from mcp_app.protocol.events import (
    DIALECTS,
    MAX_POLL_EVENTS,
    Dialect,
    ErrorName,
    EventError,
    Occurred,
    event_to_wire,
)
from mcp_app.protocol.tasks import read_json
from mcp_app.protocol.webhooks import Webhook
from mcp_app.server.events import (
    LISTING,
    Batch,
    Subscription,
    choose_events,
    cursor_at,
    find_subscription,
    read_batch,
)
from mcp_app.server.recording import circumstances
from mcp_app.server.run import Run
from mcp_app.server.stored_callers import caller_members
from mcp_app.streams import event_deliveries as rows
from mcp_app.streams.event_deliveries import Claim, Pace

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

logger = logging.getLogger("mcp_app.events")

Value = TypeVar("Value")

AT_ONCE: Final = 8
"""Subscriptions that a process serves at once; one person may use few of them."""
LOOK_S: Final = 1.0
"""Seconds between looks, because commands and queues ring no doorbell."""
BATCH_SIZE: Final = 50
TURN_S: Final = 10.0
"""Seconds that a claim may post; then others are served, even if a receiver is slow."""
MAX_WAITING: Final = 1_000
"""If more events wait, they are skipped and the subscriber gets a gap notice."""
GONE_S: Final = 540.0
"""Seconds that a type may be absent, as in a deploy, before its subscriptions end."""
STOPPED_MS: Final = 10_000
"""Pause after which a stopped type is looked at again."""
FAILED_MS: Final = 60_000
"""Pause after a failed delivery, or if the type is absent."""
ENDING_PAUSES_S: Final = (0, 1, 4)
"""Pauses before each attempt to tell a receiver that its subscription is over."""
FINAL: Final = (HTTPStatus.GONE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
"""Statuses after which an event is not posted again."""
REFUSALS: Final = (
    *(HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED),
    *(HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY),
)
"""Statuses with which receivers refuse a `webhook-id`."""
TOO_LARGE: Final = CallbackAnswer(
    error=webhooks.HTTP_4XX, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE
)
REVOKED: Final = "The access of the subscriber was taken away."
SUBSCRIPTION_ENDED: Final = "This subscription was ended at the site."


class EventDelivery:
    """The subscriptions that a process delivers to; used on its loop only."""

    is_looking = False
    """Whether to look for events: somebody subscribes.  `maintain` sets it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._pace = Pace(process.limits)
        self.delivers = self._is_claiming = self._claims_again = False
        self._busy: Counter[str] = Counter()
        """The number of running deliveries, by person."""
        self._timer: asyncio.TimerHandle | None = None
        self._begun = time.monotonic()
        self._offered: dict[tuple[str, str], float] = {}
        """When an event type was last offered, by server and name."""

    def __len__(self) -> int:
        return self._busy.total()

    def offer(self) -> None:
        """Deliver, from the next heartbeat on."""
        self.delivers = True
        self._process.events.add_reader(lambda _topics: self.wake())

    async def maintain(self) -> None:
        """At each heartbeat look whether anybody subscribes."""
        now, catalogs = time.monotonic(), self._process.catalogs.by_slug
        for slug, catalog in catalogs.items():
            self._offered.update(((slug, name), now) for name in catalog.events)
        # If a server is stopped, keep looking: its types may come back.
        has_types = any(each.has_events for each in catalogs.values())
        may_have_types = self.is_looking or has_types or self._process.catalogs.stopped
        may_deliver = self.delivers and not self._process.stopping and may_have_types
        self.is_looking = bool(may_deliver) and await reader.run(rows.has_subscriptions)
        if self.is_looking and self._timer is None:
            self._look()

    def _look(self) -> None:
        """Look now, and then each `LOOK_S`, as long as somebody subscribes."""
        self._timer = None
        if self.is_looking and not self._process.stopping:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)
            self.wake()

    def stop(self) -> None:
        self.is_looking = self.delivers = False
        if self._timer is not None:
            self._timer.cancel()

    def wake(self) -> None:
        """Claim subscriptions with due or new events, if somebody subscribes."""
        self._claims_again = self.is_looking
        if self._claims_again and not self._is_claiming:
            self._is_claiming = True
            self._process.spawn_task(self._claim_all())

    def has_gone(self, server: str, event_type: str) -> bool:
        """Whether a type has been absent for `GONE_S`."""
        last = self._offered.get((server, event_type), self._begun)
        return time.monotonic() - last >= GONE_S

    def _topics(self) -> set[str]:
        catalogs = self._process.catalogs.by_slug.values()
        entries = (event for catalog in catalogs for event in catalog.events.values())
        return {entry.definition.topic for entry in entries}

    async def _claim_all(self) -> None:
        try:
            while self._claims_again and not self._process.stopping:
                await self._process.gate.wait_until_fresh(time.monotonic())
                self._claims_again = False
                has_claimed = await self._claim()
                # `wake` may have been called during the claim.
                self._claims_again = self._claims_again or has_claimed
        except (DatabaseError, Unavailable):
            # The next look tries again.
            return
        finally:
            self._is_claiming = False

    async def _claim(self) -> bool:
        """Claim up to the free places and deliver; return whether any was claimed."""
        limit = AT_ONCE - len(self)
        if limit <= 0:
            return False
        last: dict[str, int] = {}
        for topic in sorted(self._topics()):
            last.update((await self._process.events.current_state(topic)).last)
        owner = secrets.token_hex(16)
        claims = await writer.run(
            rows.claim_subscriptions, owner, limit, self._busy.copy(), last, self._pace
        )
        for claim in claims:
            self._busy[claim.record.person] += 1
            self._process.spawn_task(self._serve(claim))
        return bool(claims)

    async def _serve(self, claim: Claim) -> None:
        """Deliver the due retries and one batch, then release the claim."""
        try:
            try:
                await _Delivery(self._process, self, claim).run()
            except SwitchedOff:
                claim.hold(STOPPED_MS)
            except (DatabaseError, Unavailable, Ended):
                raise
            except Exception:
                logger.exception("Events could not be delivered.")
                claim.hold(FAILED_MS)
            await writer.run(claim.store, end=True)
        except (DatabaseError, Unavailable, Ended):
            # After the lease, another claim continues.
            return
        finally:
            self._busy -= Counter([claim.record.person])
            self.wake()


async def post_signed(
    store: WebhookStore, record: Webhook, now_ms: int, message_id: str, body: bytes
) -> CallbackAnswer:
    """Post a message to the receiver of a subscription."""
    if len(body) > webhooks.MAX_BODY:
        return TOO_LARGE
    try:
        callback = read_callback(record.url)
    except UnusableCallback:
        # The settings or the keys that sealed it have changed.
        return CallbackAnswer(error=webhooks.REFUSED)
    if not callback.trusted and record.verified_ms is None:
        # The receiver was trusted before, so it was never challenged.
        return CallbackAnswer(error=webhooks.CHALLENGE_FAILED)
    signing = record.current_secrets(now_ms)
    headers = webhooks.message_headers(
        record.public_id, signing, message_id, now_ms // 1_000, body
    )
    return await store.callbacks.post_message(callback, headers, body)


async def post_by_its_id(
    post: Callable[[str, bytes], Awaitable[CallbackAnswer]],
    dialect: Dialect,
    state: dict[str, Any],
    ids: tuple[str, str],
    body: bytes,
) -> CallbackAnswer:
    """Post an event with its message id, or with its event id if that is refused.

    `ids` are both ids; `state` has `by_event`, `sent` and `last_status`.  If a receiver
    that has accepted nothing yet refuses the message id with another status than last
    time, it gets the event id at once.  An accepted event id is used from then on.
    """
    message_id, event_id = ids
    if state["by_event"] or not dialect.message_ids:
        return await post(event_id, body)
    answer = await post(message_id, body)
    is_new = not state["sent"] and state["last_status"] != answer.status
    if is_new and answer.status in REFUSALS:
        second_answer = await post(event_id, body)
        state["by_event"] = not second_answer.error
        # A status that is no refusal is kept, so that both ids are tried next time.
        return answer if second_answer.status in REFUSALS else second_answer
    return answer


class Ended(Exception):
    """The subscription is over, or another worker has claimed it."""


class _Delivery:
    """Delivers the events of one claim, one after the other."""

    _run: Run
    _subscription: Subscription

    def __init__(self, process: Process, parent: EventDelivery, claim: Claim) -> None:
        self._process, self._parent, self._claim = process, parent, claim
        self._caller: dict[str, Any] = read_json(claim.record.caller)
        self._dialect = DIALECTS[self._caller["dialect"]]
        self._generation = process.generation
        self._ends = 0.0

    async def run(self) -> None:
        claim = self._claim
        if claim.record.ending:
            await self._end("forbidden", SUBSCRIPTION_ENDED, reason="ended")
        if not await self._find_subscriber() or not claim.state["active"]:
            return
        if not await self._post_again() or not await self._skip_backlog():
            return
        if limit := claim.free_places(BATCH_SIZE):
            batch = await self._read(claim.position, limit)
            first = batch.events[0].number - 1 if batch.events else batch.position
            if batch.truncated and not await self._pass_over(first):
                return
            for event in batch.events:
                if not await self._post_event(event):
                    return
            claim.position = max(claim.position, batch.position)

    async def _post_again(self) -> bool:
        """Post the due retries; return whether to go on."""
        for retry in self._claim.due_retries():
            number, outbox = retry.number, self._process.events
            occurrences, _floor = await outbox.load(self._topic, number - 1, 1)
            occurrences = [each for each in occurrences if each.number == number]
            events = await choose_events(self._run, self._subscription, occurrences)
            if not events:
                # The subscriber does not get this event any more.
                self._claim.drop_retry(number)
                self._claim.list_delivery(number, rows.UNTOLD)
            elif not await self._post_event(events[0]):
                return False
        return True

    @property
    def _topic(self) -> str:
        return self._subscription.entry.definition.topic

    # -- who, and what -----------------------------------------------------------------

    async def _find_subscriber(self) -> bool:
        """Check access: return False without the type, raise `Ended` without access."""
        row = self._claim.record
        params = {"name": row.event_type, "arguments": read_json(row.arguments)}
        if self._process.catalogs.find_catalog(row.server) is None:
            return await self._wait_for_type()
        try:
            request = await make_request(
                self._process,
                row.server,
                self._caller["revision"],
                **caller_members(self._caller),
                id=row.public_id,
                method="events/subscribe",
                params=params,
                person=row.person,
            )
        except AccessLost:
            await self._end("forbidden", REVOKED, reason="revoked")
        run = self._run = Run(request)
        run.task = asyncio.current_task()
        entry = request.catalog.events.get(row.event_type)
        if entry is None and request.catalog.switched_off(LISTING, row.event_type):
            raise SwitchedOff("The event type is stopped.")
        if entry is None:
            return await self._wait_for_type()
        if not request.sees(entry.definition):
            await self._end("forbidden", REVOKED, reason="revoked")
        try:
            self._subscription = await find_subscription(run, params)
        except InvalidParams as error:
            await self._end("unsupported", error.message, reason="schema_changed")
        except EventError as error:
            await self._end("forbidden", error.message, **(error.data or {}))
        return True

    async def _wait_for_type(self) -> bool:
        """Pause the subscription while its type is absent; end it after `GONE_S`."""
        row = self._claim.record
        if self._parent.has_gone(row.server, row.event_type):
            message = f"There is no event {row.event_type} any more."
            await self._end("not_found", message, kind="event")
        self._claim.hold(FAILED_MS)
        return False

    async def _end(self, name: ErrorName, message: str, **data: Any) -> NoReturn:
        """Tell the receiver about the end, delete the row, and raise `Ended`."""
        error = EventError(self._dialect, name, message, **data)
        body = webhooks.terminated_body(error)
        for pause_s in ENDING_PAUSES_S[: self._dialect.terminated_attempts]:
            await asyncio.sleep(pause_s)
            answer = await self._post_control("terminated", body)
            if not answer.error or answer.status in FINAL:
                break
        await writer.run(self._claim.delete)
        raise Ended

    # -- posts -------------------------------------------------------------------------

    async def _post_event(self, event: Occurred) -> bool:
        """Post an event and store the answer; return whether to go on."""
        claim, process = self._claim, self._process
        rights_are_current = self._generation == process.generation
        began = time.monotonic()
        self._ends = self._ends or began + TURN_S
        turn_has_ended = began > self._ends or not claim.has_lease
        if process.stopping or turn_has_ended or not rights_are_current:
            # Another claim checks the rights again.
            return False
        entry, key = self._subscription.entry, claim.record.public_id
        cursor = cursor_at(self._run.request, entry, claim.watermark_at(event.number))
        body = jsonrpc.write(event_to_wire(event, entry.identity, cursor))
        ids = webhooks.message_id(self._dialect, key, event.event_id), event.event_id
        state, dialect = claim.state, self._dialect
        answer = await post_by_its_id(self._post, dialect, state, ids, body)
        self._log_attempt(began, answer)
        is_final = answer.status in FINAL
        status = answer.status
        claim.note_answer(event.number, answer.error, status, is_final=is_final)
        line = answer.first_line(claim.record.url, event.data)
        details = {"event": event.event_id, "status": status, "line": line}
        claim.list_delivery(event.number, answer.error, **details)
        if not await writer.run(claim.store):
            raise Ended
        return not answer.error or is_final

    def _log_attempt(self, began: float, answer: CallbackAnswer) -> None:
        """Log subscriber, outcome and host as a call, but nothing of the event."""
        run, audit = self._run, self._run.request.adapters.audit
        if audit is not None:
            outcome = Outcome.OTHER_SITE if answer.error else Outcome.ANSWERED
            where = jsonrpc.canonical({"host": self._claim.record.host})
            # The host is no hidden value, so the last member is empty.
            shared = (*circumstances(run, outcome)[:-1], ())
            took = time.monotonic() - began
            ending = Ending(outcome, answer.error)
            audit.add((shared, began, took, 0, where, 0, "", ending))

    async def _post_control(self, kind: str, body: bytes) -> CallbackAnswer:
        message_id = webhooks.control_id(kind, secrets.token_hex(16))
        return await self._post(message_id, body)

    async def _post(self, message_id: str, body: bytes) -> CallbackAnswer:
        claim, store = self._claim, self._process.webhooks
        return await post_signed(store, claim.record, claim.now_ms, message_id, body)

    # -- gaps --------------------------------------------------------------------------

    async def _skip_backlog(self) -> bool:
        """Skip events if more than `MAX_WAITING` wait; return as `_pass_over` does."""
        claim, count = self._claim, 0
        state = await self._process.events.current_state(self._topic, claim.position)
        last, position = state.last[self._topic], claim.position
        has_more = self._process.limits.rates and last - position > MAX_WAITING
        while has_more and count <= MAX_WAITING:
            batch = await self._read(position, MAX_POLL_EVENTS)
            count += len(batch.events)
            position, has_more = batch.position, batch.has_more
            if not count and not batch.truncated:
                # The next claim need not read these again.
                claim.position = position
        return count <= MAX_WAITING or await self._pass_over(state.newest)

    async def _pass_over(self, position: int) -> bool:
        """Skip events up to a position; return False if the notice must be repeated."""
        claim, is_done = self._claim, True
        if self._dialect.posts_gaps:
            mark = rows.watermark(position, claim.retries)
            cursor = cursor_at(self._run.request, self._subscription.entry, mark)
            answer = await self._post_control("gap", webhooks.gap_body(cursor))
            claim.note_state(answer.error, answer.status)
            is_done = not answer.error or answer.status in FINAL
        else:
            claim.state["truncated"] = True
        if is_done:
            claim.position = position
        else:
            claim.hold(FAILED_MS)
        return is_done

    async def _read(self, position: int, limit: int) -> Batch:
        return await read_batch(self._run, self._subscription, position, limit)
