"""Turns a Django request into an ASGI call, and the call's messages into a response.

So the endpoint is the same under ASGI and WSGI.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, TypeVar

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from mcp_app.conf import mcp_settings
from mcp_app.protocol.errors import RequestRefused
from mcp_app.transports.asgi_types import Message, RawHeaders

logger = logging.getLogger("mcp_app.transports")

Response = TypeVar("Response", bound=HttpResponseBase)

PIECE: Final = 65_536
"""Bytes of a body that are read at once; reading stops if the body is too large."""
_BARE: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")
"""Headers that WSGI names without a prefix; empty if they are absent."""
ADDRESSES: Final = ("RAW_URI", "REQUEST_URI")
"""WSGI's keys with the address as it was sent: some servers have one of them."""
TEST_SERVER: Final = "testserver"
"""The server's name for Django's test client, which sends no Host."""

_running: set[asyncio.Future[None]] = set()


class Call:
    """The `receive` and `send` of one ASGI call; used on its loop only.

    `body` yields the client's body in pieces; then only a disconnect is received.
    `send` waits until `stream_parts` has taken the part: at most one is held.
    """

    def __init__(self, body: Iterator[bytes]) -> None:
        self._body: Iterator[bytes] | None = body
        self._has_left = asyncio.Event()
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._headers: RawHeaders = []
        self._part: bytes | None = None
        self._accepted, self._put = asyncio.Event(), asyncio.Event()
        self._over = False
        self._streams = False

    async def receive(self) -> Message:
        if self._body is not None:
            piece = next(self._body, b"")
            if not piece:
                self._body = None
            return {"type": "http.request", "body": piece, "more_body": bool(piece)}
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a message; return when it is on its way to the client.

        Raises OSError if the client has left, as servers do.
        """
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], message["headers"]
            return
        part, has_more = message.get("body", b""), message.get("more_body", False)
        first = not self._begun.done()
        if first:
            self._streams = has_more
            self._begun.set_result(None)
        if first and not has_more:  # a whole answer: `await_response` takes it
            self._part, self._over = part, True
            return
        if self._has_left.is_set():
            raise OSError("The client has left.")
        self._part, self._over = part, not has_more
        self._accepted.clear()
        self._put.set()
        if has_more:
            await self._accepted.wait()

    async def await_response(self, work: Awaitable[None]) -> HttpResponseBase:
        """Start the call; return its response when that has begun, or is whole.

        Cancelling this, or closing the stream, tells the call that the client has left.
        """
        task = asyncio.ensure_future(work)
        # The loop holds tasks only weakly: this reference keeps the task alive.
        _running.add(task)
        task.add_done_callback(_running.discard)
        task.add_done_callback(self._end_stream)
        try:
            await asyncio.wait([task, self._begun], return_when=asyncio.FIRST_COMPLETED)
            if self._streams:
                return _create_response(
                    StreamingHttpResponse, Parts(self), self._status, self._headers
                )
            await asyncio.shield(task)
        except asyncio.CancelledError:
            self.disconnect()
            raise
        content = self._part or b""
        return _create_response(HttpResponse, content, self._status, self._headers)

    def _end_stream(self, _: asyncio.Future[None]) -> None:
        self._over = True
        self._put.set()

    def disconnect(self) -> None:
        self._has_left.set()
        self._accepted.set()

    async def stream_parts(self) -> AsyncGenerator[bytes]:
        """Yield the parts; closing this ends the connection."""
        try:
            while not self._over or self._part is not None:
                await self._put.wait()
                part, self._part = self._part, None
                self._put.clear()
                self._accepted.set()
                if part:
                    yield part
        finally:
            self.disconnect()


class Parts:
    """The parts of a stream for a response, which may never be read.

    A site's middleware may fail, or answer something else: if the response is closed
    or garbage collected, the client has left.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._parts = call.stream_parts()

    def __aiter__(self) -> Parts:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._parts)

    def close(self) -> None:
        """Tell the call, from any thread."""
        # A loop that is closed has nothing left to end.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._call.disconnect)

    __del__ = close


class Whole:
    """The `receive` and `send` of an ASGI call whose answer is one document.

    The body is complete, and a disconnect is never received.
    """

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._status = 0
        self._headers: RawHeaders = []
        self._parts: list[bytes] = []

    async def receive(self) -> Message:
        if self._body is None:
            await asyncio.get_running_loop().create_future()
        body, self._body = self._body or b"", None
        return {"type": "http.request", "body": body}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], message["headers"]
        else:
            self._parts.append(message.get("body", b""))

    def take_answer(self, start: Message, body: bytes) -> None:
        self._status, self._headers = start["status"], start["headers"]
        self._parts.append(body)

    def respond_to_wsgi(self, start_response: Callable[..., Any]) -> Iterable[bytes]:
        status = HTTPStatus(self._status)
        headers = [
            (_decode_name(name), value.decode("latin-1"))
            for name, value in self._headers
        ]
        start_response(f"{status.value} {status.phrase}", headers)
        return self._parts

    def django_response(self) -> HttpResponse:
        content = b"".join(self._parts)
        return _create_response(HttpResponse, content, self._status, self._headers)


