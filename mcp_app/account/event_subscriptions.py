"""Event subscriptions in words, their end, and posts that staff send to receivers.

`by` is the person who acts; the admin's log names this person.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from django.db import router
from django.utils.translation import gettext as _

from mcp_app.account.presentation import State
from mcp_app.interface.rules import visible
from mcp_app.models import EventSubscription, Occurrence
from mcp_app.models.fields import parse_json
from mcp_app.models.history import CHANGE, log_actions
from mcp_app.models.transactions import own_transaction
from mcp_app.process.current import process
from mcp_app.process.event_delivery import post_by_its_id, post_signed
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.events import DIALECTS, Occurred, event_to_wire
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import example_of
from mcp_app.protocol.webhooks import message_id
from mcp_app.publishing.rights import require_right
from mcp_app.site_time import time_text, unix_time
from mcp_app.streams.event_deliveries import deliver_again
from mcp_app.streams.event_subscriptions import record_of

SUBSCRIPTION_RIGHT: Final = "end_eventsubscription"
MAX_WAITING: Final = 1_000


def end_subscriptions(by: Any, rows: Collection[EventSubscription]) -> int:
    """End subscriptions; those of other users need a right.

    Return how many had not ended before; their receivers are told.
    """
    if any(row.person != f"u{by.pk}" for row in rows):
        require_right(by, SUBSCRIPTION_RIGHT)
    with own_transaction(router.db_for_write(EventSubscription)):
        ended = [row for row in rows if EventSubscription.objects.stop(row.pk)]
        log_actions(by, ended, CHANGE, _("Ended this event subscription."))
    return len(ended)


def send_test_event(
    by: Any, row: EventSubscription, data: JsonObject, run_on_loop: Callable[..., str]
) -> str:
    """Post an event that did not happen; return what went wrong, or ""."""
    require_right(by, SUBSCRIPTION_RIGHT)
    error = run_on_loop(partial(_post_test_event, row, data))
    message = _("Sent a test event: %(outcome)s.")
    log_actions(by, [row], CHANGE, message % {"outcome": error or _("acknowledged")})
    return error


def send_again(by: Any, row: EventSubscription, key: str) -> str:
    """Let a worker repeat a failed post, with all checks; return an obstacle, or ""."""
    require_right(by, SUBSCRIPTION_RIGHT)
    if not row.active:
        return _("It is paused: nothing is sent until its client subscribes again.")
    with own_transaction(router.db_for_write(EventSubscription)):
        if (event := deliver_again(row, key)) is None:
            return _("Not sent: it was sent meanwhile, or others are sent just now.")
        message = _("Let the event %(event)s be sent again.")
        log_actions(by, [row], CHANGE, message % {"event": event})
    return ""


async def _post_test_event(row: EventSubscription, data: JsonObject) -> str:
    now_ms, identifier = int(time.time() * 1_000), f"evt_{secrets.token_hex(16)}"
    event = Occurred(number=0, event_id=identifier, created_ms=now_ms, data=data)
    wire = {**event_to_wire(event, row.event_type), "_meta": {"mcp_app/test": True}}
    dialect = DIALECTS[parse_json(row.caller)["dialect"]]
    ids = message_id(dialect, row.public_id, identifier), identifier
    state = {name: getattr(row, name) for name in ("by_event", "sent", "last_status")}
    post = partial(post_signed, process().webhooks, record_of(row), now_ms)
    answer = await post_by_its_id(post, dialect, state, ids, jsonrpc.write(wire))
    # `post_by_its_id` changes this if the receiver took only the event id.
    if state["by_event"] != row.by_event:
        await EventSubscription.objects.filter(pk=row.pk).aupdate(by_event=True)
    return answer.error


async def example_data(row: EventSubscription) -> JsonObject:
    """Return an example of the type's event data; {} if the type does not exist now."""
    current = process()
    await current.gate.wait_for_check()
    catalog = current.catalogs.by_slug.get(row.server)
    entry = catalog and catalog.events.get(row.event_type)
    example: JsonObject = example_of(entry.definition.payload_schema) if entry else {}
    return example


def count_waiting(rows: Collection[EventSubscription]) -> None:
    """Set in each row how many events wait; one statement for each topic."""
    for topic in {each.topic for each in rows}:
        numbered = Occurrence.objects.filter(topic=topic, number__gt=0)
        last = numbered.order_by("-number").values_list("number", flat=True)
        numbers = [each or 0 for each in last[: MAX_WAITING + 1]]
        for row in [each for each in rows if each.topic == topic]:
            row.waiting = sum(number > row.position for number in numbers)
            row.waiting += len(parse_json(row.retries))


def state_of(row: EventSubscription) -> State:
    """Return the state of a subscription after `count_waiting`, with the reason."""
    if (since_ms := row.failed_since_ms) is not None:
        error: str = row.last_error
        if row.last_status:
            error = _("answers %(status)d") % {"status": row.last_status}
        values = {"error": error, "since": time_text(unix_time(since_ms / 1_000))}
        why = _("%(error)s since %(since)s") % values
        look, word = ("bad", _("retrying")) if row.active else ("stopped", _("paused"))
        return State(look, word, why)
    if row.waiting:
        is_many = row.waiting > MAX_WAITING
        words = _("more than 1,000 waiting") if is_many else _("%(count)d waiting")
        return State("warn", words % {"count": row.waiting}, "")
    return State("good", _("up to date"), "")


def arguments_words(row: EventSubscription) -> str:
    """Return the words for its arguments, "all" if it has none."""
    parts = (
        f"{name}: {each if type(each) is str else jsonrpc.write(each).decode()}"
        for name, each in parse_json(row.arguments).items()
    )
    return visible("; ".join(parts), None) or _("all")


def lines_of(principal: str) -> list[dict[str, object]]:
    """Return what a page shows of the subscriptions of a connected app."""
    rows = EventSubscription.objects.open().filter(principal=principal)
    rows_in_order = list(rows.order_by("event_type", "pk"))
    count_waiting(rows_in_order)
    return [
        {"row": each, "arguments": arguments_words(each), "state": state_of(each)}
        for each in rows_in_order
    ]
