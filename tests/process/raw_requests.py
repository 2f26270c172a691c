"""Requests that no client's library sends, and what every server answers."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from tests.process.streaming import PATIENCE_S

HOST: Final = "Host: {host}"
ODD: Final[Mapping[tuple[str, ...], int]] = {
    ("POST /mcp HTTP/1.1", "Content-Length: 0"): 400,
    ("GET /mcp/sse HTTP/1.1",): 400,
    ("GET /mcp/health HTTP/1.1",): 400,
    ("GET /mcp/health HTTP/1.0",): 200,
    ("GET /.well-known/oauth-protected-resource/mcp HTTP/1.1",): 400,
    ("GET /.well-known/oauth-authorization-server HTTP/1.1",): 400,
    ("GET /%6dcp HTTP/1.1", HOST): 404,
    ("GET /mcp%2fpages HTTP/1.1", HOST): 404,
    ("GET /mcp/%68ealth HTTP/1.1", HOST): 404,
}
"""Without a Host, or with an address that encodes what needs no encoding."""
UPGRADE: Final = (
    "GET /mcp HTTP/1.1",
    HOST,
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


def statuses(url: str) -> dict[tuple[str, ...], int]:
    return {lines: status(url, *lines, "Connection: close") for lines in ODD}


def status(url: str, *lines: str) -> int:
    """Send the lines of a request without a body; return the answer's status."""
    head = "".join(f"{line}\r\n" for line in (*lines, ""))
    with connected(url) as client:
        client.sendall(head.replace("{host}", urlsplit(url).netloc).encode())
        with client.makefile("rb") as answer:
            return int(answer.readline().split()[1])


def connected(url: str) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), PATIENCE_S)


def post_head(url: str, headers: Mapping[str, object]) -> bytes:
    """Return the head of a POST, but for the empty line that ends it."""
    where = urlsplit(url)
    lines = [f"POST {where.path} HTTP/1.1", f"Host: {where.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "".join(f"{line}\r\n" for line in lines).encode()
