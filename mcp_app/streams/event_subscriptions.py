"""Rows of webhook subscriptions: stored, read, ended; all of it blocks.

The address and the secrets are sealed for their row: the database alone tells neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final, TypeAlias

from django.db import IntegrityError, router
from django.db.models import Max
from django.db.models.functions import Least

from mcp_app.conf import Limits, secret_keys
from mcp_app.models import EventSubscription
from mcp_app.models.event_subscriptions import (
    BEGINNING,
    CHECK_MS,
    OVERLAP_MS,
    REFRESH,
    EventSubscriptionQuerySet,
)
from mcp_app.models.expiry import ExpiredRows, expired_rows
from mcp_app.models.fields import digest
from mcp_app.models.transactions import NowMilliseconds, persistently
from mcp_app.protocol.cursors import Sealer
from mcp_app.protocol.tasks import read_json
from mcp_app.protocol.webhooks import NewWebhook, Webhook

MAX_SEALED_LENGTH: Final = 8 * 1024
TOO_MANY: Final = "You may have {most} subscriptions. End one first."
TOO_MANY_ROWS: Final = "This site has too many subscriptions. Try again later."
_SEALED: Final = ("url", "secret", "old_secret")
_LISTS: Final = ("retries", "given_up")
_COLUMNS: Final = tuple(each.name for each in fields(Webhook))
_SAME: Final = (
    *("public_id", "server", "event_type", "topic", "principal", "person", "caller"),
    *("arguments", "host"),
)
"""Columns that take the value of the same name from `NewWebhook`."""


Stored: TypeAlias = tuple[Webhook, Webhook | None]
"""A subscription, and its former state if it lived before."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nobody may subscribe now: the limit, and how many it allows."""

    limit: str
    max_count: int
    message: str


def _current_rows() -> EventSubscriptionQuerySet:
    """Return the rows where they are written: replicas may be late."""
    return EventSubscription.objects.using(router.db_for_write(EventSubscription))


def _sealer() -> Sealer:
    return Sealer(secret_keys(), "event subscriptions", size=MAX_SEALED_LENGTH)


def _seal_text(text: str, public_id: str) -> str:
    return _sealer().seal({"text": text}, public_id.encode())


def record_of(row: EventSubscription) -> Webhook:
    """Return the subscription of a row, with its sealed columns opened."""
    columns: dict[str, Any] = {name: getattr(row, name) for name in _COLUMNS}
    for name in _SEALED:
        text = columns[name]
        value = _sealer().open(text, row.public_id.encode()) if text else None
        columns[name] = "" if value is None else str(value["text"])
    for name in _LISTS:
        columns[name] = read_json(columns[name])
    return Webhook(**columns)


def find_standing(new: NewWebhook, limits: Limits) -> Refusal | bool:
    """Return the refusal if there are too many, else whether the receiver agreed."""
    rows = _current_rows()
    agreed = rows.agreements(new.principal, digest(new.url)).exists()
    lives = rows.living().filter(public_id=new.public_id).exists()
    return (None if lives else _find_refusal(new, limits)) or agreed


def _find_refusal(new: NewWebhook, limits: Limits) -> Refusal | None:
    rows, cap = _current_rows(), limits.subscriptions_per_person
    if limits.rates and rows.living().filter(person=new.person).count() >= cap:
        return Refusal("subscriptions", cap, TOO_MANY.format(most=cap))
    cap = limits.subscriptions_rows
    return Refusal("subscriptions", cap, TOO_MANY_ROWS) if rows.count() >= cap else None


def store_webhook(
    new: NewWebhook, end_ms: int | None, limits: Limits
) -> Stored | Refusal:
    """Insert a subscription, or refresh the one with its key.

    It ends at `end_ms` at the latest.
    """
    store = partial(_store_once, new, end_ms, limits)
    # Another request may insert or renew it at the same time.
    while (stored := persistently(store, also=(IntegrityError,))) is None:
        continue
    return stored


def _store_once(
    new: NewWebhook, end_ms: int | None, limits: Limits
) -> Stored | Refusal | None:
    """Store a subscription; return None if another request was quicker."""
    rows, now = _current_rows(), NowMilliseconds()
    matches = rows.filter(public_id=new.public_id)
    row, live = matches.first(), matches.living().first()
    if live is None and (refusal := _find_refusal(new, limits)):
        return refusal
    expires: Any = now + new.ttl_ms
    values = {name: getattr(new, name) for name in _SAME}
    values |= {
        "url": _seal_text(new.url, new.public_id),
        "url_digest": digest(new.url),
        "secret": _seal_text(new.secret, new.public_id),
        "expires_ms": expires if end_ms is None else Least(expires, end_ms),
    }
    agreements = rows.agreements(new.principal, digest(new.url))
    agreed_ms = agreements.aggregate(last=Max("verified_ms"))["last"]
    if new.verified or agreed_ms is not None:
        values["verified_ms"] = now if new.verified else agreed_ms
    before = None
    if live is None:
        values |= {**BEGINNING, "position": new.position}
        values |= {"created_ms": now, "due_ms": now + CHECK_MS}
    else:
        before = record_of(live)
        values |= {**REFRESH, "due_ms": now}
        # The old secret stays valid for a while; "" stands for one we cannot open.
        if before.secret not in ("", new.secret):
            values |= {"old_secret": live.secret, "old_until_ms": now + OVERLAP_MS}
    if row is None:
        rows.create(**values)
    elif not rows.renew(live or row, **values):
        return None
    return record_of(matches.get()), before


def end_webhook(public_id: str) -> bool:
    """Delete a subscription; return whether there was one that lived."""
    return _current_rows().living().end(public_id)


def expired_webhooks() -> Sequence[ExpiredRows]:
    return [expired_rows("event subscriptions", _current_rows().expired())]
