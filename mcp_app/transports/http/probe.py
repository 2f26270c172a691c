"""The probe: a server reports how a request that its own site sent has arrived.

A probe is a POST to the server's own address with a ticket.  It is answered before
Host and Origin are checked, and also while everything is stopped.  It reads settings
and two clocks, and writes nothing.  A ticket is signed with the site's keys
(`secret_keys`) and valid at one server for ten minutes.  Without a valid ticket, the
request is served as any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Final

from django.core import signing

from mcp_app.conf import secret_keys
from mcp_app.invalidation.workers import database_ms
from mcp_app.pools.database import reader
from mcp_app.process.current import process
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.asgi_types import RawHeaders, Receive, Scope, Send
from mcp_app.transports.http.replies import SSE_HEADERS
from mcp_app.transports.http.responses import send_json, send_whole

HEADER: Final = "Mcp-Probe"
NAME: Final = HEADER.lower().encode("ascii")
"""The header's name as ASGI servers write it."""
AGE_S: Final = 600
"""Seconds for which a ticket is valid."""
MAX_TICKET_LENGTH: Final = 512
"""A ticket with more characters is not valid."""
_SALT: Final = "mcp_app.probe"


class Probe(StrEnum):
    """What a server does for a probe, after it has said what arrived."""

    TICKS = "ticks"
    """It sends five parts, 0.25 s apart."""
    SILENCE = "silence"
    """It sends nothing for longer than a heartbeat takes, and then ends."""
    HOLD = "hold"
    """It keeps the request open for three seconds."""
    REFUSAL = "refusal"
    """It answers 401 with a challenge."""
    BODY = "body"
    """It reads the body."""


PROBE_HEADERS: Final[Mapping[str, str]] = {
    "Authorization": "Bearer probe",
    "Accept": "application/json, text/event-stream",
    "Mcp-Session-Id": "probe",
    "Mcp-Protocol-Version": "2025-11-25",
    "Mcp-Method": "ping",
    "Mcp-Name": "probe",
    "Last-Event-ID": "probe",
}
"""Headers of each probe: the server reports whether each arrived as it was sent."""
PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
"""The body of a probe: if the ticket is not valid, the server answers just a ping."""


def issue_ticket(server: str, probe: Probe) -> str:
    """Return a ticket for a server, by its slug."""
    return signing.dumps([server, probe.value], key=secret_keys()[0], salt=_SALT)


def read_ticket(text: str, server: str) -> Probe | None:
    """Return what a ticket asks of this server; None if it is not valid there."""
    if len(text) > MAX_TICKET_LENGTH:
        return None
    keys: list[str | bytes] = [*secret_keys()]
    try:
        slug, probe = signing.loads(
            text, key=keys[0], salt=_SALT, max_age=AGE_S, fallback_keys=keys[1:]
        )
    except signing.BadSignature:
        return None
    return Probe(probe) if slug == server else None


logger = logging.getLogger("mcp_app.transports")

VERSION: Final = 1
"""The version of the report, in its member `mcp_probe`."""
MAX_PROBES: Final = 4
"""Probes that a process answers at once."""
TICKS: Final = 5
TICK_S: Final = 0.25
HOLD_S: Final = 3.0
BEYOND_HEARTBEAT_S: Final = 5.0
"""A silence is this much longer than the heartbeat of a stream."""
BODY_S: Final = 15.0
"""Seconds in which a body must come."""
CLOCK_S: Final = 2.0
"""Seconds in which the database must tell its time."""
LOOK_S: Final = 1.0
"""A process that stops ends its probes within this many seconds."""

