"""Calls to another site: what is sent, what is read, and what is told of failures."""

from __future__ import annotations

import asyncio
import gzip
import logging
import resource
import socket
import ssl
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.conf import MIB
from mcp_app.egress import client as client_module
from mcp_app.egress import resolving
from mcp_app.egress.client import (
    _PIECE,
    Connections,
    close_connections,
    connections,
    decoded_pieces,
    read_body,
)
from mcp_app.egress.requests import SiteAnswer, SiteRequest
from mcp_app.interface.principal import AccessRequest, Principal
from tests.egress.certificates import write_certificate
from tests.egress.peer import Peer, Received, answer, site

ASKED = AccessRequest(principal=Principal.ANONYMOUS, server="")
GET = SiteRequest(method="GET", path="/things", idempotent=True, log_path="/things")
POST = SiteRequest(method="POST", path="/things", body=b'{"a":1}', log_path="/things")


async def call(own: Connections, request: SiteRequest = GET) -> SiteAnswer:
    return await own.call_site(site(), request, ASKED)


async def failure(
    own: Connections, request: SiteRequest = GET
) -> resolving.EgressError:
    with pytest.raises(resolving.EgressError) as caught:
        await call(own, request)
    return caught.value


async def test_a_call(peer: Peer, own: Connections) -> None:
    peer.send = answer({"a": [1]}, X_Other="b")
    request = SiteRequest(
        method="POST",
        path="/things/a%2Fb",
        query="c=d",
        headers=[("Accept-Language", "de")],
        body=b"{}",
    )
    got = await call(own, request)
    assert (got.status, got.media_type) == (200, "application/json")
    assert got.body == b'{"a": [1]}'
    assert got.headers["x-other"] == "b"
    assert got.took > 0
    (sent,) = peer.received
    assert (sent.method, sent.target) == ("POST", "/api/things/a%2Fb?c=d")
    assert sent.body == b"{}"
    assert sent.header("Host") == [f"127.0.0.1:{peer.port}"]
    assert sent.header("Accept-Encoding") == ["identity"]
    assert sent.header("Accept-Language") == ["de"]


async def test_secrets_go_out(peer: Peer, own: Connections, settings: Settings) -> None:
    peer.send = answer()
    settings.MCP = {
        "HTTP": peer.settings(
            secret_headers={"Authorization": "Bearer abc"}, secret_query={"key": "d e"}
        )
    }
    await call(own, SiteRequest(method="GET", path="/", query="a=b"))
    assert peer.received[0].target == "/api/?a=b&key=d+e"
    assert peer.received[0].header("Authorization") == ["Bearer abc"]


async def test_a_connection_is_kept(peer: Peer, own: Connections) -> None:
    peer.send = answer()
    await call(own)
    await call(own)
    assert (len(peer.received), peer.connections) == (2, 1)


async def test_redirects_are_answers(peer: Peer, own: Connections) -> None:
    peer.send = answer(status=302, Location=f"http://127.0.0.1:{peer.port}/elsewhere")
    assert (await call(own)).status == 302
    assert len(peer.received) == 1


async def test_no_proxy_is_used(
    peer: Peer, own: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    peer.send = answer()
    assert (await call(own)).status == 200
    assert peer.received[0].target == "/api/things"


async def test_nobody_listens(settings: Settings, own: Connections) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings.MCP = {"HTTP": Peer(free.getsockname()[1]).settings()}
        error = await failure(own)
    assert type(error) is resolving.Unreachable
    assert not error.sent


def _dropping(when: Callable[[Received], bool]) -> Any:
    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        if when(request):
            writer.close()
        else:
            writer.write(answer())

    return send


async def test_closed_connections_are_replaced(peer: Peer, own: Connections) -> None:
    seen: list[Received] = []

    def second(request: Received) -> bool:
        seen.append(request)
        return len(seen) == 2

    peer.send = _dropping(second)
    assert (await call(own)).status == 200
    assert (await call(own)).status == 200
    assert len(peer.received) == 3


async def test_what_changes_things_is_sent_once(peer: Peer, own: Connections) -> None:
    peer.send = answer()
    await call(own)
    peer.send = _dropping(lambda request: True)
    error = await failure(own, POST)
    assert type(error) is resolving.Unreachable
    assert error.sent
    assert [each.method for each in peer.received] == ["GET", "POST"]


async def test_new_connections_are_not_retried(peer: Peer, own: Connections) -> None:
    peer.send = _dropping(lambda request: True)
    await failure(own)
    assert len(peer.received) == 1


@pytest.mark.parametrize("reset", [False, True])
async def test_an_answer_that_breaks_off(
    peer: Peer, own: Connections, reset: bool
) -> None:
    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        await writer.drain()
        if reset:
            connection, linger = (
                writer.get_extra_info("socket"),
                struct.pack("ii", 1, 0),
            )
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        writer.close()

    peer.send = send
    error = await failure(own, POST)
    assert (type(error), error.sent) == (resolving.Unreachable, True)
    assert [each.method for each in peer.received] == ["POST"]


async def test_a_slow_answer(peer: Peer, own: Connections, settings: Settings) -> None:
    settings.MCP = {"HTTP": peer.settings(timeout=1)}
    ended = asyncio.Event()

    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try:
            while True:
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    peer.send = send
    error = await failure(own, POST)
    assert type(error) is resolving.TooSlow
    assert error.message == "The call took longer than 1 s."
    assert error.sent
    # The connection is gone, too.
    async with asyncio.timeout(30):
        await ended.wait()


async def test_a_small_body_that_becomes_large(peer: Peer, own: Connections) -> None:
    """10 MiB that stand for 10 GiB are ended at the limit."""
    block = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    head = block.compress(bytes(MIB)) + block.flush(zlib.Z_FULL_FLUSH)
    again = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    piece = again.compress(bytes(MIB)) + again.flush(zlib.Z_FULL_FLUSH)
    blocks = 10 * 1024

    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        size = len(head) + len(piece) * (blocks - 1)
        assert size > 10 * MIB
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (size, head)
        )
        for _ in range(blocks - 1):
            writer.write(piece)
            await writer.drain()

    peer.send = send
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await failure(own)
    assert type(error) is resolving.TooLarge
    assert "larger than 4,194,304 bytes" in error.message
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 32 * 1024


