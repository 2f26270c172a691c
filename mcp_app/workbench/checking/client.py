"""A plain HTTP client for probes: no redirects, and limits on time and size.

It uses no proxy of the environment, and no file of passwords.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final
from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from mcp_app.account import token_issuance
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models import AccessToken, Server
from mcp_app.models.tokens import Secret
from mcp_app.protocol.headers import is_loopback_host
from mcp_app.transports.http.host_and_origin import DEBUG_HOSTS

# -- address ---------------------------------------------------------------------------
# Addresses that can be looked at, and those that belong to the site.

MAX_ADDRESS_LENGTH: Final = 1_000
"""Characters of an address."""


def address_problem(url: str) -> str:
    """Return what is wrong with an address, as a sentence; "" if nothing is."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"{error}."
    if len(url) > MAX_ADDRESS_LENGTH:
        return f"it is longer than {MAX_ADDRESS_LENGTH} characters."
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "it must begin with https:// or http://, and name a host."
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it may have only characters of ASCII, and no spaces."
    # A final “?” or “#” is wrong, too: a slash may be added to the address.
    if parts.username is not None or "?" in url or "#" in url:
        return "it must have no user name, no question mark and no #."
    return "the port 0 is none." if port == 0 else ""


def leads_back(url: str, location: str) -> bool:
    """Whether a redirect leads back; a proxy may have lost the port with the Host."""
    try:
        origin, target = urlsplit(url), urlsplit(urljoin(url, location))
        usual = 443 if origin.scheme == "https" else 80
        is_port = target.port is None or target.port == (origin.port or usual)
    except ValueError:
        return False
    is_host = (origin.scheme, origin.hostname) == (target.scheme, target.hostname)
    # From index 2 on come path, query and fragment.
    return is_host and is_port and origin[2:] == target[2:]


def better_address(url: str, location: str) -> str:
    """Return the address of the same server to which a redirect leads, or "".

    A redirect to another path, such as a login's, or to http gives "".
    """
    try:
        target = urljoin(url, location)
        one, other = urlsplit(url), urlsplit(target)
    except ValueError:
        return ""
    is_path = one.path.rstrip("/") == other.path.rstrip("/")
    is_worse = (one.scheme, other.scheme) == ("https", "http")
    return "" if is_worse or not is_path or address_problem(target) else target


def public_line(url: str, slug: str) -> str:
    """Return the setting by which a server has an address, "" if none does."""
    base = url.rstrip("/")
    # All servers but the default one have their slug at the end.
    if slug != DEFAULT_SLUG:
        base, _, end = base.rpartition("/")
        if end != slug:
            return ""
    return f'MCP["PUBLIC_URL"] = {json.dumps(base)}'


# -- credentials -----------------------------------------------------------------------
# Whom `mcp_check` calls as, and where a token may be sent.
#
# If a wrong address gets a token, the token is lost.  If it is sent without TLS,
# everybody can read it.

GOOD_FOR: Final = timedelta(minutes=5)
"""How long a token for a check is good, if nothing ends it before."""
NAME: Final = "mcp_check"


def why_no_token(url: str, *, issued_here: bool) -> str:
    """Return why no token may be sent to an address, as a sentence; "" if one may.

    A token that is made here may go only to a host that the site names itself.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" and not is_loopback_host(host):
        return _("The address is http, so no token is sent to it.")
    if issued_here and not _is_site_host(parts.netloc):
        message = _(
            "The site does not name the host “%(host)s” itself (PUBLIC_URL, HOSTS,"
            " ALLOWED_HOSTS), so no token of a user is sent to it."
        )
        return message % {"host": visible(host)}
    return ""


def _is_site_host(netloc: str) -> bool:
    public = urlsplit(mcp_settings.public_url or "").hostname
    hosts = [*(mcp_settings.hosts or ()), *settings.ALLOWED_HOSTS]
    if settings.DEBUG and not settings.ALLOWED_HOSTS:
        # Under DEBUG, Django itself allows these hosts.
        hosts += DEBUG_HOSTS
    if public is not None:
        hosts.append(f"[{public}]" if ":" in public else public)
    domain = split_domain_port(netloc.lower())[0]
    return validate_host(domain, [host for host in hosts if host != "*"])


@contextmanager
@sensitive_variables("token")
def token_for(user: AbstractBaseUser, server: Server) -> Iterator[Secret]:
    """Make a user's token that may read at one server, and end it afterwards."""
    row, token = token_issuance.issue_token(
        None,
        user=user,
        name=NAME,
        may=AccessToken.May.READ,
        expires=timezone.now() + GOOD_FOR,
        servers=[server],
    )
    try:
        yield token
    finally:
        token_issuance.end_token(None, row)


# -- client ----------------------------------------------------------------------------

