"""A call to another site: one deadline, no redirects, no proxies, bounded answers."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
import traceback
import zlib
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from mcp_app.egress import resolving
from mcp_app.egress.requests import (
    Secrets,
    SiteAnswer,
    SiteRequest,
    headers_of,
    secrets_for,
    target_of,
)
from mcp_app.egress.sites import Site
from mcp_app.interface.errors import with_remedy
from mcp_app.interface.principal import AccessRequest

if TYPE_CHECKING:
    from httpcore2 import AsyncConnectionPool, Response


# -- bodies ----------------------------------------------------------------------------
# Bodies of answers: decompressed and counted while they arrive, up to a limit.

_GZIP: Final = zlib.MAX_WBITS | 16
"""With 16 added to the window bits, zlib expects the header of gzip."""
_DEFLATE: Final = 8
_PIECE: Final = 256 * 1024
"""How many bytes are decompressed at once."""


REST_S: Final = 0.1
"""If a stream ends within this time after its answer, its connection is kept."""


async def read_body(pieces: AsyncIterable[bytes]) -> bytes:
    """Return the pieces of a body as one."""
    body = bytearray()
    async for piece in pieces:
        body += piece
    return bytes(body)


async def read_stream(
    pieces: AsyncIterable[bytes], has_answer: Callable[[bytes], bool]
) -> None:
    """Pass the pieces of an event stream to `has_answer` until it returns True."""
    pieces = aiter(pieces)
    async for piece in pieces:
        if has_answer(piece):
            break
    # The answer has arrived, so errors after it do not count.
    with suppress(Exception):
        async with asyncio.timeout(REST_S):
            async for _piece in pieces:
                pass


async def decoded_pieces(
    chunks: AsyncIterable[bytes], encoding: str, max_bytes: int
) -> AsyncIterator[bytes]:
    """Yield the pieces of a body; raise `TooLarge` (over `max_bytes`) or `Unreadable`.

    `encoding` is the answer's Content-Encoding: "", identity, gzip or deflate (RFC
    9110, section 8.4.1).
    """
    coding = encoding.strip().lower()
    if coding not in _WINDOWS:
        message = f"The answer has the Content-Encoding {coding[:40]!r}."
        raise resolving.Unreadable(message, submitted=True)
    decoder, coded_size, size = _Decoder(_WINDOWS[coding]), 0, 0
    async for chunk in _chunks_with_end(chunks):
        coded_size += len(chunk)
        if coded_size > max_bytes:
            raise _too_large(max_bytes)
        for piece in decoder.decode_chunk(chunk):
            size += len(piece)
            if size > max_bytes:
                raise _too_large(max_bytes)
            yield piece


async def _chunks_with_end(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        if chunk:
            yield chunk
    yield b""


def _too_large(max_bytes: int) -> resolving.TooLarge:
    return resolving.TooLarge(
        f"The answer is larger than {max_bytes:,} bytes.", submitted=True
    )


class _Decoder:
    """Decompresses piece by piece, so that a small body never fills the memory."""

    def __init__(self, window_bits: int | None) -> None:
        self._window_bits = window_bits
        self._inflate = zlib.decompressobj()
        self._began = False

    def decode_chunk(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decompressed pieces of a chunk; an empty chunk is the end."""
        if self._window_bits is None:
            yield chunk
            return
        try:
            yield from self._inflate_pieces(chunk) if chunk else self._inflate_rest()
        except zlib.error:
            message = "The answer is broken: it cannot be decompressed."
            raise resolving.Unreadable(message, submitted=True) from None

    def _inflate_pieces(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if not self._began:
                window_bits = self._window_bits or _deflate_window(chunk)
                self._inflate = zlib.decompressobj(window_bits)
                self._began = True
            elif self._inflate.eof:
                # A gzip file may have several members (RFC 1952, section 2.2), and may
                # end with bytes of zero.
                chunk = chunk.lstrip(b"\0")
                # What is left begins a new member; without it, this one stays.
                self._began = not chunk
                continue
            yield self._inflate.decompress(chunk, _PIECE)
            chunk = self._inflate.unconsumed_tail or self._inflate.unused_data

    def _inflate_rest(self) -> Iterator[bytes]:
        if self._began and not self._inflate.eof:
            yield self._inflate.flush()
            if not self._inflate.eof:
                raise zlib.error("It was cut off.")


def _deflate_window(chunk: bytes) -> int:
    # RFC 9110 asks for the zlib wrapper, whose first byte ends with 8 (RFC 1950,
    # section 2.2); some servers send none.
    return zlib.MAX_WBITS if chunk[0] & 0x0F == _DEFLATE else -zlib.MAX_WBITS


_WINDOWS: Final[Mapping[str, int | None]] = {
    **{"": None, "identity": None},
    **{"gzip": _GZIP, "x-gzip": _GZIP, "deflate": 0},
}
"""The window bits by coding: None for no compression, 0 to look at the first byte."""


# -- client ----------------------------------------------------------------------------

logger = logging.getLogger("mcp_app.egress")

_CONNECTED: Final = "connection.connect_tcp.started"
_SENDING: Final = "http11.send_request_headers.started"
"""Events that httpcore2 reports to `_Progress`."""


class SiteSpans(Protocol):
    """Records calls to other sites, and knows the current trace."""

    def record_site_call(
        self, site: Site, request: SiteRequest, *, is_delivery: bool
    ) -> AbstractContextManager[Callable[[int], None] | None]:
        """Record a call; the block gets a function that takes the answer's status."""

    def outgoing_headers(self) -> list[tuple[str, str]]:
        """Return the headers that carry the current trace."""


class Connections:
    """The connections of one loop to all sites, with one pool for each site."""

    tracing: SiteSpans | None = None

    def __init__(self, lookup: resolving.Lookup = resolving.system_lookup) -> None:
        self._resolver = resolving.Resolver(lookup)
        self._pools: dict[Site, AsyncConnectionPool] = {}

    async def call_site(
        self,
        site: Site,
        request: SiteRequest,
        access_request: AccessRequest,
        *,
        is_delivery: bool = False,
    ) -> SiteAnswer:
        """Send a request with the site's secrets, and return the whole answer.

        Raises `EgressError`, whose traceback shows no secret.  A delivery may have a
        span without a call around it.
        """
        if self.tracing is None:
            return await self._call_and_log(site, request, access_request)
        recorder = self.tracing.record_site_call(site, request, is_delivery=is_delivery)
        with recorder as note_status:
            answer = await self._call_and_log(site, request, access_request)
            if note_status is not None:
                note_status(answer.status)
        return answer

    async def _call_and_log(
        self, site: Site, request: SiteRequest, access_request: AccessRequest
    ) -> SiteAnswer:
        progress = _Progress()
        try:
            answer = await self._call_in_time(site, request, access_request, progress)
        except resolving.EgressError as error:
            # The message may have text of the other site.
            error.message = progress.secrets.blot(error.message)
            error.args = (error.message,)
            outcome = f"{type(error).__name__}: {error.message}"
            _log_call(site, request, progress, outcome)
            # Frames hold the site's secrets, and error pages show variables.
            raise error.with_traceback(None) from None
        except Exception as error:
            trace = progress.secrets.blot(traceback.format_exc())
            logger.error("A call of the site %s failed.\n%s", site.key, trace)
            message = f"The call failed: {type(error).__name__}."
            raise resolving.Unreachable(message, submitted=progress.submitted) from None
        outcome = f"{answer.status}, {len(answer.body)} bytes"
        _log_call(site, request, progress, outcome)
        return answer

    async def forget_site(self, site: Site) -> None:
        """Close the connections to a site."""
        if (pool := self._pools.pop(site, None)) is not None:
            await pool.aclose()

    async def close(self) -> None:
        """Close all connections."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    async def _call_in_time(
        self,
        site: Site,
        request: SiteRequest,
        access_request: AccessRequest,
        progress: _Progress,
    ) -> SiteAnswer:
        try:
            async with asyncio.timeout(site.timeout):
                secrets = progress.secrets = await secrets_for(site, access_request)
                target = target_of(site, request, secrets)
                headers = headers_of(site, request, secrets)
                if site.trace and self.tracing is not None:
                    headers += self.tracing.outgoing_headers()
                send = partial(
                    self._send_request, site, request, target, headers, progress
                )
                return await _send_with_retry(send, request, progress)
        except TimeoutError:
            message = f"The call took longer than {site.timeout:g} s."
            raise resolving.TooSlow(message, submitted=progress.submitted) from None

    async def _send_request(
        self,
        site: Site,
        request: SiteRequest,
        target: str,
        headers: list[tuple[str, str]],
        progress: _Progress,
    ) -> SiteAnswer:
        try:
            import httpcore2  # noqa: PLC0415 - an extra

            from mcp_app.egress import backend  # noqa: PLC0415 - an extra
        except ImportError as error:
            message = "Calls of other sites need a package that is not installed"
            raise resolving.Unreachable(with_remedy(message, error)) from error
        if site not in self._pools:
            self._pools[site] = backend.connection_pool_for(site, self._resolver)
        url = httpcore2.URL(
            scheme=site.scheme, host=site.host, port=site.port, target=target
        )
        try:
            async with self._pools[site].stream(
                request.method,
                url,
                headers=headers,
                content=request.body,
                extensions={
                    "timeout": {"connect": backend.CONNECT_S},
                    "trace": progress.trace_event,
                },
            ) as answer:
                progress.answered = True
                with _with_status(answer.status):
                    return await _read_answer(answer, site, request, progress)
        except httpcore2.ProtocolError as error:
            # The error text may repeat received bytes as a repr; `blot` would not find
            # an escaped secret in it.
            failure = resolving.Unreachable(type(error).__name__)
        except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
            failure = resolving.Unreachable(f"{type(error).__name__}: {error}")
            slow = isinstance(error, httpcore2.TimeoutException)
            tls = any(isinstance(arg, ssl.SSLError) for arg in error.args)
            failure.why = "slow" if slow else "tls" if tls else ""
        failure.sent = progress.submitted
        raise failure


async def _read_answer(
    answer: Response, site: Site, request: SiteRequest, progress: _Progress
) -> SiteAnswer:
    headers = _first_of_each(answer.headers)
    secrets = progress.secrets
    encoding = secrets.blot(headers.get("content-encoding", ""))
    pieces = decoded_pieces(answer.aiter_stream(), encoding, site.answer)
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.reader is not None and media_type == "text/event-stream":
        await read_stream(pieces, partial(request.reader, secrets=secrets))
        body = b""
    else:
        body = await read_body(pieces)
    took = time.monotonic() - progress.began
    return SiteAnswer(
        status=answer.status, headers=headers, body=body, took=took, secrets=secrets
    )


@contextmanager
def _with_status(status: int) -> Iterator[None]:
    try:
        yield
    except resolving.EgressError as error:
        error.status = status
        raise


@dataclass(slots=True)
class _Progress:
    """How far a call has come, and its secrets."""

    began: float = field(default_factory=time.monotonic)
    secrets: Secrets = field(default_factory=lambda: Secrets({}, {}))
    connected: bool = False
    """Whether it opened a new connection."""
    submitted: bool = False
    answered: bool = False

    async def trace_event(self, event: str, _info: Mapping[str, Any]) -> None:
        """Take an event of httpcore2."""
        if event == _CONNECTED:
            self.connected = True
        elif event == _SENDING:
            self.submitted = True


async def _send_with_retry(
    send: Callable[[], Awaitable[SiteAnswer]], request: SiteRequest, progress: _Progress
) -> SiteAnswer:
    """Send a request; send it again if a kept connection turns out to be closed."""
    try:
        return await send()
    except resolving.Unreachable:
        if not request.idempotent or progress.connected or progress.answered:
            raise
    return await send()


def _first_of_each(headers: list[tuple[bytes, bytes]]) -> Mapping[str, str]:
    by_name: dict[str, str] = {}
    for name, value in headers:
        by_name.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return by_name


def _log_call(
    site: Site, request: SiteRequest, progress: _Progress, outcome: str
) -> None:
    call_name = f"{request.method} {request.log_path} of the site {site.key}"
    took_ms = (time.monotonic() - progress.began) * 1_000
    logger.info("%s: %s, %.0f ms.", call_name, outcome, took_ms)


async def call_once(
    site: Site,
    request: SiteRequest,
    access_request: AccessRequest,
    lookup: resolving.Lookup = resolving.system_lookup,
) -> SiteAnswer:
    """Send a request over its own connections, and close them."""
    client = Connections(lookup)
    try:
        return await client.call_site(site, request, access_request)
    finally:
        await client.close()


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = (
    WeakKeyDictionary()
)


def connections() -> Connections:
    """Return the connections of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loops:
        _of_loops[loop] = Connections()
    return _of_loops[loop]


async def close_connections() -> None:
    """Close the connections of the running loop, if it made any."""
    if (client := _of_loops.pop(asyncio.get_running_loop(), None)) is not None:
        await client.close()
