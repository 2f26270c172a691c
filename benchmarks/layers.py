"""Where a call's time goes: `python -m benchmarks.layers`.

Each layer of one `drill_add` of the stateless era is run alone, many times, inside
one process without sockets: microseconds, the best of several rounds.  Under a real
server the same code takes about twice as long, because the kernel and the HTTP
parser take its place in the processor's caches between two requests.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import timeit
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

ROUNDS = 7
CALLS = 10_000

HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"drill_add"),
]
META = (
    b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{},'
    b'"io.modelcontextprotocol/clientInfo":{"name":"layers","version":"1"}}'
)
BODY = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drill_add",'
    b'"arguments":{"a":2,"b":3},"_meta":' + META + b"}}"
)


def main() -> None:
    """Prepare a database of its own, measure, print."""
    # The process's own threads may still write when the folder goes.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder, 'layers.sqlite3')}"
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
        # Nobody would take the calls away while no loop runs.
        os.environ["MCP_AUDIT"] = "off"
        import django  # noqa: PLC0415 - its settings are chosen just now

        django.setup()
        from tests.drill.preparing import prepare  # noqa: PLC0415

        prepare()
        asyncio.run(_measure())


async def _measure() -> None:
    from mcp_app.asgi import application  # noqa: PLC0415
    from mcp_app.process.current import process  # noqa: PLC0415
    from mcp_app.protocol import jsonrpc, negotiation  # noqa: PLC0415
    from mcp_app.protocol.headers import Headers  # noqa: PLC0415
    from mcp_app.server import dispatch  # noqa: PLC0415
    from mcp_app.transports.http.handler import EndpointHandler  # noqa: PLC0415

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def send(_: object) -> None:
        return

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": HEADERS}
    site = application(_nobody)
    await site(scope, receive, send)

    value, headers = jsonrpc.read(BODY), Headers(HEADERS)
    found = negotiation.recognise(value, headers.raw)
    if found is None:
        raise RuntimeError("The request of this benchmark is not recognised.")
    handler = EndpointHandler(scope, receive, send, "default")
    handler._headers, handler._process = headers, process()
    handler._catalog = handler._process.catalogs.serving("default")

    _show("headers", lambda: Headers(HEADERS))
    _show("strict JSON", lambda: jsonrpc.read(BODY))
    _show("envelope and era", lambda: negotiation.recognise(value, headers.raw))
    _show("exchange", lambda: handler._exchange(*found))
    exchange = handler._exchange(*found)
    _show("dispatch, the call, its answer", _driven(lambda: dispatch.answer(exchange)))
    best = min([await _timed(site, scope, receive, send) for _ in range(ROUNDS)])
    _print(best, "all of it")
    process().close()


async def _timed(site: Any, *arguments: Any) -> float:
    """Return seconds for all calls; now and then one waits for a look at the rows."""
    began = timeit.default_timer()
    for _ in range(CALLS):
        await site(*arguments)
    return timeit.default_timer() - began


async def _nobody(*_: object) -> None:
    raise RuntimeError("No path of this benchmark is the site's.")


def _driven(make: Callable[[], Any]) -> Callable[[], None]:
    """Return a function that runs a coroutine which never waits."""

    def drive() -> None:
        coroutine: Coroutine[Any, Any, object] = make()
        try:
            coroutine.send(None)
        except StopIteration:
            return
        raise RuntimeError("It waited.")

    return drive


def _show(name: str, function: Callable[[], object]) -> None:
    _print(min(timeit.repeat(function, number=CALLS, repeat=ROUNDS)), name)


def _print(seconds: float, name: str) -> None:
    print(f"{seconds / CALLS * 1e6:6.2f} µs  {name}")


if __name__ == "__main__":
    main()
