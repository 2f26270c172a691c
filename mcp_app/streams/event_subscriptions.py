"""Rows of webhook subscriptions: stored, read, ended; all of it blocks.

The address and the secrets are sealed for their row: the database alone tells neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final

from django.db import IntegrityError, router
from django.db.models.functions import Least

from mcp_app.conf import Limits, secret_keys
from mcp_app.models import EventSubscription
from mcp_app.models.event_subscriptions import (
    BEGINNING,
    CHECK_MS,
    OVERLAP_MS,
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nobody may subscribe now: the limit, and how many it allows."""

    limit: str
    most: int
    message: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known before a client may subscribe."""

    refusal: Refusal | None
    is_verified: bool


def _own_rows() -> EventSubscriptionQuerySet:
    """Return the rows where they are written: replicas may be late."""
    using = router.db_for_write(EventSubscription)
    return EventSubscription.objects.using(using)


def _sealer() -> Sealer:
    return Sealer(secret_keys(), "event subscriptions", size=MAX_SEALED_LENGTH)


def _seal(text: str, public_id: str) -> str:
    return _sealer().seal({"text": text}, public_id.encode())


def _open(sealed: str, public_id: str) -> str:
    value = _sealer().open(sealed, public_id.encode()) if sealed else None
    return "" if value is None else str(value["text"])


def record_of(row: EventSubscription) -> Webhook:
    """Return what a row says, opened."""
    columns: dict[str, Any] = {name: getattr(row, name) for name in _COLUMNS}
    for name in _SEALED:
        columns[name] = _open(columns[name], row.public_id)
    for name in _LISTS:
        columns[name] = read_json(columns[name])
    return Webhook(**columns)


def find_standing(new: NewWebhook, limits: Limits) -> Standing:
    """Return whether there are too many, and whether the receiver has agreed lately."""
    agreed = _own_rows().agreements(new.principal, digest(new.url))
    return Standing(_find_refusal(new, limits), agreed.exists())


def _find_refusal(new: NewWebhook, limits: Limits) -> Refusal | None:
    rows = _own_rows()
    if rows.living().filter(public_id=new.public_id).exists():
        return None
    most = limits.subscriptions_per_person
    of_person = rows.living().filter(person=new.person)
    if limits.rates and of_person.count() >= most:
        return Refusal("subscriptions", most, TOO_MANY.format(most=most))
    if rows.count() >= limits.subscriptions_rows:
        return Refusal("subscriptions", limits.subscriptions_rows, TOO_MANY_ROWS)
    return None


def store_webhook(
    new: NewWebhook, end_ms: int | None, limits: Limits
) -> tuple[Webhook, bool] | Refusal:
    """Insert a subscription, or refresh the one with its key.

    It ends at `end_ms`, if not before.  Return it as it is now, and whether it lived
    before; its `failed_since_ms` and `truncated` are those before.
    """
    while True:
        # Another request may insert it, or change its secret, at the same time.
        stored = persistently(
            partial(_store_once, new, end_ms, limits), also=(IntegrityError,)
        )
        if stored is not None:
            return stored


def _store_once(
    new: NewWebhook, end_ms: int | None, limits: Limits
) -> tuple[Webhook, bool] | Refusal | None:
    rows, key = _own_rows(), new.public_id
    before = rows.filter(public_id=key).first()
    values = _columns_of(new, end_ms)
    first = {
        "position": new.position,
        "due_ms": NowMilliseconds() + CHECK_MS,
        "created_ms": NowMilliseconds(),
    }
    if before is None:
        if refusal := _find_refusal(new, limits):
            return refusal
        rows.create(public_id=key, **BEGINNING, **first, **values)
        return record_of(rows.get(public_id=key)), False
    rotation = _rotation(before, new)
    lived = rows.refresh(before, **values, **rotation)
    if not lived and not rows.revive(before, **first, **values):
        return None
    record = record_of(rows.get(public_id=key))
    if lived:
        record = replace(
            record,
            truncated=before.truncated,
            failed_since_ms=before.failed_since_ms,
        )
    return record, lived


def _columns_of(new: NewWebhook, end_ms: int | None) -> dict[str, Any]:
    expires: Any = NowMilliseconds() + new.ttl_ms
    columns = {
        "server": new.server,
        "event_type": new.event_type,
        "topic": new.topic,
        "principal": new.principal,
        "person": new.person,
        "caller": new.caller,
        "arguments": new.arguments,
        "url": _seal(new.url, new.public_id),
        "host": new.host,
        "url_digest": digest(new.url),
        "secret": _seal(new.secret, new.public_id),
        "expires_ms": expires if end_ms is None else Least(expires, end_ms),
    }
    return {**columns, "verified_ms": NowMilliseconds()} if new.verified else columns


def _rotation(before: EventSubscription, new: NewWebhook) -> Mapping[str, Any]:
    """Return the columns by which a secret that is replaced signs along."""
    if _open(before.secret, before.public_id) in ("", new.secret):
        return {}
    until = NowMilliseconds() + OVERLAP_MS
    return {"old_secret": before.secret, "old_until_ms": until}


def end_webhook(public_id: str) -> bool:
    """Delete a subscription; return whether there was one that lived."""
    rows = _own_rows()
    lived = rows.living().filter(public_id=public_id).exists()
    return rows.end(public_id) and lived


def expired_webhooks() -> Sequence[ExpiredRows]:
    return [expired_rows("event subscriptions", _own_rows().expired())]