async def test_headers_without_end(peer: Peer, own: Connections) -> None:
    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-A: " + b"a" * 1000 + b"\r\n")
            await writer.drain()

    peer.send = send
    assert type(await failure(own)) is resolving.Unreachable


async def test_a_name_that_leads_to_a_private_address(
    peer: Peer, settings: Settings
) -> None:
    """No connection is made, although the peer listens there."""
    settings.MCP = {"HTTP": {"peer": {"url": f"https://peer.example:{peer.port}"}}}
    own = Connections(lambda host, port: ["93.184.216.34", "127.0.0.1"])
    error = await failure(own)
    assert type(error) is resolving.Forbidden
    assert "peer.example leads to 127.0.0.1, which is not public" in error.message
    assert peer.connections == 0


async def test_a_name_that_changes_its_address(peer: Peer, settings: Settings) -> None:
    """Each new connection goes to an address that was looked at, not to the name."""
    url = f"http://peer.example:{peer.port}"
    settings.MCP = {"HTTP": {"peer": {"url": url, "networks": ["127.0.0.1/32"]}}}
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    own = Connections(lambda host, port: next(answers))
    peer.send = answer(Connection="close")
    assert (await call(own)).status == 200
    assert peer.received[0].header("Host") == [f"peer.example:{peer.port}"]
    assert type(await failure(own)) is resolving.Forbidden
    assert peer.connections == 1


async def test_the_next_address_is_tried(peer: Peer, settings: Settings) -> None:
    url = f"http://peer.example:{peer.port}"
    settings.MCP = {"HTTP": {"peer": {"url": url, "networks": ["127.0.0.0/8"]}}}
    own = Connections(lambda host, port: ["127.0.0.9", "127.0.0.1"])
    peer.send = answer(Connection="close")
    assert (await call(own)).status == 200


