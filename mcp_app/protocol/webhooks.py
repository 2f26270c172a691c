"""Webhooks: secrets, signatures, messages, and their rows (SEP-3415).

Signatures are those of Standard Webhooks 1.0.0, with the symmetric scheme `v1`.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.events import error_to_wire
from mcp_app.protocol.tasks import iso_time

if TYPE_CHECKING:
    from mcp_app.protocol.events import Dialect, EventError
    from mcp_app.protocol.json_types import JsonObject

MAX_BODY: Final = 256 * 1024
MAX_URL_LENGTH: Final = 2_048
MIN_SECRET, MAX_SECRET = 24, 64
"""Bytes of a secret."""

MINUTE_MS: Final = 60_000
USUAL_TTL_MS: Final = 24 * 60 * MINUTE_MS
MIN_TTL_MS: Final = 10 * MINUTE_MS
MAX_TTL_MS: Final = 7 * USUAL_TTL_MS

REFUSED: Final = "connection_refused"
TIMEOUT: Final = "timeout"
TLS_ERROR: Final = "tls_error"
HTTP_4XX: Final = "http_4xx"
HTTP_5XX: Final = "http_5xx"
CHALLENGE_FAILED: Final = "challenge_failed"
"""The only words for a failure that a subscriber reads ("deliveryStatus")."""

_PREFIX: Final = "whsec_"


def check_secret(secret: object) -> str:
    """Return a secret; raise `InvalidParams`, whose message does not repeat it."""
    try:
        if type(secret) is str and MIN_SECRET <= len(_key_of(secret)) <= MAX_SECRET:
            return secret
    except ValueError:
        pass
    raise InvalidParams(
        f"params.delivery.secret must be {_PREFIX} and base64 of {MIN_SECRET} to"
        f" {MAX_SECRET} bytes."
    )


def _key_of(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        raise ValueError("This is no secret of Standard Webhooks.")
    return b64decode(secret.removeprefix(_PREFIX), validate=True)


def sign_message(
    secrets: Sequence[str], message_id: str, seconds: int, body: bytes
) -> str:
    """Return the value of `webhook-signature`: one signature for each secret."""
    content = f"{message_id}.{seconds}.".encode() + body
    macs = (hmac.digest(_key_of(secret), content, "sha256") for secret in secrets)
    return " ".join(f"v1,{b64encode(each).decode()}" for each in macs)


def message_headers(
    subscription: str,
    secrets: Sequence[str],
    message_id: str,
    seconds: int,
    body: bytes,
) -> list[tuple[str, str]]:
    """Return the headers of an attempt; `seconds` is its Unix time."""
    return [
        ("Content-Type", "application/json"),
        ("webhook-id", message_id),
        ("webhook-timestamp", str(seconds)),
        ("webhook-signature", sign_message(secrets, message_id, seconds, body)),
        ("X-MCP-Subscription-Id", subscription),
    ]


def message_id(dialect: Dialect, subscription: str, event_id: str) -> str:
    """Return the `webhook-id` of an event: the same for each attempt."""
    if not dialect.message_ids:
        return event_id
    return f"msg_{_short_digest([subscription, event_id])}"


def control_id(kind: str, random: str) -> str:
    """Return the `webhook-id` of a message about the subscription, not an event."""
    return f"msg_{kind}_{random}"


def verification_body(challenge: str) -> bytes:
    return jsonrpc.write({"type": "verification", "challenge": challenge})


def gap_body(cursor: str) -> bytes:
    return jsonrpc.write({"type": "gap", "cursor": cursor})


def terminated_body(error: EventError) -> bytes:
    return jsonrpc.write({"type": "terminated", "error": error_to_wire(error)})


def category_of(status: int) -> str:
    """Return the word that tells a subscriber of an HTTP status; "" for success."""
    if status // 100 == 2:  # noqa: PLR2004 - RFC 9110, section 15.3
        return ""
    return HTTP_5XX if status // 100 == 5 else HTTP_4XX  # noqa: PLR2004


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subscription:
    """`caller` and `arguments` are JSON texts; the repr has nothing secret."""

    public_id: str
    server: str
    event_type: str
    topic: str
    principal: str
    person: str
    caller: str = field(repr=False)
    arguments: str = field(repr=False)
    url: str = field(repr=False)
    host: str
    secret: str = field(repr=False)
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook(_Subscription):
    """A new subscription; `verified` if its receiver has agreed just now."""

    ttl_ms: int
    verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(_Subscription):
    """A subscription as read from its row, with its sealed values decrypted.

    `url` and `secret` are "" if the keys of the site were changed.
    """

    pk: int
    verified_ms: int | None
    old_secret: str = field(repr=False)
    old_until_ms: int
    retries: Sequence[tuple[int, int, int]]
    """Of each event to post again: its number, the attempts, and when it is due."""
    given_up: Sequence[int]
    truncated: bool
    active: bool
    ending: bool
    failed_since_ms: int | None
    last_ok_ms: int | None
    last_error: str
    last_status: int
    by_event: bool
    expires_ms: int
    owner: str
    due_ms: int
    paced_ms: int
    sent: int
    created_ms: int

    def current_secrets(self, now_ms: int) -> list[str]:
        """Return the secrets that sign now: the new one, for a while also the old."""
        overlap = self.old_secret and now_ms < self.old_until_ms
        return [self.secret, self.old_secret] if overlap else [self.secret]

    @property
    def watermark(self) -> int:
        """The number up to which all events are acknowledged or given up."""
        return min((retry[0] - 1 for retry in self.retries), default=self.position)


def subscription_id(
    principal: str, server: str, url: str, name: str, arguments: JsonObject
) -> str:
    """Return the id of a subscription, which is a digest of its key."""
    return f"sub_{_short_digest([principal, server, url, name, arguments])}"


def _short_digest(value: Any) -> str:
    return sha256(jsonrpc.canonical(value)).hexdigest()[:32]


def lifetime_ms(params: JsonObject) -> int:
    """Return how long a subscription may last: as its client asks, within limits.

    No subscription lasts forever: `null` gets the longest time.
    """
    wanted = params.get("ttlMs", USUAL_TTL_MS)
    if wanted is None:
        return MAX_TTL_MS
    if type(wanted) not in (int, float) or wanted < 0:
        raise InvalidParams("params.ttlMs must be a number of at least 0, or null.")
    return int(max(MIN_TTL_MS, min(wanted, MAX_TTL_MS)))


def delivery_status(record: Webhook, wait_ms: int) -> JsonObject:
    """Return `deliveryStatus` after a refresh; nothing is posted for `wait_ms`."""
    status: JsonObject = {
        "active": True,
        "lastDeliveryAt": record.last_ok_ms and iso_time(record.last_ok_ms),
        "lastError": record.last_error or None,
    }
    if record.failed_since_ms is not None:
        status["failedSince"] = iso_time(record.failed_since_ms)
    if wait_ms:
        status |= {"throttled": True, "retryAfterMs": wait_ms}
    return status
