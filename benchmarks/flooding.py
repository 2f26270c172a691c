"""Strangers who send much at once, and somebody honest who is looked at meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.messages import Request

CONNECTIONS: Final = 256
HONEST_S: Final = 0.5
"""Between two requests of who is honest."""


@dataclass(slots=True, kw_only=True)
class Flood:
    """Requests on many connections, at most so many a second; counts the statuses."""

    port: int
    requests: Iterator[bytes]
    per_second: float
    connections: int = CONNECTIONS
    statuses: Counter[int] = field(default_factory=Counter)
    """0 stands for a connection without an answer."""

    def run(self) -> None:
        """Send all of them."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        began, sent = time.monotonic(), 0

        async def send_some() -> None:
            nonlocal sent
            connection = _Connection(self.port)
            for request in self.requests:
                sent += 1
                ahead = began + sent / self.per_second - time.monotonic()
                await asyncio.sleep(max(0.0, ahead))
                self.statuses[await connection.ask(request)] += 1
            connection.close()

        await asyncio.gather(*(send_some() for _ in range(self.connections)))


class _Connection:
    """One connection, which is opened again if the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes) -> int:
        """Send a request, and read its whole answer; return the status."""
        try:
            if self._writer is None:
                self._reader, self._writer = await asyncio.open_connection(
                    "127.0.0.1", self._port
                )
            self._writer.write(request)
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(_header(head, b"content-length") or 0)
            await self._reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0
        return int(head.split(b" ", 2)[1])

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None


def _header(head: bytes, name: bytes) -> bytes:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(name + b":"):
            return line.partition(b":")[2].strip()
    return b""


def raw(
    port: int, request: Request, headers: Mapping[str, str], number: int = 0
) -> bytes:
    """Return a request with more headers, as it is sent."""
    body = request.body(number)
    lines = [*request.lines(port), *headers.items(), ("Content-Length", str(len(body)))]
    text = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"POST /mcp HTTP/1.1\r\n{text}\r\n".encode() + body


@contextmanager
def during(flood: Flood) -> Iterator[Future[None]]:
    """Send the flood beside the block, which ends after both; raise what it raises."""
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(flood.run)
        yield sent
        sent.result()


@dataclass(slots=True)
class Honest:
    """What somebody honest met: the longest wait, and answers that were not right."""

    longest_s: float = 0.0
    requests: int = 0
    wrong: list[str] = field(default_factory=list)


@contextmanager
def honest(ask: Callable[[], object], pause_s: float = HONEST_S) -> Iterator[Honest]:
    """Let somebody ask again and again in the block; what `ask` raises is noted."""
    seen, over = Honest(), threading.Event()

    def go_on() -> None:
        while not over.wait(pause_s):
            began = time.monotonic()
            try:
                ask()
            except Exception as error:
                seen.wrong.append(repr(error))
            seen.requests += 1
            seen.longest_s = max(seen.longest_s, time.monotonic() - began)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
