"""events/subscribe, events/unsubscribe (SEP-3415)."""

from __future__ import annotations

from typing import Final, NoReturn

from mcp_app.egress.callbacks import Callback, UnusableCallback, read_callback
from mcp_app.interface.call_record import Outcome
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.events import WEBHOOK, EventError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import iso_time
from mcp_app.protocol.webhooks import (
    NewWebhook,
    check_secret,
    delivery_status,
    lifetime_ms,
    subscription_id,
)
from mcp_app.server import coercion
from mcp_app.server.events import (
    cursor_at,
    dialect_for,
    find_subscription,
    first_position,
)
from mcp_app.server.handlers.events import require_events
from mcp_app.server.outcome import with_outcome
from mcp_app.server.ports import Webhooks
from mcp_app.server.request import Request
from mcp_app.server.round_trip import now_ms
from mcp_app.server.run import Run
from mcp_app.server.stored_callers import caller_of
from mcp_app.streams.event_deliveries import Pace
from mcp_app.streams.event_subscriptions import Refusal

MAX_STORED: Final = 16 * 1024
"""Characters of arguments and caller: rows stay for days."""


async def subscribe_events(run: Run) -> JsonObject:
    """Subscribe a receiver to events of a type, or refresh its subscription."""
    request = run.request
    webhooks, dialect = _find_webhooks(request), dialect_for(request)
    subscription = await find_subscription(run, request.params)
    entry = subscription.entry
    delivery = coercion.object_member(request.params, "delivery", required=True)
    mode = coercion.string_member(delivery, "mode", "params.delivery")
    if mode != WEBHOOK:
        _refuse_mode(request, mode[:80])
    url = coercion.string_member(delivery, "url", "params.delivery")
    callback = _read_callback(url)
    secret = check_secret(delivery.get("secret"))
    ttl_ms = lifetime_ms(request.params)
    position, truncated = await first_position(request, entry, request.params)
    caller = {
        **caller_of(request),
        "dialect": dialect.name,
        "revision": request.revision.version,
    }
    new = NewWebhook(
        public_id=_id_of(request, subscription.arguments),
        server=request.catalog.server.slug,
        event_type=entry.identity,
        topic=entry.definition.topic,
        principal=request.principal.key,
        person=request.principal.person,
        caller=jsonrpc.write(caller).decode(),
        arguments=jsonrpc.write(subscription.arguments).decode(),
        url=url,
        host=callback.host,
        secret=secret,
        position=position,
        ttl_ms=ttl_ms,
    )
    if len(new.caller) + len(new.arguments) > MAX_STORED:
        raise InvalidParams(
            f"params.arguments, with what your client says of itself, must have at most"
            f" {MAX_STORED:,} characters."
        )
    stored = await webhooks.subscribe(callback, new)
    if isinstance(stored, Refusal):
        _refuse_subscription(request, stored)
    if isinstance(stored, str):
        message = f"The receiver did not agree to be called: {stored}."
        error = EventError(dialect, "callback", message, reason=stored)
        raise with_outcome(error, Outcome.OTHER_SITE)
    # A refreshed subscription had a former state, a new one had none.
    record, former = stored
    wait_ms = Pace(request.adapters.limits).wait_ms(record.paced_ms, now_ms())
    result: JsonObject = {
        "id": record.public_id,
        "refreshBefore": iso_time(record.expires_ms),
        "cursor": cursor_at(request, entry, record.watermark),
        "truncated": truncated if former is None else former.truncated,
        "deliveryStatus": delivery_status(former or record, wait_ms),
    }
    return request.complete_result(result)


async def unsubscribe_events(run: Run) -> JsonObject:
    """End a subscription, whether its type is still there or not."""
    request = run.request
    webhooks, dialect = _find_webhooks(request), dialect_for(request)
    name = coercion.string_member(request.params, "name")
    arguments = coercion.object_member(request.params, "arguments")
    entry = request.catalog.events.get(name)
    if entry is not None:
        run.entry = entry if request.sees(entry.definition) else None
        coerce = request.adapters.coerce
        arguments, _ = coercion.accepted_arguments(entry, arguments, coerce=coerce)
    ended = await webhooks.end(_id_of(request, arguments))
    if not ended and dialect.unsubscribe_must_find:
        message = "There is no such subscription."
        error = EventError(dialect, "not_found", message, kind="subscription")
        raise with_outcome(error, Outcome.UNKNOWN)
    return request.complete_result({})


def _find_webhooks(request: Request) -> Webhooks:
    """Return the store of subscriptions; raise if the caller can have none."""
    require_events(request)
    webhooks = request.adapters.webhooks
    if webhooks is None:
        _refuse_mode(request, WEBHOOK)
    if request.principal.anonymous:
        message = "Nobody is told where to post events without signing in."
        dialect = dialect_for(request)
        error = EventError(dialect, "forbidden", message, reason="anonymous")
        raise with_outcome(error, Outcome.FORBIDDEN)
    return webhooks


def _id_of(request: Request, arguments: JsonObject) -> str:
    principal, slug = request.principal.key, request.catalog.server.slug
    delivery = coercion.object_member(request.params, "delivery", required=True)
    url = coercion.string_member(delivery, "url", "params.delivery")
    return subscription_id(principal, slug, url, request.params["name"], arguments)


def _read_callback(url: str) -> Callback:
    try:
        return read_callback(url)
    except UnusableCallback as error:
        raise InvalidParams(f"params.delivery.url {error}") from None


def _refuse_subscription(request: Request, refusal: Refusal) -> NoReturn:
    error = EventError(
        dialect_for(request),
        "exhausted",
        refusal.message,
        limit=refusal.limit,
        max=refusal.max_count,
    )
    raise with_outcome(error, Outcome.LIMITED)


def _refuse_mode(request: Request, mode: str) -> NoReturn:
    message = f"This server does not deliver events by {mode!r} to subscriptions."
    raise EventError(
        dialect_for(request),
        "unsupported",
        message,
        feature="delivery.mode",
        value=mode,
    )