@pytest.fixture
async def tls_port(tmp_path: Path) -> AsyncIterator[int]:
    """A server with a certificate for "peer.example" that nobody else vouches for."""
    write_certificate(tmp_path, "peer.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    peer = Peer(send=answer("hello"))
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=context)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.mark.parametrize(
    ("host", "trusted", "works"),
    [
        ("peer.example", True, True),
        ("other.example", True, False),
        ("peer.example", False, False),
    ],
)
async def test_certificates(
    tls_port: int,
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    trusted: bool,
    works: bool,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    url = f"https://{host}:{tls_port}"
    options: dict[str, Any] = {"url": url, "networks": ["127.0.0.1/32"]}
    if trusted:
        options["ca"] = str(tmp_path / "certificate.pem")
    settings.MCP = {"HTTP": {"peer": options}}
    own = Connections(lambda host, port: ["127.0.0.1"])
    if works:
        assert (await call(own)).body == b"hello"
        await own.close()
    else:
        error = await failure(own)
        assert "certificate" in error.message.lower()
        assert not error.sent


async def test_what_is_logged(
    peer: Peer, own: Connections, caplog: pytest.LogCaptureFixture
) -> None:
    peer.send = answer("a")
    with caplog.at_level(logging.INFO, "mcp_app.egress"):
        secret = SiteRequest(method="GET", path="/q/secret", log_path="/q/{{q}}")
        await call(own, secret)
    (line,) = [x.getMessage() for x in caplog.records if x.name == "mcp_app.egress"]
    assert line.startswith("GET /q/{{q}} of the site peer: 200, 1 bytes, ")


async def test_no_failure_shows_a_secret(
    peer: Peer,
    own: Connections,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither the variables of its frames nor the log have it."""
    secret = "canary-in-a-header"
    settings.MCP = {"HTTP": peer.settings(secret_headers={"X-Partner": secret})}

    def broken(*_: object) -> Any:
        raise RuntimeError(f"A bug with {secret}.")

    monkeypatch.setattr(client_module, "_first_of_each", broken)
    peer.send = answer()
    with caplog.at_level(logging.DEBUG):
        error = await failure(own)
    assert peer.received[0].header("X-Partner") == [secret]
    assert (error.message, error.sent) == ("The call failed: RuntimeError.", True)
    assert "A bug with" in caplog.text
    assert secret not in caplog.text
    trace = error.__traceback__
    while trace is not None:
        assert secret not in repr(trace.tb_frame.f_locals)
        trace = trace.tb_next


SECRET = "canary-that-comes-back"


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"HTTP/1.1 two {}\r\n\r\n", "RemoteProtocolError"),
        (b"HTTP/1.1 two \xff {}\r\n\r\n", "RemoteProtocolError"),
        (answer("a", Content_Encoding="{}"), "has the Content-Encoding"),
        (answer("a", Content_Encoding="x" * 30 + "{}"), "has the Content-Encoding"),
    ],
)
async def test_a_secret_that_comes_back(
    peer: Peer,
    own: Connections,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    sent: bytes,
    shown: str,
) -> None:
    settings.MCP = {"HTTP": peer.settings(secret_headers={"X-Key": SECRET})}
    peer.send = sent.replace(b"{}", SECRET.encode())
    with caplog.at_level(logging.INFO, "mcp_app.egress"):
        error = await failure(own)
    assert shown in error.message
    assert shown in caplog.text
    for text in (error.message, str(error), caplog.text):
        assert SECRET[:10] not in text


async def test_a_failure_before_anything_was_sent(
    peer: Peer, own: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> Any:
        raise RuntimeError("No thread is left.")

    monkeypatch.setattr(client_module, "secrets_for", broken)
    error = await failure(own, POST)
    assert error.message == "The call failed: RuntimeError."
    assert not error.sent
    assert peer.connections == 0


async def test_connections_of_the_loop(peer: Peer) -> None:
    await close_connections()
    peer.send = answer()
    assert connections() is connections()
    await call(connections())
    await close_connections()
    await call(connections())
    assert peer.connections == 2
    await close_connections()


# -- bodies ----------------------------------------------------------------------------


TEXT = b"What was asked for. " * 500


async def chunked(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


async def read(body: bytes, encoding: str = "", most: int = MIB) -> bytes:
    return await read_body(decoded_pieces(chunked(body), encoding, most))


def gzipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def raw_deflate(body: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(body) + deflate.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzipped(TEXT)),
        (" GZip ", gzipped(TEXT)),
        ("x-gzip", gzipped(TEXT[:7]) + gzipped(TEXT[7:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("gzip", gzipped(TEXT) + bytes(2_500)),
        ("gzip", gzipped(TEXT[:7]) + bytes(5) + gzipped(TEXT[7:])),
    ],
)
async def test_bodies(encoding: str, body: bytes) -> None:
    assert await read(body, encoding) == TEXT
    pieces = decoded_pieces(chunked(body, 1), encoding, MIB)
    assert await read_body(pieces) == TEXT
    assert await read(body, encoding, len(TEXT)) == TEXT
    with pytest.raises(resolving.TooLarge):
        await read(body, encoding, len(TEXT) - 1)


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "zstd"])
async def test_codings_that_nobody_asked_for(encoding: str) -> None:
    with pytest.raises(resolving.Unreadable, match=encoding):
        await read(TEXT, encoding)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_what_is_not_compressed(encoding: str) -> None:
    with pytest.raises(resolving.Unreadable, match="cannot be decompressed"):
        await read(TEXT, encoding)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzipped(TEXT)),
        ("gzip", gzipped(TEXT) + gzipped(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
    ],
)
@pytest.mark.parametrize("missing", [1, 4, 12])
async def test_a_body_that_is_cut_off(encoding: str, body: bytes, missing: int) -> None:
    with pytest.raises(resolving.Unreadable, match="cannot be decompressed"):
        await read(body[:-missing], encoding)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", ""])
async def test_no_body(encoding: str) -> None:
    assert await read(b"", encoding) == b""


async def test_a_piece_that_ends_where_the_input_does() -> None:
    """The last bytes of the input stand for more than one piece can hold."""
    size = _PIECE + 21
    assert len(await read(raw_deflate(bytes(size)), "deflate")) == size
