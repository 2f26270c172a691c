"""Webhook subscriptions in a process: their rows, and whether their receivers agree."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from dataclasses import replace
from typing import Final

from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import Limits
from mcp_app.egress.callbacks import Callback, Callbacks
from mcp_app.pools.database import reader, writer
from mcp_app.process.rates import MinuteLimit
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ParseError
from mcp_app.protocol.webhooks import (
    CHALLENGE_FAILED,
    TIMEOUT,
    NewWebhook,
    control_id,
    message_headers,
    verification_body,
)
from mcp_app.streams import event_subscriptions as rows
from mcp_app.streams.event_subscriptions import Refusal, Stored

CHALLENGE_S: Final = 5.0
MAX_FOR_HOST: Final = 10
MAX_FOR_PERSON: Final = 20
"""Challenges a minute for one host and for one person, in each process."""
TOO_OFTEN: Final = "Receivers are asked too often. Try again in a minute."
ID_BYTES: Final = 16


class WebhookStore:
    """What handlers do with subscriptions (`server.ports.Webhooks`)."""

    def __init__(self, limits: Limits) -> None:
        self.callbacks = Callbacks()
        self._limits = limits
        self._of_hosts = MinuteLimit(MAX_FOR_HOST)
        self._of_persons = MinuteLimit(MAX_FOR_PERSON)

    async def subscribe(
        self, callback: Callback, new: NewWebhook
    ) -> Stored | Refusal | str:
        """Store a subscription; else return our limit, or what the receiver said."""
        agreed = await reader.run(rows.find_standing, new, self._limits)
        if isinstance(agreed, Refusal):
            return agreed
        if not (callback.trusted or agreed):
            if error := self._count_challenge(callback.host, new.person):
                return error
            if reason := await self._ask_receiver(callback, new):
                return reason
            new = replace(new, verified=True)
        end = await token_cache.end_of(new.principal)
        end_ms = None if end is None else int(end.timestamp() * 1_000)
        return await writer.run(rows.store_webhook, new, end_ms, self._limits)

    def _count_challenge(self, host: str, person: str) -> Refusal | None:
        now = time.monotonic()
        if not self._of_persons.count_attempt(person, now):
            return Refusal("challenges", MAX_FOR_PERSON, TOO_OFTEN)
        if not self._of_hosts.count_attempt(host, now):
            return Refusal("challenges", MAX_FOR_HOST, TOO_OFTEN)
        return None

    async def _ask_receiver(self, callback: Callback, new: NewWebhook) -> str:
        """Return why a receiver does not agree, "" if it does."""
        challenge = secrets.token_urlsafe(32)
        body = verification_body(challenge)
        message_id = control_id("verification", secrets.token_hex(ID_BYTES))
        headers = message_headers(
            new.public_id, [new.secret], message_id, int(time.time()), body
        )
        try:
            async with asyncio.timeout(CHALLENGE_S):
                answer = await self.callbacks.post_message(callback, headers, body)
        except TimeoutError:
            return TIMEOUT
        is_echoed = hmac.compare_digest(_echo_of(answer.body), challenge.encode())
        return answer.error or ("" if is_echoed else CHALLENGE_FAILED)

    async def end(self, public_id: str) -> bool:
        return await writer.run(rows.end_webhook, public_id)


def _echo_of(body: bytes) -> bytes:
    """Return the challenge that a receiver has sent back, b"" for none."""
    try:
        value = jsonrpc.read(body)
    except ParseError:
        return b""
    echo = value.get("challenge") if type(value) is dict else None
    return echo.encode() if type(echo) is str else b""
