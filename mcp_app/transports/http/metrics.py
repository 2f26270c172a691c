"""`/mcp/metrics`: who may read the metrics, and the answer; others get 404."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Sequence
from typing import Final

from django.db import Error as DatabaseError

from mcp_app.auth.site_requests import client_address, is_in_networks
from mcp_app.conf import mcp_settings
from mcp_app.egress.sites import Network
from mcp_app.pools.database import reader
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.process.current import process
from mcp_app.protocol.errors import RequestRefused, Unavailable
from mcp_app.protocol.headers import Headers
from mcp_app.telemetry.options import metrics_options
from mcp_app.transports.asgi_types import Scope, Send
from mcp_app.transports.http import responses
from mcp_app.transports.http.request_handler import peer_address, policy

TYPES: Final = (
    b"text/plain; version=0.0.4; charset=utf-8",
    b"application/openmetrics-text; version=1.0.0; charset=utf-8",
)
"""The content types: plain text, and OpenMetrics, by the index `is_open`."""
AWAY: Final = b"The database is away, so there are no metrics now.\n"
SHARED_S: Final = 5.0
"""Seconds for which all readers get the same result."""
PATIENCE_S: Final = 8.0
"""Seconds that a result may take; Prometheus itself usually waits for 10."""

_results: dict[bool, tuple[float, asyncio.Task[bytes]]] = {}
"""The last result in each format, and when it was begun."""


def may_read(scope: Scope) -> bool:
    """Whether a request may read the metrics: every condition must hold."""
    options = metrics_options()
    if options is None or scope["method"] not in ("GET", "HEAD"):
        return False
    try:
        headers = Headers(scope["headers"])
        if not options.token:
            # A web page that somebody in the network opens must not read them.
            policy.check_headers(headers)
    except RequestRefused:
        return False
    scheme, _, token = headers.raw.get(b"authorization", b"").partition(b" ")
    is_same = hmac.compare_digest(token.strip(), options.token.encode())
    if options.token and not (is_same and scheme.lower() == b"bearer"):
        return False
    return not options.networks or _is_near(scope, headers, options.networks)


def _is_near(scope: Scope, headers: Headers, networks: Sequence[Network]) -> bool:
    forwarded, trusted = headers.get(b"x-forwarded-for"), mcp_settings.trusted_proxies
    if forwarded is not None and not trusted:
        # The peer is a proxy, so the caller's own address is not known.
        return False
    address = client_address(peer_address(scope), forwarded, trusted)
    return address is not None and is_in_networks(address, networks)


async def answer_scrape(scope: Scope, send: Send) -> None:
    """Answer 200 with the metrics, 503 if the database is away."""
    accept = Headers(scope["headers"]).get(b"accept", "")
    is_open = "application/openmetrics-text" in accept
    try:
        status, body = responses.OK, await _share_text(is_open=is_open)
    except (DatabaseError, Unavailable, TimeoutError):
        status, body, is_open = responses.UNAVAILABLE, AWAY, False
    entity = [(b"content-type", TYPES[is_open]), (b"content-length", b"%d" % len(body))]
    headers = [*entity, *responses.with_retry(status, responses.UNCACHED)]
    content = b"" if scope["method"] == "HEAD" else body
    await responses.send_whole(send, status, content, headers)


async def _share_text(*, is_open: bool) -> bytes:
    """Return one result to all who ask within `SHARED_S`."""
    loop, now = asyncio.get_running_loop(), time.monotonic()
    began, task = _results.get(is_open, (now, None))
    is_old = task is not None and task.done() and now - began >= SHARED_S
    if task is None or task.get_loop() is not loop or is_old:
        task = start_background_task(_write_text(is_open=is_open))
        _results[is_open] = now, task
    # A caller that leaves must not cancel the result for the others.
    return await asyncio.shield(task)


async def _write_text(*, is_open: bool) -> bytes:
    # The module needs the extra `metrics`; without it, nobody may read metrics.
    from mcp_app.telemetry.collector import read_text  # noqa: PLC0415

    current = process()
    if not current.heartbeat.has_started:
        # Before its first call this process has no report; the next scrape has one.
        current.gate.refresh()
    async with asyncio.timeout(PATIENCE_S):
        return await reader.run(read_text, is_open=is_open)
