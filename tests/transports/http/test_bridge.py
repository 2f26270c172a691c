"""From Django's request to an ASGI call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import suppress
from io import BytesIO
from typing import Any, Final, cast

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import StreamingHttpResponse, UnreadablePostError
from django.test import RequestFactory
from pytest_django import Settings

from mcp_app.protocol.errors import RequestRefused
from mcp_app.transports.http.bridge import Call, asgi_scope_of, read_wsgi_body

START = {"type": "http.response.start", "status": 200, "headers": []}
PART = {"type": "http.response.body", "body": b"part", "more_body": True}


async def received(call: Call, work: Coroutine[Any, Any, None]) -> AsyncIterator[bytes]:
    """Return what a client gets of a stream, part by part."""
    response = await call.await_response(work)
    assert isinstance(response, StreamingHttpResponse)
    return aiter(response)


async def test_a_stream_that_is_given_up_ends() -> None:
    call = Call(iter(()))

    async def given_up() -> None:
        await call.send(START)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                # Nobody takes it.
                await call.send(PART)

    parts = await received(call, given_up())
    await asyncio.sleep(0.05)
    async with asyncio.timeout(60):
        assert [part async for part in parts] == [b"part"]


async def test_a_part_is_sent_when_the_one_before_was_taken() -> None:
    call, sent = Call(iter(())), 0

    async def three() -> None:
        nonlocal sent
        await call.send({**START, "headers": [(b"connection", b"close")]})
        for _ in range(3):
            await call.send(PART)
            sent += 1
        await call.send({"type": "http.response.body"})

    response = await call.await_response(three())
    # No application says that under WSGI (PEP 3333).
    assert "connection" not in response.headers
    assert isinstance(response, StreamingHttpResponse)
    parts = aiter(response)
    for number in range(3):
        assert sent == number
        assert await anext(parts) == b"part"
        await asyncio.sleep(0)
    assert [part async for part in parts] == []


async def test_who_sends_to_a_client_that_has_left_is_told() -> None:
    call, left = Call(iter(())), asyncio.Event()

    async def goes_on() -> None:
        await call.send(START)
        await call.send(PART)
        assert (await call.receive())["type"] == "http.request"
        assert (await call.receive())["type"] == "http.disconnect"
        with pytest.raises(OSError, match="left"):
            await call.send(PART)
        left.set()

    parts = await received(call, goes_on())
    assert await anext(parts) == b"part"
    await cast("AsyncGenerator[bytes]", parts).aclose()
    async with asyncio.timeout(60):
        await left.wait()


@pytest.mark.parametrize("closed", [True, False])
async def test_a_stream_that_nobody_reads_is_left(closed: bool) -> None:
    call, left = Call(iter(())), asyncio.Event()

    async def hears() -> None:
        await call.send(START)
        # Nobody takes it.
        await call.send(PART)
        with pytest.raises(OSError, match="left"):
            await call.send(PART)
        await call.receive()
        assert (await call.receive())["type"] == "http.disconnect"
        left.set()

    response = await call.await_response(hears())
    if closed:
        await asyncio.to_thread(response.close)
    else:
        del response
    async with asyncio.timeout(60):
        await left.wait()


@pytest.fixture
def limit(settings: Settings) -> int:
    settings.MCP = {"LIMITS": {"body": 1_000}}
    return 1_000


def came(body: bytes = b"", **environ: Any) -> WSGIRequest:
    """Return a request as a WSGI server hands it over."""
    given = {"CONTENT_LENGTH": "", "wsgi.input": BytesIO(body), **environ}
    return RequestFactory().generic("POST", "/mcp", b"", **given)


def scoped(request: WSGIRequest) -> dict[str, Any]:
    return asgi_scope_of(request.META, request.method or "", request.path)


CHUNKED: Final[dict[str, Any]] = {"HTTP_TRANSFER_ENCODING": "chunked"}


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (came(b"{}", CONTENT_LENGTH="2"), b"{}"),
        (came(b"{}more", CONTENT_LENGTH="2"), b"{}"),
        (came(b"{}"), b""),
        (came(b"x" * 9_000, CONTENT_LENGTH="9000"), b"x" * 1_001),
        (came(b"{}" * 9, **CHUNKED, **{"wsgi.input_terminated": True}), b"{}" * 9),
    ],
)
def test_bodies(limit: int, request_: WSGIRequest, body: bytes) -> None:
    assert read_wsgi_body(request_) == body


def test_a_body_without_an_end_is_not_read_for_ever(limit: int) -> None:
    class Endless(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return b"x" * (size or 1)

    endless = {**CHUNKED, "wsgi.input": Endless(), "wsgi.input_terminated": True}
    assert len(read_wsgi_body(came(b"", **endless))) > limit


def test_a_body_without_a_length_is_refused_where_no_end_is_in_sight() -> None:
    with pytest.raises(RequestRefused) as refused:
        read_wsgi_body(came(b"{}", **CHUNKED))
    assert refused.value.http_status == 411


@pytest.mark.parametrize(
    "error", [UnreadablePostError("gone"), OSError("gone"), ValueError("no size")]
)
@pytest.mark.parametrize(
    "said", [{"CONTENT_LENGTH": "9"}, {**CHUNKED, "wsgi.input_terminated": True}]
)
def test_a_body_that_cannot_be_read(error: Exception, said: dict[str, Any]) -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise error

    with pytest.raises(RequestRefused) as refused:
        read_wsgi_body(came(b"", **{**said, "wsgi.input": Broken()}))
    assert refused.value.http_status == 400


def test_half_a_body_is_not_taken_for_a_whole_one() -> None:
    with pytest.raises(RequestRefused, match="shorter") as refused:
        read_wsgi_body(came(b"{}", CONTENT_LENGTH="3"))
    assert refused.value.http_status == 400


@pytest.mark.parametrize(
    ("environ", "hosts"),
    [
        # Django's test client sends none, and what it asks is always the same server.
        ({}, [b"testserver:80"]),
        ({"SERVER_NAME": "example.org", "SERVER_PORT": "81"}, []),
        ({"HTTP_HOST": "other.example"}, [b"other.example"]),
        ({"HTTP_HOST": "", "SERVER_NAME": "example.org"}, [b""]),
    ],
)
def test_a_request_without_a_host_has_none(
    environ: dict[str, Any], hosts: list[bytes]
) -> None:
    headers = scoped(came(**environ))["headers"]
    assert [value for name, value in headers if name == b"host"] == hosts


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({}, None),
        ({"RAW_URI": "/%6dcp?a=%62"}, b"/%6dcp"),
        ({"REQUEST_URI": "/mcp%2fteam"}, b"/mcp%2fteam"),
    ],
)
def test_the_path_as_it_was_sent(environ: dict[str, Any], path: bytes | None) -> None:
    assert scoped(came(**environ))["raw_path"] == path


@pytest.mark.parametrize("secure", [False, True])
def test_the_scheme_of_the_connection(secure: bool) -> None:
    request = RequestFactory().post("/mcp", secure=secure)
    assert scoped(request)["scheme"] == ("https" if secure else "http")


def test_a_scope() -> None:
    request = RequestFactory().post(
        "/site/mcp",
        b"{}",
        content_type="application/json",
        headers={"Mcp-Session-Id": "s\xe4", "X-Odd": "a, b"},
        SCRIPT_NAME="/site",
        SERVER_PROTOCOL="HTTP/1.0",
    )
    scope = scoped(request)
    assert (scope["type"], scope["method"]) == ("http", "POST")
    assert scope["http_version"] == "1.0"
    assert scope["root_path"] == "/site"
    headers = dict(scope["headers"])
    assert headers[b"mcp-session-id"] == b"s\xe4"
    assert headers[b"x-odd"] == b"a, b"
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"content-length"] == b"2"
