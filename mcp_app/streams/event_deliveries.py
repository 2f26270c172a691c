"""Deliveries to webhook subscriptions: what is claimed, and what became of it.

A subscription is a single row, which also has its retries.  So an event that fails
delays no other one (SEP-3415, "Webhook delivery").
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db.models import Q

from mcp_app.conf import Limits
from mcp_app.models import EventSubscription
from mcp_app.models.event_subscriptions import CHECK_MS, LEASE_MS
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.tasks import read_json
from mcp_app.streams.event_subscriptions import record_of

PAUSES_MS: Final = [5_000, 30_000, 120_000, 480_000]
"""Pauses before a failed event is posted again; after the last it is given up."""
MAX_RETRIES: Final = 20
"""While this many events wait to be posted again, no new one is posted."""
MAX_DROPPED: Final = 20
MAX_RECENT: Final = 10
WAITS, UNTOLD = "waits", "untold"
"""In place of an error: staff want it posted again, or it may not be sent now."""
SUSPENDED_MS: Final = 3_600_000
"""If a receiver fails for this long, its subscription rests until a refresh."""
MINUTE_MS: Final = 60_000
STATE: Final = (
    *("active", "truncated", "failed_since_ms", "last_ok_ms", "last_error", "sent"),
    *("last_status", "by_event"),
)
"""The columns in `Claim.state`."""


class Retry(NamedTuple):
    """An event that failed `attempts` times; `due_ms` is by the database's clock."""

    number: int
    attempts: int
    due_ms: int


def watermark(position: int, retries: Sequence[Retry]) -> int:
    """Return the number up to which all events are acknowledged or given up.

    `position` is the last number that was posted; `retries` has the events that failed.
    The body of an event that is posted again does not count its own retry, because the
    receiver has that event with the body.
    """
    return min([position + 1, *(retry.number for retry in retries)]) - 1


