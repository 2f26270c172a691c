"""Where programs learn who issues tokens for a server, and how (RFC 9728, RFC 8414)."""

from __future__ import annotations

import math
import threading
import time
from typing import Final

from django.http import Http404, HttpRequest
from django.urls import reverse

from mcp_app.account.presentation import open_servers
from mcp_app.auth.authenticators import authenticators_of, issuers_of
from mcp_app.auth.oauth_settings import oauth_settings
from mcp_app.auth.resources import server_url, slug_of
from mcp_app.interface.extras import is_installed
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.oauth.endpoints import for_programs, issuer_of, origin_of
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.metadata import resource_metadata, server_metadata

MAX_AGE: Final = "max-age=300"
SERVERS_MAX_AGE_S: Final = 1.0
ENDPOINTS: Final = ("authorize", "token", "register", "revoke")


class OpenServers:
    """Who may come into each server, read once a second; callable from any thread.

    Anybody may ask for metadata, as often as they like: that must not take a database
    connection each time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._access: dict[str, tuple[str, ...]] = {}
        self._read_at = -math.inf

    def access_of(self, slug: str | None) -> tuple[str, ...]:
        """Return the names of the ways in of a server, none if there is no such."""
        with self._lock:
            if time.monotonic() - self._read_at > SERVERS_MAX_AGE_S:
                self._access = {each.slug: each.access_names for each in open_servers()}
                self._read_at = time.monotonic()
            return self._access.get(slug or "", ())


servers: Final = OpenServers()


@for_programs("GET", MAX_AGE, from_memory=True)
def resource(request: HttpRequest, path: str = "") -> JsonObject:
    """Say who issues tokens for the server at this path, the default one without.

    The path is repeated letter for letter: strict clients compare it with what they
    asked for.
    """
    origin = origin_of(request)
    if origin is None:
        raise Http404("This site has no public address.")
    url = f"{origin}{path}" if path else server_url(DEFAULT_SLUG, origin)
    ways = authenticators_of(servers.access_of(slug_of(url, origin)))
    issuers = issuers_of(ways or (), origin)
    if not issuers:
        raise Http404("No issuer has tokens for this address.")
    return resource_metadata(url, issuers)


@for_programs("GET", MAX_AGE, from_memory=True)
def server(request: HttpRequest) -> JsonObject:
    """Say how programs sign in at this site."""
    issuer, options = issuer_of(request), oauth_settings()
    endpoints = {name: f"{issuer}{reverse(f'mcp_oauth:{name}')}" for name in ENDPOINTS}
    return server_metadata(
        issuer,
        endpoints,
        documents=options.documents and is_installed("httpcore2"),
        registration=options.registration,
    )
