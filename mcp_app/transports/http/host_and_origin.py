"""Checks Host and Origin of every request (DNS rebinding); answers CORS.

Decisions are cached by the pair of headers.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from mcp_app.conf import mcp_settings
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.headers import Headers, is_loopback_host
from mcp_app.transports.asgi_types import RawHeaders, Scope

logger = logging.getLogger("mcp_app.auth")

PARAMETER = "access_token"
"""A token in the address (RFC 6750, 2.3): ignored, because addresses are logged."""


def forget_token(scope: Scope, server: str) -> None:
    """Remove a query with a token, so that it is not logged; warn without its value."""
    query = scope.get("query_string", b"")
    if query and PARAMETER in parse_qs(query.decode("latin-1"), keep_blank_values=True):
        scope["query_string"] = b""
        _warn_about_token(server)


@lru_cache(maxsize=1_000)
def _warn_about_token(server: str) -> None:
    """Warn once for each server: such clients send the token with every request."""
    logger.warning(
        "A client of the server %r sends its access token in the address, which is"
        " not accepted: it must be in the Authorization header. Revoke this token,"
        " because it is now in logs of addresses.",
        server,
    )


DEBUG_HOSTS = (".localhost", "127.0.0.1", "[::1]")
MAX_CACHED = 1_024
MAX_CACHED_LENGTH = 512
"""Longer headers, likely made up, are not kept."""
ALLOWED_METHODS = b"POST, GET, DELETE, OPTIONS"
EXPOSED = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After"
REQUEST_HEADERS = frozenset(
    {
        "accept",
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
    }
)
PARAMETER_PREFIX = "mcp-param-"
PREFLIGHT_SECONDS = b"600"
NO_HOST = "The Host header is missing."
"""Said with 400 (RFC 9112, section 3.2)."""


class HostAndOriginPolicy:
    """Checks Host and Origin against the settings."""

    def __init__(self) -> None:
        self._cors_by_headers: dict[tuple[bytes | None, bytes | None], RawHeaders] = {}

    def check_headers(self, headers: Headers) -> RawHeaders:
        """Return the CORS headers for the answer; raise 400, 421 or 403."""
        key = (headers.raw.get(b"host"), headers.raw.get(b"origin"))
        cors = self._cors_by_headers.get(key)
        if cors is None:
            cors = self._check_uncached(headers.get(b"host"), headers.get(b"origin"))
            if len(self._cors_by_headers) >= MAX_CACHED:
                self._cors_by_headers.clear()
            if sum(len(each or b"") for each in key) <= MAX_CACHED_LENGTH:
                self._cors_by_headers[key] = cors
        return cors

    def clear_cache(self) -> None:
        self._cors_by_headers.clear()

    def _check_uncached(self, host: str | None, origin: str | None) -> RawHeaders:
        # granian gives an empty Host if there is none.
        if not host:
            raise RequestRefused(400, NO_HOST)
        domain, _ = split_domain_port(host)
        if not domain or not validate_host(domain, answered_hosts()):
            raise RequestRefused(
                421, f"This endpoint does not answer to the host {host!r}."
            )
        if origin is None:
            return []
        if not _origin_allowed(origin, host):
            raise RequestRefused(
                403, f"The origin {origin!r} may not call this endpoint."
            )
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", EXPOSED),
            (b"vary", b"Origin"),
        ]


def answered_hosts() -> list[str]:
    """Return the hosts to which the endpoint answers, as `ALLOWED_HOSTS` has them."""
    if mcp_settings.hosts is not None:
        return list(mcp_settings.hosts)
    if mcp_settings.public_url is not None:
        netloc = urlsplit(mcp_settings.public_url).netloc.lower()
        return [split_domain_port(netloc)[0]]
    hosts = list(settings.ALLOWED_HOSTS)
    if settings.DEBUG:
        return hosts or list(DEBUG_HOSTS)
    # "*" would let in pages of any site; the process logs it when it starts.
    return [] if "*" in hosts else hosts


def _origin_allowed(origin: str, host: str) -> bool:
    normal = _normal_origin(origin)
    if normal is None:
        return False
    if normal in _allowed_origins():
        return True
    scheme, _, netloc = normal.partition("://")
    if netloc == _normal_netloc(scheme, host):
        return True
    is_loopback = is_loopback_host(split_domain_port(netloc)[0])
    return settings.DEBUG and mcp_settings.origins is None and is_loopback


def _normal_origin(origin: str) -> str | None:
    """Return scheme, host and port in lower case; None if it is no origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    bare = f"{parts.scheme}://{parts.netloc}".lower()
    if parts.scheme not in ("http", "https") or bare != origin.lower():
        return None
    if parts.username is not None or not parts.hostname or port == 0:
        return None
    return f"{parts.scheme}://{_normal_netloc(parts.scheme, parts.netloc)}"


def _normal_netloc(scheme: str, netloc: str) -> str:
    return netloc.lower().removesuffix(":443" if scheme == "https" else ":80")


def _allowed_origins() -> set[str]:
    origins = list(mcp_settings.origins or ())
    if mcp_settings.public_url is not None:
        parts = urlsplit(mcp_settings.public_url)
        origins.append(f"{parts.scheme}://{parts.netloc}")
    return {normal for each in origins if (normal := _normal_origin(each)) is not None}


def preflight(cors: RawHeaders, requested: str | None) -> RawHeaders:
    """Return the headers that answer a preflight request of CORS.

    Only headers that clients of MCP need are allowed; all of them if `requested` has
    none of them.
    """
    if not cors:
        # Without an Origin it is no preflight.
        return []
    names = [name.strip().lower() for name in (requested or "").split(",")]
    allowed = [
        name
        for name in names
        if name in REQUEST_HEADERS or name.startswith(PARAMETER_PREFIX)
    ]
    header_names = ", ".join(allowed or sorted(REQUEST_HEADERS))
    return [
        (b"access-control-allow-methods", ALLOWED_METHODS),
        (b"access-control-allow-headers", header_names.encode("latin-1")),
        (b"access-control-max-age", PREFLIGHT_SECONDS),
    ]