class Pace:
    """How often a subscription is posted to; a row stores when its bucket is full."""

    def __init__(self, limits: Limits) -> None:
        self.interval_ms = MINUTE_MS // limits.event_rate if limits.rates else 0
        self.room_ms = self.interval_ms * (limits.event_burst - 1)

    def wait_ms(self, paced_ms: int, now_ms: int) -> int:
        """Return how long nothing may be posted, 0 if something may now."""
        return max(0, paced_ms - now_ms - self.room_ms)

    def free_places(self, paced_ms: int, now_ms: int, limit: int) -> int:
        """Return how many events may be posted now, `limit` of them at most."""
        if not self.interval_ms:
            return limit if paced_ms <= now_ms else 0
        left_ms = self.room_ms - max(0, paced_ms - now_ms)
        return max(0, min(limit, 1 + left_ms // self.interval_ms))


class Claim:
    """A subscription that a worker delivers to, as long as its lease lasts."""

    def __init__(self, row: EventSubscription, pace: Pace) -> None:
        self.record = record = record_of(row)
        self._pace = pace
        self.position = record.position
        self.retries = [Retry(*retry) for retry in record.retries]
        self._dropped = [*record.given_up]
        self._recent: list[dict[str, Any]] = read_json(row.recent)
        self._paced_ms, self._hold_ms = record.paced_ms, 0
        self.state = {name: getattr(record, name) for name in STATE}
        """Columns that a refresh changes, too: only those changed here are written."""
        self._stored = {**self.state}
        self._begun = self._renewed = time.monotonic()
        self._begun_ms = row.lease_ms - LEASE_MS

    @property
    def now_ms(self) -> int:
        """The time by the database's clock."""
        return self._begun_ms + int((time.monotonic() - self._begun) * 1_000)

    @property
    def has_lease(self) -> bool:
        """Whether no other worker can have claimed it."""
        return time.monotonic() - self._renewed < LEASE_MS / 1_000

    def due_retries(self) -> list[Retry]:
        return [retry for retry in self.retries if retry.due_ms <= self.now_ms]

    def free_places(self, limit: int) -> int:
        """Return how many new events may be posted now."""
        limit = max(0, min(limit, MAX_RETRIES - len(self.retries)))
        return self._pace.free_places(self._paced_ms, self.now_ms, limit)

    def watermark_at(self, number: int) -> int:
        """Return the watermark for the body of an event."""
        other_retries = [retry for retry in self.retries if retry.number != number]
        return watermark(max(self.position, number), other_retries)

    def hold(self, milliseconds: int) -> None:
        """Do not look at the subscription again before this time has passed."""
        self._hold_ms = self.now_ms + milliseconds

    def note_answer(
        self, number: int, error: str, status: int = 0, *, is_final: bool = False
    ) -> None:
        """Note the answer to an event; without an `error` it is acknowledged."""
        now_ms = self.now_ms
        attempts = {retry.number: retry.attempts for retry in self.retries}
        failures = attempts.get(number, 0)
        self.drop_retry(number)
        if number > self.position:
            self.position = number
            self._paced_ms = max(self._paced_ms, now_ms) + self._pace.interval_ms
        self.note_state(error, status)
        self.state["sent"] += not error
        if error and (is_final or failures >= len(PAUSES_MS)):
            self._dropped = [*self._dropped, number][-MAX_DROPPED:]
        elif error:
            due_ms = now_ms + PAUSES_MS[failures]
            self.retries.append(Retry(number, failures + 1, due_ms))

    def list_delivery(self, number: int, error: str, **details: Any) -> None:
        """List an event by its last delivery; failed ones stay listed the longest."""
        recent = {each["number"]: each for each in self._recent}
        earlier = recent.pop(number, {"event": "", "status": 0, "line": ""})
        if len(recent) >= MAX_RECENT:
            # `min` finds the oldest that did not fail, or else the oldest.
            recent.pop(min(recent, key=lambda key: bool(recent[key]["error"])))
        latest = {"number": number, "at_ms": self.now_ms, "error": error, **details}
        key = f"{number}.{latest['at_ms']}"
        self._recent = [*recent.values(), {**earlier, **latest, "key": key}]

    def note_state(self, error: str, status: int = 0) -> None:
        """Note how the receiver answers."""
        now_ms, since_ms = self.now_ms, self.state["failed_since_ms"]
        if not error:
            answer = {"last_ok_ms": now_ms, "failed_since_ms": None}
        else:
            since_ms = since_ms or now_ms
            is_active = now_ms - since_ms < SUSPENDED_MS
            answer = {"failed_since_ms": since_ms, "active": is_active}
        self.state.update(answer, last_error=error, last_status=status)

    def drop_retry(self, number: int) -> None:
        self.retries = [retry for retry in self.retries if retry.number != number]

    def columns(self) -> dict[str, Any]:
        """Return the columns to write into the row."""
        hold_ms, check_ms = self._hold_ms, self.now_ms + CHECK_MS
        due_ms = min([check_ms, *(retry.due_ms for retry in self.retries)])
        if len(self.retries) >= MAX_RETRIES:
            hold_ms = max(hold_ms, due_ms)
        if not self.state["active"]:
            due_ms = check_ms
        changes = {
            name: value
            for name, value in self.state.items()
            if value != self._stored[name]
        }
        # `paced_ms` keeps new events back until `hold_ms`, and `due_ms` the retries.
        return {
            **changes,
            "position": self.position,
            "retries": jsonrpc.write(self.retries).decode(),
            "given_up": jsonrpc.write(self._dropped).decode(),
            "recent": jsonrpc.write(self._recent).decode(),
            "due_ms": max(due_ms, hold_ms),
            "paced_ms": max(self._paced_ms, hold_ms and hold_ms + self._pace.room_ms),
        }

    def store(self, *, end: bool = False) -> bool:
        """Write the row, and renew the lease or `end` it; blocks.

        Return False if another worker has it, or nobody.
        """
        values, record = self.columns(), self.record
        if end:
            values |= {"owner": "", "lease_ms": NowMilliseconds()}
        begun, state = time.monotonic(), {**self.state}
        is_stored = EventSubscription.objects.note(record.pk, record.owner, **values)
        self._renewed, self._stored = begun, state
        return is_stored

    def delete(self) -> bool:
        """End the subscription; blocks."""
        rows = EventSubscription.objects.filter(owner=self.record.owner)
        return rows.end(self.record.public_id)


def deliver_again(row: EventSubscription, key: str) -> str | None:
    """Let a worker post a failed event again, by its key; return its event, or None.

    An event that was given up gets one more attempt.
    """
    retries = {number: Retry(number, *rest) for number, *rest in read_json(row.retries)}
    recent = {each["key"]: each for each in read_json(row.recent)}
    delivery = recent.get(key, {"error": ""})
    if delivery["error"] in ("", WAITS):
        return None
    delivery["error"], number = WAITS, delivery["number"]
    retry = retries.get(number) or Retry(number, len(PAUSES_MS), 0)
    # With the time 0 it is due.
    retries[number] = retry._replace(due_ms=0)
    columns = {"retries": [*retries.values()], "recent": [*recent.values()]}
    values = {name: jsonrpc.write(each).decode() for name, each in columns.items()}
    if not EventSubscription.objects.send_again(row, **values):
        return None
    vars(row).update(values)
    return str(delivery["event"])


def has_subscriptions() -> bool:
    return EventSubscription.objects.living().exists()


def claim_subscriptions(
    owner: str, limit: int, busy: Mapping[str, int], last: Mapping[str, int], pace: Pace
) -> list[Claim]:
    """Give a worker subscriptions that are due or have news, longest waiting first.

    `last` has the last number of each topic, `owner` is new for each claim.  `busy` has
    the number of running deliveries of each person.
    """
    # No row has this key, so the condition begins with nothing.
    new = Q(pk=None)
    for topic, number in last.items():
        new |= Q(topic=topic, position__lt=number)
    may_go = Q(active=True, paced_ms__lte=NowMilliseconds() + pace.room_ms)
    rows = EventSubscription.objects.filter(
        Q(due_ms__lte=NowMilliseconds()) | (may_go & new)
    )
    return [Claim(each, pace) for each in rows.claim(owner, limit, busy)]