UNCHANGED: Final = "as sent"
LOST: Final = "lost"
CHANGED: Final = "changed"
_FORWARDED: Final = (b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host")
_MAX_HEADER_LENGTH: Final = 300
"""Characters of a header that the report repeats."""
_REFUSAL: Final = (b"www-authenticate", b'Bearer realm="mcp"')
_UNCACHED: Final = (b"cache-control", b"no-store, no-transform")
_OWN: Final[RawHeaders] = [_UNCACHED, (NAME, b"1")]
_STREAMED: Final[RawHeaders] = [
    *(each for each in SSE_HEADERS if each[0] != b"cache-control"),
    *_OWN,
]
"""The same headers as a client's stream has: a proxy must treat both alike."""

_open: Counter[Probe] = Counter()


class ProbeAnswer:
    """The answer to a probe; `streams` says whether it may come in parts."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, slug: str, *, streams: bool
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._slug = slug
        self._streams = streams

    async def answer(self, probe: Probe, headers: Headers) -> None:
        """Serve the probe, or say that too many are open (429)."""
        if _open.total() >= MAX_PROBES or (probe is Probe.SILENCE and _open[probe]):
            busy = jsonrpc.write({"mcp_probe": VERSION, "busy": True})
            await send_json(self._send, 429, busy, [(b"retry-after", b"5"), *_OWN])
            return
        _open[probe] += 1
        try:
            with contextlib.suppress(OSError):
                await self._serve_probe(probe, headers)
        finally:
            _open[probe] -= 1

    async def _serve_probe(self, probe: Probe, headers: Headers) -> None:
        current = process()
        try:
            size = await self._body_size(current.limits.body)
        except TimeoutError:
            late = jsonrpc.write({"mcp_probe": VERSION, "late": True})
            await send_json(self._send, 408, late, _OWN)
            return
        if size is None:
            return
        report = await self._build_report(probe, headers, size)
        match probe:
            case Probe.REFUSAL:
                challenge = [_REFUSAL, *_OWN]
                await send_json(self._send, 401, jsonrpc.write(report), challenge)
            case Probe.BODY:
                await send_json(self._send, 200, jsonrpc.write(report), _OWN)
            case _:
                await self._take_time(probe, current, report)

    async def _body_size(self, limit: int) -> int | None:
        """Return the body's size, at most `limit` + 1; None if the client leaves."""
        size = 0
        async with asyncio.timeout(BODY_S):
            while True:
                message = await self._receive()
                if message["type"] != "http.request":
                    return None
                size += len(message.get("body", b""))
                if size > limit or not message.get("more_body", False):
                    return min(size, limit + 1)

    async def _build_report(
        self, probe: Probe, headers: Headers, size: int
    ) -> JsonObject:
        scope = self._scope
        peer = scope.get("client")
        return {
            "mcp_probe": VERSION,
            "probe": probe.value,
            "server": self._slug,
            "host": _header_text(headers, b"host"),
            "scheme": scope.get("scheme", "http"),
            "http_version": scope.get("http_version", ""),
            "peer": str(peer[0]) if peer else "",
            "forwarded": {
                name.decode(): _header_text(headers, name)
                for name in _FORWARDED
                if name in headers.raw
            },
            "headers": {name: _header_state(headers, name) for name in PROBE_HEADERS},
            "body": size,
            "process": f"{socket.gethostname()} {os.getpid()}",
            "interface": "ASGI" if self._streams else "WSGI",
            "clock_ms": time.time_ns() // 1_000_000,
            "database_ms": await _database_ms(),
        }

    async def _take_time(
        self, probe: Probe, current: Process, report: JsonObject
    ) -> None:
        """Send the report, and then what the probe asks for."""
        parts = self._later_parts(probe, current)
        first = _encode_event(report)
        if not self._streams:
            if probe is not Probe.TICKS:
                # Only wait as long as they take: the answer is sent whole.
                async for _ in parts:
                    pass
            headers = [(b"content-type", b"text/event-stream"), *_OWN]
            await send_whole(
                self._send, 200, first + _encode_event({"end": True}), headers
            )
            return
        start = {"type": "http.response.start", "status": 200, "headers": _STREAMED}
        await self._send(start)
        try:
            await self._send_part(first)
            async for part in parts:
                await self._send_part(part)
            last = {"type": "http.response.body", "body": _encode_event({"end": True})}
            await self._send(last)
        except Exception as error:
            # Each server has its own errors for a client that is gone.
            logger.debug("The stream of a probe was closed: %r", error)

    async def _send_part(self, part: bytes) -> None:
        await self._send(
            {"type": "http.response.body", "body": part, "more_body": True}
        )

    async def _later_parts(
        self, probe: Probe, current: Process
    ) -> AsyncIterator[bytes]:
        """Yield what comes after the report; wait as the probe asks."""
        if probe is Probe.TICKS:
            for number in range(1, TICKS + 1):
                if await self._wait_for_end(TICK_S, current):
                    return
                yield _encode_event({"tick": number})
            return
        silence = current.limits.heartbeat + BEYOND_HEARTBEAT_S
        await self._wait_for_end(silence if probe is Probe.SILENCE else HOLD_S, current)

    async def _wait_for_end(self, seconds: float, current: Process) -> bool:
        """Wait; return True early if the client leaves or the process stops."""
        receiving = asyncio.ensure_future(self._receive())
        try:
            end = current.loop.time() + seconds
            while not current.stopping:
                rest_s = end - current.loop.time()
                if rest_s <= 0:
                    return False
                done, _ = await asyncio.wait({receiving}, timeout=min(rest_s, LOOK_S))
                if done:
                    return bool(receiving.result()["type"] != "http.request")
            return True
        finally:
            receiving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await receiving


async def _database_ms() -> int | None:
    """Return the time of the database's clock; None if it does not answer."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOCK_S):
            return await reader.run(database_ms)
    return None


def _header_text(headers: Headers, name: bytes) -> str:
    return headers.get(name, "")[:_MAX_HEADER_LENGTH]


def _header_state(headers: Headers, name: str) -> str:
    value = headers.get(name)
    if value is None:
        return LOST
    return UNCHANGED if value == PROBE_HEADERS[name] else CHANGED


def _encode_event(value: JsonObject) -> bytes:
    return b"data: " + jsonrpc.write(value) + b"\n\n"
