"""What a call of another site costs beside bare httpcore2, against the same server."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import ip_network
from statistics import median
from typing import Final

from benchmarks.measuring import AtMost, Effort, Result

ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n"
    b'{"answer": 5}'
)
CALLS: Final = 500
RATIO: Final = 1.3

Call = Callable[[], Awaitable[None]]


def of_other_sites(effort: Effort) -> Iterator[Result]:
    """Compare `egress.client` with httpcore2, one call after another."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django  # noqa: PLC0415 - the figures before need no Django

    django.setup()
    # A line for each call is the operator's choice.
    logging.getLogger("mcp_app").setLevel(logging.WARNING)
    ours, bare = asyncio.run(_measured(effort))
    yield Result(
        figure="CPU: call of another site / bare httpcore2",
        measured=ours / bare,
        bound=AtMost(RATIO),
        raw=f"{ours:.0f} us : {bare:.0f} us",
    )


async def _measured(effort: Effort) -> tuple[float, float]:
    """Return the processor time of a call in microseconds, of both clients."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found: dict[str, list[float]] = {"ours": [], "bare": []}
    async with server:
        calls = {"ours": _ours(port), "bare": _bare(port)}
        for call in calls.values():
            await _cost(call, effort.warm_up)
        for _ in range(effort.rounds):
            for name, call in calls.items():
                found[name].append(await _cost(call, effort.seconds))
    return median(found["ours"]), median(found["bare"])


async def _cost(call: Call, seconds: float) -> float:
    """Return the time of this process for a call; the server's part is the same."""
    began, end, calls = time.process_time(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(CALLS):
            await call()
        calls += CALLS
    return (time.process_time() - began) / calls * 1e6


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        writer.close()


def _ours(port: int) -> Call:
    from mcp_app.egress.client import Connections  # noqa: PLC0415
    from mcp_app.egress.requests import SiteRequest  # noqa: PLC0415
    from mcp_app.egress.sites import Site  # noqa: PLC0415
    from mcp_app.interface.principal import Principal  # noqa: PLC0415
    from mcp_app.interface.rights import AccessRequest  # noqa: PLC0415

    site = Site(
        key="peer",
        title="Peer",
        scheme="http",
        host="127.0.0.1",
        port=port,
        prefix="",
        secret_headers={"Authorization": "Bearer of-a-benchmark"},
        networks=(ip_network("127.0.0.0/8"),),
    )
    asked = AccessRequest(principal=Principal.ANONYMOUS, server="")
    request = SiteRequest(method="GET", path="/things/5", idempotent=True)
    connections = Connections()

    async def call() -> None:
        answer = await connections.call(site, request, asked)
        assert answer.body.endswith(b"5}")

    return call


def _bare(port: int) -> Call:
    import httpcore2  # noqa: PLC0415

    pool = httpcore2.AsyncConnectionPool(max_connections=10)
    url = f"http://127.0.0.1:{port}/things/5"
    headers = [("Authorization", "Bearer of-a-benchmark"), ("User-Agent", "bare")]

    async def call() -> None:
        answer = await pool.request("GET", url, headers=headers)
        assert answer.content.endswith(b"5}")

    return call
