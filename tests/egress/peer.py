"""Another site on loopback, which sends what a test says, byte for byte."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_app.egress.sites import Site, usable_sites

LOOPBACK = ["127.0.0.0/8", "::1/128"]


@dataclass(frozen=True, slots=True)
class Received:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Sender: TypeAlias = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def answer(
    body: bytes | str | object = b"",
    status: int = 200,
    media_type: str = "application/json",
    **headers: str,
) -> bytes:
    """Return a whole answer; what is neither bytes nor text is written as JSON."""
    if not isinstance(body, bytes | str):
        body = json.dumps(body)
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}"]
    lines += [f"Content-Type: {media_type}"] if media_type else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


@dataclass
class Peer:
    """What the other site got, and what it sends: an answer, or whatever it writes."""

    port: int = 0
    connections: int = 0
    received: list[Received] = field(default_factory=list)
    send: bytes | Sender = b""

    def settings(self, **options: Any) -> dict[str, Any]:
        """Return `MCP["HTTP"]` with this site, "peer"."""
        url = f"http://127.0.0.1:{self.port}/api"
        site = {"title": "Help desk", "url": url, "networks": LOOPBACK, **options}
        return {"peer": site}

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while (request := await _read(reader)) is not None:
                self.received.append(request)
                if isinstance(self.send, bytes):
                    writer.write(self.send)
                    await writer.drain()
                else:
                    await self.send(request, writer)
        writer.close()


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _version = first.split(" ")
    headers = [
        (name, value.strip())
        for name, _, value in (each.partition(":") for each in lines)
    ]
    length = next((int(v) for n, v in headers if n.lower() == "content-length"), 0)
    return Received(method, target, headers, await reader.readexactly(length))


@asynccontextmanager
async def peer_on(
    host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Peer]:
    peer = Peer()
    server = await asyncio.start_server(peer.serve, host, 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()


async def settled() -> None:
    """Wait until peers have seen that nobody is there any more."""
    async with asyncio.timeout(60):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.001)


@contextmanager
def peer_in_thread() -> Iterator[Peer]:
    ready: Future[Peer] = Future()
    ended = threading.Event()

    async def serve() -> None:
        async with peer_on() as peer:
            ready.set_result(peer)
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield ready.result(60)
    finally:
        ended.set()
        thread.join()


def site(key: str = "peer") -> Site:
    return usable_sites()[key]
