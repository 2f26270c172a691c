"""Clients that send half a body, send it by the byte, or take nothing of an answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from tests.process.raw_requests import post_head
from tests.process.streaming import stateless_request

PATIENCE_S: Final = 120.0
PAUSE_S: Final = 0.2
"""Between a byte and the next one."""
TAKEN: Final = 4_096
"""Bytes that the system takes for a reader that takes nothing; it doubles them."""


class SlowClient:
    def __init__(self, url: str, headers: Mapping[str, str], length: int) -> None:
        where = urlsplit(url)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, TAKEN)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect((where.hostname, where.port))
        head = post_head(url, {**headers, "Content-Length": length})
        self.began = time.monotonic()
        self.send(head + b"\r\n")

    def send(self, data: bytes) -> None:
        with suppress(OSError):
            self._socket.sendall(data)

    def status(self) -> int:
        with suppress(OSError):
            # What is left of the body may have reset the connection.
            found = self._socket.recv(TAKEN).split(b" ", 2)
            return int(found[1]) if len(found) > 1 else 0
        return 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


def half_body(url: str, size: int, missing: int = 1) -> SlowClient:
    headers, _ = stateless_request("tools/list")
    client = SlowClient(url, headers, size)
    client.send(b" " * (size - missing))
    return client


def unread_call(url: str, **arguments: object) -> SlowClient:
    params = {"name": "drill_count", "arguments": arguments}
    headers, body = stateless_request(
        "tools/call", **params, _meta={"progressToken": 1}
    )
    client = SlowClient(url, headers, len(body))
    client.send(body)
    return client


class Dribble(threading.Thread):
    """Sends each of some clients' bodies by the byte, until it is stopped."""

    def __init__(self, clients: Iterable[SlowClient]) -> None:
        super().__init__(daemon=True)
        self._clients = list(clients)
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(PAUSE_S):
            for client in self._clients:
                client.send(b" ")

    def stop(self) -> None:
        self._over.set()
        self.join()