def _create_response(
    kind: type[Response], content: Any, status: int, headers: RawHeaders
) -> Response:
    """Make a response with exactly these headers, whose names are in lower case."""
    values: dict[str, str] = {}
    for name, value in headers:
        key, text = _decode_name(name), value.decode("latin-1")
        if key == "connection":
            # Under WSGI only the server may set this header (PEP 3333).
            continue
        values[key] = f"{values[key]}, {text}" if key in values else text
    response = kind(content, status=status, headers=values)
    if "content-type" not in values:
        del response.headers["Content-Type"]
    return response


@lru_cache(maxsize=64)
def _decode_name(name: bytes) -> str:
    return name.decode("latin-1")


def read_pieces(stream: Any) -> Iterator[bytes]:
    """Yield a request's body in pieces, whatever the site's own limit is."""
    while piece := stream.read(PIECE):
        yield piece


def read_wsgi_body(request: HttpRequest) -> bytes:
    """Return the body of a request that came by WSGI, at most one byte over the limit.

    That byte tells the caller that it is too large.  Raises 411 if its length and its
    end are unknown, and 400 if it is incomplete.
    """
    try:
        return _read_declared_body(request)
    except RequestRefused:
        raise
    except Exception as error:
        # Each server has its own exceptions for a client that leaves, or errs.
        logger.info("The body of a request could not be read: %r", error)
        raise RequestRefused(400, "The body could not be read to its end.") from None


def _read_declared_body(request: HttpRequest) -> bytes:
    meta, limit = request.META, mcp_settings.limits.body
    length = meta.get("CONTENT_LENGTH") or ""
    if length.isdecimal():
        expected = min(int(length), limit + 1)
        body: bytes = request.read(expected)
        if len(body) < expected:
            words = "The body is shorter than its Content-Length says."
            raise RequestRefused(400, words)
        return body
    if "HTTP_TRANSFER_ENCODING" not in meta:
        return b""
    if not meta.get("wsgi.input_terminated"):
        words = "This server accepts no body without a Content-Length."
        raise RequestRefused(411, words)
    pieces = bytearray()
    for piece in read_pieces(meta["wsgi.input"]):
        pieces += piece
        if len(pieces) > limit:
            break
    return bytes(pieces)


def asgi_scope_of(meta: Mapping[str, Any], method: str, path: str) -> dict[str, Any]:
    """Return an ASGI scope for a request that came by WSGI (PEP 3333)."""
    headers = [
        (_header_name(key), value.encode("latin-1", "replace"))
        for key, value in meta.items()
        if key[:5] == "HTTP_" or (key in _BARE and value)
    ]
    if meta.get("SERVER_NAME") == TEST_SERVER and not meta.get("HTTP_HOST"):
        # Django's test client sends no Host (PEP 3333, "URL Reconstruction").
        host = f"{meta['SERVER_NAME']}:{meta['SERVER_PORT']}"
        headers.append((b"host", host.encode("latin-1")))
    return {
        "type": "http",
        "http_version": meta.get("SERVER_PROTOCOL", "").rpartition("/")[2],
        "method": method,
        "scheme": meta.get("wsgi.url_scheme", "http"),
        "path": path,
        "raw_path": _raw_path_of(meta),
        "query_string": meta.get("QUERY_STRING", "").encode("latin-1", "replace"),
        "headers": headers,
        "root_path": meta.get("SCRIPT_NAME", ""),
        "client": (meta.get("REMOTE_ADDR", ""), 0),
    }


def lacks_host(meta: Mapping[str, Any]) -> bool:
    """Whether a request came without a Host, and not from Django's test client."""
    return not meta.get("HTTP_HOST") and meta.get("SERVER_NAME") != TEST_SERVER


def _raw_path_of(meta: Mapping[str, Any]) -> bytes | None:
    """Return the path as it was sent, None if the server does not tell."""
    for name in ADDRESSES:
        if name in meta:
            return str(meta[name]).partition("?")[0].encode("latin-1", "replace")
    return None


# The cache is small, because clients may send many made-up headers.
@lru_cache(maxsize=256)
def _header_name(key: str) -> bytes:
    return key.removeprefix("HTTP_").replace("_", "-").lower().encode("latin-1")
