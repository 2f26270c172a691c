"""A plain HTTP client for probes: one address, no redirects, little time and room.

Neither a proxy of the environment nor a file of passwords is asked.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

PATIENCE_S: Final = 15.0
LARGEST: Final = 64 * 1024
"""Bytes of an answer that are read."""
_PIECE: Final = 8_192
_GZIP: Final = 31
"""`wbits` of zlib for gzip."""


class Failure(StrEnum):
    """Why there is no answer, or not all of it."""

    UNREACHABLE = "unreachable"
    TLS = "tls"
    LATE = "late"
    LARGE = "large"
    CUT = "cut"
    REDIRECT = "redirect"
    """A browser says of a redirect only that it is one."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an answer; `at` is in seconds after the request was begun."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request; `status` is 0 without an answer.

    Names of headers are in lower case.  `seconds` is the time to the end.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    seconds: float = 0.0
    failure: Failure | None = None
    detail: str = ""
    clock_ms: int = 0
    """When its first byte came, by the clock of who asked; 0 if that does not count."""

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.parts)


@dataclass(frozen=True, slots=True)
class Request:
    """A POST to an address (http or https)."""

    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    method: str = "POST"
    patience: float = PATIENCE_S
    first: bool = False
    """Whether its headers are enough of an answer."""


def send(
    request: Request,
    tls: ssl.SSLContext,
    begun: Callable[[], object] = lambda: None,
) -> Reply:
    """Send a request and return what came, also if it failed; blocks.

    `begun` is called when the first piece of the answer is there.
    """
    return _Sending(request, tls, begun).reply()


class _Sending:
    def __init__(
        self, request: Request, tls: ssl.SSLContext, begun: Callable[[], object]
    ) -> None:
        self._request = request
        self._tls = tls
        self._begun = begun
        self._start = time.monotonic()
        self._socket: socket.socket | None = None
        self._late = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._parts: list[Part] = []
        self._clock_ms = 0

    def reply(self) -> Reply:
        timer = threading.Timer(self._request.patience, self._give_up)
        timer.daemon = True
        timer.start()
        failure, detail = None, ""
        try:
            self._send()
        except ssl.SSLError as error:
            failure, detail = Failure.TLS, _tls_detail(error)
        except _TooLarge:
            failure = Failure.LARGE
        except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
            failure = Failure.CUT if self._status else Failure.UNREACHABLE
            detail = _detail(error)
        finally:
            timer.cancel()
        return Reply(
            self._status,
            self._headers,
            tuple(self._parts),
            time.monotonic() - self._start,
            Failure.LATE if self._late else failure,
            detail,
            self._clock_ms,
        )

    def _give_up(self) -> None:
        """End the connection: a peer may send a byte a second for ever."""
        self._late = True
        if self._socket is not None:
            with suppress(OSError):
                # That of the class: TLS would first say goodbye.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _send(self) -> None:
        request = self._request
        parts = urlsplit(request.url)
        secure = parts.scheme == "https"
        host = parts.hostname or ""
        port = parts.port or (443 if secure else 80)
        connection = http.client.HTTPConnection(host, port)
        connection.sock = self._connected(host, port, secure=secure)
        # Without it the class would write its own, with a port that is the default.
        headers = {"Host": parts.netloc.rpartition("@")[2], **request.headers}
        headers["Connection"] = "close"
        target = parts.path or "/"
        with closing(connection), closing(connection.sock):
            # A peer may refuse a body, and answer, before it has taken all of it.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(request.method, target, request.body, headers)
            with connection.getresponse() as response:
                self._read(response)

    def _connected(self, host: str, port: int, *, secure: bool) -> socket.socket:
        self._socket = plain = self._reached(host, port)
        if self._late:
            # It was given up before it could be ended.
            plain.close()
            raise TimeoutError
        # How long it takes to find a way there says nothing of who answers.
        self._start = time.monotonic()
        if not secure:
            return plain
        try:
            wrapped = self._tls.wrap_socket(
                plain, server_hostname=host, do_handshake_on_connect=False
            )
        except BaseException:
            plain.close()
            raise
        self._socket = wrapped
        try:
            wrapped.do_handshake()
        except BaseException:
            wrapped.close()
            raise
        return wrapped

    def _reached(self, host: str, port: int) -> socket.socket:
        """Connect to the first address of a host that lets us.

        All share the patience: behind an address that is silent may be a good one.
        """
        end = self._start + self._request.patience
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failed = OSError("The host has no address.")
        for number, (family, kind, protocol, _, address) in enumerate(found):
            left = (end - time.monotonic()) / (len(found) - number)
            if left <= 0:
                raise TimeoutError
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(left)
                plain.connect(address)
            except OSError as error:
                plain.close()
                failed = error
            else:
                plain.settimeout(self._request.patience)
                return plain
        raise failed

    def _read(self, response: http.client.HTTPResponse) -> None:
        self._clock_ms = time.time_ns() // 1_000_000
        self._headers = {name.lower(): value for name, value in response.getheaders()}
        self._status = response.status
        if self._request.first:
            return
        size = 0
        for piece in self._unpacked(response):
            if not self._parts:
                self._begun()
            at = time.monotonic() - self._start
            self._parts.append(Part(at, piece.decode("utf-8", "replace")))
            size += len(piece)
            if size > LARGEST:
                raise _TooLarge
        self._begun()

    def _unpacked(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yield what came, in pieces as they came."""
        coded = self._headers.get("content-encoding", "").lower() == "gzip"
        unpacking = zlib.decompressobj(_GZIP)
        while piece := response.read1(_PIECE):
            unpacked = unpacking.decompress(piece, LARGEST + 1) if coded else piece
            if unpacked:
                yield unpacked


class _TooLarge(Exception):
    pass


def _detail(error: Exception) -> str:
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        # It repeats the header, which may be a token.
        return "A header of the request cannot be sent."
    return str(error) or type(error).__name__


def _tls_detail(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return error.reason or str(error)
