"""Several fixture servers on one database, behind one address that spreads requests.

with spread(4) as url:
    ...

Each request goes to one that is chosen at random, and to another one where that refuses
it: a client knows nothing of processes.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.drill.ports import HOST, free_port
from tests.drill.running import DrillServer, ServerFailed, started

METHODS: Final = ["GET", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD"]
HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding"})
START_S: Final = 60
REFUSED: Final = 503
IDLE_S: Final = 1.0
"""Servers close what was idle for five seconds: just then nothing may be sent on it."""


class _Proxy:
    def __init__(self, targets: list[str], seed: int) -> None:
        self._targets = targets
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(120), limits=httpx.Limits(keepalive_expiry=IDLE_S)
        )

    async def answer(self, request: Request) -> Response:
        # Blanks around a value mean nothing, and httpx sends none.
        headers = [
            (name, value.strip())
            for name, value in request.headers.raw
            if name.decode().lower() not in HOP
        ]
        query = f"?{request.url.query}" if request.url.query else ""
        body, asked = await request.body(), f"{request.url.path}{query}"
        targets = self._random.sample(self._targets, len(self._targets))
        for target in targets:
            upstream = self._client.build_request(
                request.method, f"{target}{asked}", headers=headers, content=body
            )
            try:
                answer = await self._client.send(upstream, stream=True)
            except httpx.ConnectError:
                continue
            if answer.status_code != REFUSED or target == targets[-1]:
                return _passed_on(answer)
            await answer.aclose()
        return Response(status_code=REFUSED)

    async def close(self) -> None:
        await self._client.aclose()


def _passed_on(answer: httpx.Response) -> Response:
    stack = AsyncExitStack()
    stack.push_async_callback(answer.aclose)
    headers = {name: value for name, value in answer.headers.items() if name not in HOP}
    return StreamingResponse(_bytes(answer, stack), answer.status_code, headers)


async def _bytes(answer: httpx.Response, stack: AsyncExitStack) -> AsyncIterator[bytes]:
    """Yield the body; a client that leaves closes the request behind it, too."""
    async with stack:
        async for piece in answer.aiter_raw():
            yield piece


@contextmanager
def spread(
    count: int, env: Mapping[str, str] | None = None, *, seed: int = 1
) -> Iterator[str]:
    """Serve the fixture set from so many processes; give the URL of all together.

    Each must end well, and with it what it has sent must have been right.
    """
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(count) as pool:
        shared = {"DATABASE_URL": f"sqlite:///{directory}/db.sqlite3", **(env or {})}
        servers: list[DrillServer] = []
        try:
            # Each waits for the first one, which makes the tables.
            servers.extend(pool.map(lambda _: started("uvicorn", shared), range(count)))
            with proxied([each.url for each in servers], seed) as url:
                yield url
        finally:
            ended = list(pool.map(DrillServer.stop, servers))
        outputs = [each.output for each in servers]
    if any(ended):
        raise ServerFailed(f"The servers ended with {ended}:\n{outputs}")


@contextmanager
def proxied(urls: list[str], seed: int = 1) -> Iterator[str]:
    targets = [each.removesuffix("/mcp") for each in urls]
    port, proxy = free_port(), _Proxy(targets, seed)
    app = Starlette(routes=[Route("/{path:path}", proxy.answer, methods=METHODS)])
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=HOST,
            port=port,
            log_level="critical",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
    )
    serving = _serve(server, proxy)
    thread = threading.Thread(target=asyncio.run, args=(serving,), daemon=True)
    thread.start()
    try:
        _wait(server)
        yield f"http://{HOST}:{port}/mcp"
    finally:
        server.should_exit = True
        thread.join(START_S)


async def _serve(server: uvicorn.Server, proxy: _Proxy) -> None:
    await server.serve()
    await proxy.close()


def _wait(server: uvicorn.Server) -> None:
    ready = threading.Event()
    for _ in range(START_S * 100):
        if server.started:
            return
        ready.wait(0.01)
    raise AssertionError("The proxy did not start.")