PATIENCE_S: Final = 15.0
"""How long a request may take."""
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
    """A browser reports that it was redirected, but not where to."""


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
    """When its first byte came, by the caller's clock; 0 if it must not be compared."""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Request:
    """A POST to an address (http or https)."""

    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    method: str = "POST"
    patience: float = PATIENCE_S
    first: bool = False
    """Whether the answer's headers are enough."""


def send_request(
    request: Request,
    tls: ssl.SSLContext,
    begun: Callable[[], object] = lambda: None,
) -> Reply:
    """Send a request and return what came, also if it failed; blocks.

    `begun` is called when the first piece of the answer is there.
    """
    return _Sending(request, tls, begun).collect_reply()


@dataclass(slots=True)
class _Sending:
    """One request that is sent, and what has come of it so far."""

    _request: Request
    _tls: ssl.SSLContext
    _begun: Callable[[], object]
    _start: float = field(default_factory=time.monotonic)
    _socket: socket.socket | None = None
    _late: bool = False
    _status: int = 0
    _headers: dict[str, str] = field(default_factory=dict)
    _parts: list[Part] = field(default_factory=list)
    _clock_ms: int = 0

    def collect_reply(self) -> Reply:
        timer = threading.Timer(self._request.patience, self._abort_connection)
        timer.daemon = True
        timer.start()
        failure, detail = None, ""
        try:
            self._perform_exchange()
        except ssl.SSLError as error:
            failure = Failure.TLS
            detail = getattr(error, "verify_message", error.reason) or str(error)
        except _TooLarge:
            failure = Failure.LARGE
        except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
            failure = Failure.CUT if self._status else Failure.UNREACHABLE
            detail = str(error) or type(error).__name__
            if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
                # Its message repeats the header, which may be a token.
                detail = "A header of the request cannot be sent."
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

    def _abort_connection(self) -> None:
        """End the connection, because a peer may send a byte a second for ever."""
        self._late = True
        if self._socket is not None:
            with suppress(OSError):
                # The base class's method is called: TLS would first say goodbye.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _perform_exchange(self) -> None:
        request = self._request
        parts = urlsplit(request.url)
        secure = parts.scheme == "https"
        host = parts.hostname or ""
        port = parts.port or (443 if secure else 80)
        connection = http.client.HTTPConnection(host, port)
        connection.sock = self._open_connection(host, port, secure=secure)
        # Without this header the class would write one with the default port in it.
        headers = {"Host": parts.netloc.rpartition("@")[2], **request.headers}
        headers["Connection"] = "close"
        target = parts.path or "/"
        with closing(connection), closing(connection.sock):
            # A peer may refuse a body, and answer, before it has taken all of it.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(request.method, target, request.body, headers)
            with connection.getresponse() as response:
                self._read_response(response)

    def _open_connection(self, host: str, port: int, *, secure: bool) -> socket.socket:
        self._socket = plain = self._connect_any_address(host, port)
        if self._late:
            # Time was up while no socket was there that could be shut down.
            plain.close()
            raise TimeoutError
        # The time to connect says nothing about the server.
        self._start = time.monotonic()
        if not secure:
            return plain
        try:
            self._socket = plain = wrapped = self._tls.wrap_socket(
                plain, server_hostname=host, do_handshake_on_connect=False
            )
            wrapped.do_handshake()
        except BaseException:
            plain.close()
            raise
        return wrapped

    def _connect_any_address(self, host: str, port: int) -> socket.socket:
        """Connect to the first address of a host that accepts a connection.

        All share the patience: after a silent address there may be a good one.
        """
        end = self._start + self._request.patience
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failed = OSError("The host has no address.")
        for number, (family, kind, protocol, _name, address) in enumerate(addresses):
            seconds = (end - time.monotonic()) / (len(addresses) - number)
            if seconds <= 0:
                raise TimeoutError
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(seconds)
                plain.connect(address)
            except OSError as error:
                plain.close()
                failed = error
            else:
                plain.settimeout(self._request.patience)
                return plain
        raise failed

    def _read_response(self, response: http.client.HTTPResponse) -> None:
        self._clock_ms = time.time_ns() // 1_000_000
        self._headers = {name.lower(): value for name, value in response.getheaders()}
        self._status = response.status
        if self._request.first:
            return
        size = 0
        for piece in self._decoded_pieces(response):
            if not self._parts:
                self._begun()
            at = time.monotonic() - self._start
            self._parts.append(Part(at, piece.decode("utf-8", "replace")))
            size += len(piece)
            if size > LARGEST:
                raise _TooLarge
        self._begun()

    def _decoded_pieces(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        coded = self._headers.get("content-encoding", "").lower() == "gzip"
        unpacking = zlib.decompressobj(_GZIP)
        while piece := response.read1(_PIECE):
            # One byte above the limit is enough to see that the answer is too large.
            unpacked = unpacking.decompress(piece, LARGEST + 1) if coded else piece
            if unpacked:
                yield unpacked


class _TooLarge(Exception):
    pass
