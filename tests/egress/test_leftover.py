"""An answer that nobody asked for goes to nobody."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.egress.backend import MAX_KEEPALIVE_BYTES
from mcp_app.egress.client import Connections
from tests.egress.certificates import write_certificate
from tests.egress.peer import Peer, Received, answer
from tests.egress.test_client import GET, POST, call

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nasked\r\n0\r\n\r\n"
)
STALE = answer("stale")


def after_first(first: bytes, *more: bytes) -> Any:
    """Send more than was asked for once, and then what was asked for."""
    seen: list[Received] = []

    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        seen.append(request)
        for each in (first, *more) if len(seen) == 1 else (answer("next"),):
            writer.write(each)

    return send


@pytest.mark.parametrize(
    "answers",
    [
        [answer("asked") + STALE],
        [answer("asked"), STALE],
        [CHUNKED + STALE],
        [answer("asked") + b"H"],
        [answer("asked") + STALE[:30]],
        [answer("asked") + b"\r\n"],
    ],
)
@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
async def test_a_second_answer(
    peer: Peer, own: Connections, answers: list[bytes], request_: Any
) -> None:
    peer.send = after_first(*answers)
    assert (await call(own, request_)).body == b"asked"
    assert (await call(own, request_)).body == b"next"
    assert [each.method for each in peer.received] == [request_.method] * 2
    assert peer.connections == 2


@pytest.mark.parametrize(
    "sent",
    [
        answer("asked"),
        CHUNKED,
        b"HTTP/1.1 204 No\r\n\r\n",
        b"HTTP/1.1 100 Go on\r\n\r\n" + answer("asked"),
        answer("a" * (MAX_KEEPALIVE_BYTES // 2)),
    ],
)
async def test_one_answer(peer: Peer, own: Connections, sent: bytes) -> None:
    """The connection is kept, whatever the pieces it comes in."""
    peer.send = sent
    await call(own)
    await call(own)
    assert (len(peer.received), peer.connections) == (2, 1)


async def test_a_large_answer(peer: Peer, own: Connections) -> None:
    peer.send = answer("a" * MAX_KEEPALIVE_BYTES)
    assert len((await call(own)).body) == MAX_KEEPALIVE_BYTES
    await call(own)
    assert peer.connections == 2


@pytest.mark.parametrize("answers", [[answer("asked"), STALE], [answer("asked")]])
async def test_a_second_answer_by_tls(
    tmp_path: Path, settings: Settings, answers: list[bytes]
) -> None:
    """Each answer is a record of its own, which waits below until it is read."""
    write_certificate(tmp_path, "peer.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    peer = Peer(send=after_first(*answers))
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=context)
    peer.port = server.sockets[0].getsockname()[1]
    options = {
        "url": f"https://peer.example:{peer.port}",
        "ca": str(tmp_path / "certificate.pem"),
    }
    settings.MCP = {"HTTP": peer.settings(**options)}
    own = Connections(lambda host, port: ["127.0.0.1"])
    assert (await call(own)).body == b"asked"
    assert (await call(own)).body == b"next"
    assert peer.connections == len(answers)
    await own.close()
    server.close()
