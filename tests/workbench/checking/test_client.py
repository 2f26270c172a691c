"""Whatever a server does, something comes of a request, and in time."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from mcp_app.models import AccessToken, Server
from mcp_app.workbench.checking.client import (
    GOOD_FOR,
    LARGEST,
    Failure,
    Reply,
    Request,
    address_problem,
    better_address,
    leads_back,
    public_line,
    send_request,
    token_for,
    why_no_token,
)
from tests.drill.ports import HOST
from tests.published import published

Serve = Callable[[socket.socket], None]
PATIENCE_S: Final = 30.0
SHORT_S: Final = 0.3
OK: Final = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def listening(serve: Serve, family: int = socket.AF_INET) -> Iterator[str]:
    """Serve one connection at a time in a thread; give the URL."""
    host = HOST if family == socket.AF_INET else "::1"
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        listener.listen()

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    serve(connection)

        thread = threading.Thread(target=run)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield f"http://{host if family == socket.AF_INET else '[::1]'}:{port}/mcp"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def asked(url: str, patience: float = PATIENCE_S, body: bytes = b"{}") -> Reply:
    headers = {"X-Own": "yes", "Content-Length": str(len(body))}
    request = Request(url, headers, body, patience=patience)
    return send_request(request, ssl.create_default_context())


def answering(*pieces: bytes) -> Serve:
    def serve(connection: socket.socket) -> None:
        connection.recv(65_536)
        for piece in pieces:
            connection.sendall(piece)

    return serve


def test_an_answer() -> None:
    got: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        got.append(connection.recv(65_536))
        connection.sendall(OK + b"X-Their: some\r\nContent-Length: 2\r\n\r\nhi")

    with listening(serve) as url:
        reply = asked(url)
    assert (reply.status, reply.text, reply.failure) == (200, "hi", None)
    assert reply.headers["x-their"] == "some"
    assert got[0].startswith(b"POST /mcp HTTP/1.1\r\n")
    assert got[0].count(b"\r\nHost: 127.0.0.1:") == 1
    assert b"X-Own: yes" in got[0]


def test_ipv6_alone() -> None:
    try:
        with listening(answering(OK + b"\r\nhi"), socket.AF_INET6) as url:
            assert asked(url).text == "hi"
    except OSError:
        pytest.skip("This machine has no IPv6.")


def test_an_address_that_is_silent_before_a_good_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As IPv6 is where no way leads out by it."""
    connect = socket.socket.connect

    def silent(self: socket.socket, address: tuple[str, int]) -> None:
        if address[0] == "192.0.2.1":
            time.sleep(self.gettimeout() or PATIENCE_S)
            raise TimeoutError
        connect(self, address)

    with listening(answering(OK + b"Content-Length: 2\r\n\r\nhi")) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        both = [(*kind, ("192.0.2.1", port)), (*kind, (HOST, port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
        monkeypatch.setattr(socket.socket, "connect", silent)
        reply = asked(url, SHORT_S)
    assert (reply.text, reply.failure) == ("hi", None)
    # The way there is no time in which the server let somebody wait.
    assert reply.seconds < SHORT_S / 2


def test_no_redirect_is_followed() -> None:
    visited: list[bytes] = []
    with listening(lambda connection: visited.append(connection.recv(9))) as other:
        moved = b"HTTP/1.1 302 Found\r\nLocation: " + other.encode() + b"\r\n\r\n"
        with listening(answering(moved)) as url:
            reply = asked(url)
    assert (reply.status, reply.headers["location"]) == (302, other)
    assert not visited


def test_a_byte_now_and_then_is_given_up() -> None:
    """In the headers, and in the body."""

    def slow(first: bytes) -> Serve:
        def serve(connection: socket.socket) -> None:
            connection.sendall(first)
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                connection.sendall(b"x")
                time.sleep(0.02)

        return serve

    for first in (b"HTTP/1.1 200 OK\r\nX: ", OK + b"\r\n"):
        with listening(slow(first)) as url:
            reply = asked(url, SHORT_S)
        assert reply.failure is Failure.LATE
        assert reply.seconds < PATIENCE_S


def test_a_body_without_end() -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(OK + b"\r\n")
        while True:
            connection.sendall(b"x" * 65_536)

    with listening(serve) as url:
        reply = asked(url)
    assert reply.failure is Failure.LARGE
    assert len(reply.text) < 2 * LARGEST


def test_what_is_packed_is_unpacked_up_to_a_size() -> None:
    head = OK + b"Content-Encoding: gzip\r\n\r\n"
    with listening(answering(head, gzip.compress(b"hello"))) as url:
        assert asked(url).text == "hello"
    with listening(answering(head.replace(b"gzip", b"GZIP"), gzip.compress(b"a"))) as u:
        assert asked(u).text == "a"
    with listening(answering(head, gzip.compress(b"x" * 10**7))) as url:
        reply = asked(url)
    assert reply.failure is Failure.LARGE
    assert len(reply.text) < 3 * LARGEST


def test_a_refusal_before_the_body_is_read() -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass

    with listening(serve) as url:
        assert asked(url, body=b"x" * 4_000_000).status == 413


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (b"", Failure.UNREACHABLE),
        (b"SSH-2.0-OpenSSH\r\n", Failure.UNREACHABLE),
        (OK + b"X: " + b"y" * 100_000, Failure.UNREACHABLE),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\nab", Failure.CUT),
        (OK + b"Content-Encoding: gzip\r\n\r\nnone", Failure.CUT),
    ],
)
def test_what_is_no_answer(answer: bytes, failure: Failure) -> None:
    with listening(answering(answer)) as url:
        reply = asked(url)
    assert reply.failure is failure
    assert reply.detail


def test_a_header_that_cannot_be_sent_is_not_repeated() -> None:
    with listening(answering(OK)) as url:
        request = Request(url, {"Authorization": "Bearer secret\r"})
        reply = send_request(request, ssl.create_default_context())
    assert reply.failure is Failure.UNREACHABLE
    assert reply.detail
    assert "secret" not in reply.detail


def test_a_name_that_there_is_not() -> None:
    assert asked("http://mcp.invalid/mcp").failure is Failure.UNREACHABLE


def test_no_tls() -> None:
    with listening(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url:
        reply = asked(url.replace("http:", "https:"))
    assert (reply.status, reply.failure) == (0, Failure.TLS)


# -- address ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://example.com/mcp", ""),
        ("http://127.0.0.1:8000/mcp", ""),
        ("http://[::1]/mcp/", ""),
        ("", "begin with"),
        ("mcp", "begin with"),
        ("ftp://example.com/", "begin with"),
        ("file:///etc/passwd", "begin with"),
        ("https:///mcp", "begin with"),
        ("https://user:secret@example.com/mcp", "no user name"),
        ("https://example.com/mcp?a=1", "question mark"),
        ("https://example.com/mcp#a", "no #"),
        ("https://example.com/mcp?", "question mark"),
        ("https://example.com/mcp#", "no #"),
        ("https://example.com/a b", "spaces"),
        ("https://example.com/\r\nX: y", "ASCII"),
        ("https://exämple.com/mcp", "ASCII"),
        ("https://example.com:0/mcp", "port 0"),
        ("https://example.com:99999/mcp", "."),
        ("https://[::1/mcp", "."),
        ("https://example.com/" + "x" * 1_000, "1000"),
    ],
)
def test_addresses(url: str, rule: str) -> None:
    found = address_problem(url)
    assert rule in found
    assert bool(found) is bool(rule)


