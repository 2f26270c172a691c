"""A request of Django's as an ASGI call, and what the call sends as a response.

So the endpoint is the same for whoever serves it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from mcp_app.conf import mcp_settings
from mcp_app.protocol.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from django.http import HttpRequest

    from mcp_app.transports.asgi_types import Message, RawHeaders

logger = logging.getLogger("mcp_app.transports")

Response = TypeVar("Response", bound=HttpResponseBase)

PIECE: Final = 65_536
"""Bytes of a body that are taken at once, so that one that is too large is not read."""
_BARE: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")
"""Headers that WSGI names without a prefix; empty where they are absent."""

_running: set[asyncio.Future[None]] = set()


class Call:
    """The two ways of one ASGI call; used on its loop only.

    `body` yields what the client sent, in pieces; nothing else is ever received but
    that the client has left.
    """

    def __init__(self, body: Iterator[bytes]) -> None:
        self._body: Iterator[bytes] | None = body
        self._gone = asyncio.Event()
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._headers: RawHeaders = []
        self._part: bytes | None = None
        self._taken, self._put = asyncio.Event(), asyncio.Event()
        self._over = False
        self._streams = False

    async def receive(self) -> Message:
        if self._body is not None:
            piece = next(self._body, b"")
            if not piece:
                self._body = None
            return {"type": "http.request", "body": piece, "more_body": bool(piece)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take what is sent; return when it is on its way to the client.

        Raises OSError where the client has left, as servers do.
        """
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], message["headers"]
            return
        part, more = message.get("body", b""), message.get("more_body", False)
        first = not self._begun.done()
        if first:
            self._streams = more
            self._begun.set_result(None)
        if first and not more:
            self._part, self._over = part, True
            return
        await self._hand_on(part, over=not more)

    async def _hand_on(self, part: bytes, *, over: bool) -> None:
        if self._gone.is_set():
            raise OSError("The client has left.")
        self._part, self._over = part, over
        self._taken.clear()
        self._put.set()
        if not over:
            await self._taken.wait()

    async def response(self, work: Awaitable[None]) -> HttpResponseBase:
        """Let the call begin; return its response when that has begun, or is whole.

        Who waits for it no longer has left, and so has who closes a stream.
        """
        task = asyncio.ensure_future(work)
        # The loop alone would let it go.
        _running.add(task)
        task.add_done_callback(_running.discard)
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait([task, self._begun], return_when=asyncio.FIRST_COMPLETED)
            if self._streams:
                return self._response(StreamingHttpResponse, Parts(self))
            await asyncio.shield(task)
        except asyncio.CancelledError:
            self.leave()
            raise
        return self._response(HttpResponse, self._part or b"")

    def _ended(self, _: asyncio.Future[None]) -> None:
        """Let a stream end that was given up: nothing more is sent."""
        self._over = True
        self._put.set()

    def leave(self) -> None:
        """The client has left."""
        self._gone.set()
        self._taken.set()

    async def parts(self) -> AsyncGenerator[bytes]:
        """Yield what is sent; who reads no further has left."""
        try:
            while not self._over or self._part is not None:
                await self._put.wait()
                part, self._part = self._part, None
                self._put.clear()
                self._taken.set()
                if part:
                    yield part
        finally:
            self.leave()

    def _response(
        self, kind: type[HttpResponseBase], content: object
    ) -> HttpResponseBase:
        return _response(kind, content, self._status, self._headers)


class Parts:
    """The parts of a stream for a response, which may never be read.

    A site's middleware may fail, or answer something else: a response that is closed,
    or that nobody has any more, is a client that has left.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._parts = call.parts()

    def __aiter__(self) -> Parts:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._parts)

    def close(self) -> None:
        """Let the call know, from any thread."""
        # A loop that is closed has nothing left to end.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._call.leave)

    __del__ = close


class Whole:
    """The two ways of an ASGI call whose answer is one document.

    The body is there, and nobody hears of a client that leaves.
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

    def response(self) -> HttpResponse:
        """Return what was sent."""
        content = b"".join(self._parts)
        return _response(HttpResponse, content, self._status, self._headers)


def _response(
    kind: type[Response], content: Any, status: int, headers: RawHeaders
) -> Response:
    """Make a response with exactly these headers, whose names are in lower case."""
    values: dict[str, str] = {}
    for name, value in headers:
        key, text = _shown(name), value.decode("latin-1")
        values[key] = f"{values[key]}, {text}" if key in values else text
    response = kind(content, status=status, headers=values)
    if "content-type" not in values:
        del response.headers["Content-Type"]
    return response


@lru_cache(maxsize=64)
def _shown(name: bytes) -> str:
    return name.decode("latin-1")


def pieces(stream: Any) -> Iterator[bytes]:
    """Yield what can be read of a request, whatever the site's own limit is."""
    while piece := stream.read(PIECE):
        yield piece


def body_of(request: HttpRequest) -> bytes:
    """Return the body of a request that came by WSGI, as far as it may be read.

    One byte more than is allowed says that it is too large.  Raises 411 where nobody
    says how long it is, and no end is in sight, and 400 where it is not all there.
    """
    try:
        return _body_of(request)
    except Refused:
        raise
    except Exception as error:
        # Each server has exceptions of its own for a client that leaves, or errs.
        logger.info("A body could not be read: %r", error)
        raise Refused(400, "The body could not be read to its end.") from None


def _body_of(request: HttpRequest) -> bytes:
    meta, limit = request.META, mcp_settings.limits.body
    length = meta.get("CONTENT_LENGTH") or ""
    if length.isdecimal():
        expected = min(int(length), limit + 1)
        body: bytes = request.read(expected)
        if len(body) < expected:
            raise Refused(400, "The body is shorter than its Content-Length says.")
        return body
    if "HTTP_TRANSFER_ENCODING" not in meta:
        return b""
    if not meta.get("wsgi.input_terminated"):
        raise Refused(411, "This server takes no body without a Content-Length.")
    return _up_to(limit + 1, meta["wsgi.input"])


def _up_to(most: int, stream: Any) -> bytes:
    """Read a stream that has an end; it may give less than it is asked for."""
    body = bytearray()
    for piece in pieces(stream):
        body += piece
        if len(body) >= most:
            break
    return bytes(body)


def scope_of(request: HttpRequest) -> dict[str, Any]:
    """Return an ASGI scope for a request that came by WSGI (PEP 3333)."""
    meta = request.META
    headers = [
        (_name(key), value.encode("latin-1", "replace"))
        for key, value in meta.items()
        if key[:5] == "HTTP_" or (key in _BARE and value)
    ]
    if "HTTP_HOST" not in meta:
        headers.append((b"host", _host(meta)))
    return {
        "type": "http",
        "method": request.method or "",
        "scheme": meta.get("wsgi.url_scheme", "http"),
        "path": request.path,
        "query_string": meta.get("QUERY_STRING", "").encode("latin-1", "replace"),
        "headers": headers,
        "root_path": meta.get("SCRIPT_NAME", ""),
        "client": (meta.get("REMOTE_ADDR", ""), 0),
    }


def _host(meta: dict[str, Any]) -> bytes:
    """Return what stands for a Host that was not sent (PEP 3333, "URL Reconstruction").

    It is the server's own name, and no client's: Django's test client sends none.
    """
    return f"{meta['SERVER_NAME']}:{meta['SERVER_PORT']}".encode("latin-1")


# Whoever makes headers up may make many up: few are kept.
@lru_cache(maxsize=256)
def _name(key: str) -> bytes:
    return key.removeprefix("HTTP_").replace("_", "-").lower().encode("latin-1")
