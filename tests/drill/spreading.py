"""Several fixture servers on one database, behind one address that spreads requests.

with spread(4) as url:
    ...
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import cycle
from typing import Final

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.drill.ports import HOST, free_port
from tests.drill.running import running

METHODS: Final = ["GET", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD"]
HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding"})
START_S: Final = 10
SILENT_S: Final = 120


class _Proxy:
    """Sends each request to the next server, and streams its answer back."""

    def __init__(self, targets: list[str]) -> None:
        self._targets = cycle(targets)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(SILENT_S))

    async def answer(self, request: Request) -> Response:
        target = next(self._targets)
        upstream = self._client.build_request(
            request.method,
            f"{target}{request.url.path}",
            # Blanks around a value mean nothing, and httpx sends none.
            headers=[
                (name, value.strip())
                for name, value in request.headers.raw
                if _passes(name)
            ],
            content=await request.body(),
        )
        stack = AsyncExitStack()
        answer = await self._client.send(upstream, stream=True)
        stack.push_async_callback(answer.aclose)
        headers = {
            name: value for name, value in answer.headers.items() if name not in HOP
        }
        return StreamingResponse(_bytes(answer, stack), answer.status_code, headers)


def _passes(name: bytes) -> bool:
    return name.decode().lower() not in HOP


async def _bytes(answer: httpx.Response, stack: AsyncExitStack) -> AsyncIterator[bytes]:
    """Yield the body; a client that leaves closes the request behind it, too."""
    async with stack:
        async for piece in answer.aiter_raw():
            yield piece


@contextmanager
def spread(count: int, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve the fixture set from so many processes; give the URL of all together."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        shared = {"DATABASE_URL": f"sqlite:///{directory}/db.sqlite3", **(env or {})}
        urls = [
            stack.enter_context(running("uvicorn", shared)).removesuffix("/mcp")
            for _ in range(count)
        ]
        port = free_port()
        app = Starlette(
            routes=[Route("/{path:path}", _Proxy(urls).answer, methods=METHODS)]
        )
        config = uvicorn.Config(
            app, host=HOST, port=port, log_level="error", lifespan="off"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=_serve, args=(server,), daemon=True)
        thread.start()
        stack.callback(_stop, server, thread)
        _wait(server)
        yield f"http://{HOST}:{port}/mcp"


def _serve(server: uvicorn.Server) -> None:
    asyncio.run(server.serve())


def _stop(server: uvicorn.Server, thread: threading.Thread) -> None:
    server.should_exit = server.force_exit = True
    thread.join(START_S)


def _wait(server: uvicorn.Server) -> None:
    ready = threading.Event()
    for _ in range(START_S * 100):
        if server.started:
            return
        ready.wait(0.01)
    raise AssertionError("The proxy did not start.")