URL = "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    ("location", "back", "better"),
    [
        ("/mcp", True, URL),
        (URL, True, URL),
        ("https://mcp.example.com:443/mcp", True, "https://mcp.example.com:443/mcp"),
        ("https://mcp.example.com:x/mcp", False, ""),
        ("//[", False, ""),
        ("/mcp/", False, f"{URL}/"),
        ("https://other.example.com/mcp", False, "https://other.example.com/mcp"),
        ("http://other.example.com/mcp", False, ""),
        ("https://other.example.com/login", False, ""),
        ("/mcp?next=1", False, ""),
        ("https://me:word@other.example.com/mcp", False, ""),
        ("javascript:alert(1)", False, ""),
    ],
)
def test_where_a_redirect_leads(location: str, back: bool, better: str) -> None:
    assert leads_back(URL, location) is back
    assert better_address(URL, location) == better
    assert better_address("http://mcp.example.com/mcp", URL) == URL


def test_the_setting_by_which_a_server_has_an_address() -> None:
    line = 'MCP["PUBLIC_URL"] = "https://mcp.example.com/mcp"'
    assert public_line(URL, "default") == line
    assert public_line(f"{URL}/", "default") == line
    assert public_line(f"{URL}/team", "team") == line
    assert public_line(f"{URL}/other", "team") == ""


# -- credentials -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown", "made"),
    [
        ("https://mcp.example.com/mcp", True, True),
        ("https://MCP.example.com:8443/mcp", True, True),
        ("https://a.internal.example/mcp", True, True),
        ("https://named.example/mcp", True, True),
        ("http://127.0.0.1:8000/mcp", True, True),
        ("http://localhost:8000/mcp", True, False),
        ("https://mcp.example.org/mcp", True, False),
        ("https://mcp.example.com.evil.example/mcp", True, False),
        ("http://mcp.example.com/mcp", False, False),
        ("http://127.0.0.1.evil.example/mcp", False, False),
    ],
)
def test_where_tokens_go(url: str, shown: bool, made: bool, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*", "127.0.0.1", ".internal.example"]
    settings.MCP = {
        "PUBLIC_URL": "https://mcp.example.com/mcp",
        "HOSTS": ["named.example"],
    }
    assert (why_no_token(url, issued_here=False) == "") is shown
    assert (why_no_token(url, issued_here=True) == "") is made


@pytest.mark.django_db
def test_a_token_reads_at_one_server_and_ends() -> None:
    server = published(Server(slug="team", access="token"))
    user = User.objects.create_user("maria")
    with token_for(user, server) as token:
        row = AccessToken.objects.of(token).get()
        assert row.user == user
        assert row.may == "read"
        assert [*row.servers.all()] == [server]
        assert row.expires is not None
        assert row.expires - row.created <= GOOD_FOR
        assert row.revoked is None
    row.refresh_from_db()
    assert row.revoked is not None
