"""Public documents about servers: the card of each, and the site's list of cards.

Nothing of a request is in an answer, so any Host and Origin may ask (SEP-2127).
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from mcp_app.auth import principals
from mcp_app.auth.authenticators import token_names
from mcp_app.auth.resources import server_url
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import NO_REQUIREMENTS
from mcp_app.interface.server import CARD_PART, CATALOG_PART
from mcp_app.process.current import process
from mcp_app.protocol import cards, jsonrpc
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.asgi_types import RawHeaders
from mcp_app.transports.http.request_handler import HttpRequestHandler
from mcp_app.transports.http.responses import UNCACHED, send_empty, send_whole

CORS: Final[RawHeaders] = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET"),
    (b"access-control-allow-headers", b"Content-Type, If-None-Match"),
    (b"access-control-expose-headers", b"ETag"),
]
ALLOW: Final = (b"allow", b"GET, HEAD, OPTIONS")
CACHED: Final = (b"cache-control", b"public, max-age=300")
"""Less than the hour that SEP-2127 advises: what staff unlist must vanish soon."""


class CardHandler(HttpRequestHandler):
    """`/mcp/<slug>/server-card`: the card of a server."""

    media_type = cards.CARD_TYPE.encode()

    async def answer_request(self) -> None:
        self.cors = CORS
        try:
            self._headers = Headers(self._scope["headers"])
            if self._method not in ("GET", "HEAD"):
                status = 204 if self._method == "OPTIONS" else 405
                await send_empty(self.send, status, [ALLOW, *CORS])
                return
            self.process = current = process()
            self._charge_messages()
            await current.gate.wait_until_fresh(self._arrived)
            domain = cards.publisher_of(mcp_settings.public_url)
            await self._send_document(self._document_of(domain) if domain else None)
        except Exception as error:
            await self._answer_failure(error)

    def _document_of(self, domain: str) -> JsonObject | None:
        # A stopped server is not in `by_slug`, so it has no card.
        catalog = self.process.catalogs.by_slug.get(self._slug)
        if catalog is None:
            return None
        self._catalog, server, needs_token = catalog, catalog.server, None
        # A server that is open to everybody tells anybody what its card says.
        is_open = server.is_public and server.demands == NO_REQUIREMENTS
        if not (server.listed or is_open):
            return None
        if not token_names().isdisjoint(server.access):
            request = self._authentication_request()
            needs_token = not principals.metadata_for(server, request)
        url, implementation = server_url(self._slug), server.implementation()
        return cards.server_card(domain, self._slug, url, implementation, needs_token)

    async def _send_document(self, document: JsonObject | None) -> None:
        if document is None:
            # All servers without a card answer alike: nobody learns which exist.
            await send_empty(self.send, 404, [*UNCACHED, *CORS])
            return
        body = jsonrpc.write(document)
        tag = f'"{sha256(body).hexdigest()[:32]}"'
        headers = [(b"etag", tag.encode()), CACHED, *CORS]
        client_tags = self._headers.get(b"if-none-match", "")
        # This search is safe: a digest in quotation marks is part of no other tag.
        if client_tags == "*" or tag in client_tags:
            await send_whole(self.send, 304, b"", headers)
            return
        length = (b"content-length", b"%d" % len(body))
        headers += [(b"content-type", self.media_type), length]
        content = b"" if self._method == "HEAD" else body
        await send_whole(self.send, 200, content, headers)


class CatalogHandler(CardHandler):
    """`/.well-known/ai-catalog.json`: addresses of the cards that staff have listed."""

    media_type = cards.CATALOG_TYPE.encode()

    def _document_of(self, domain: str) -> JsonObject:
        urls = {
            slug: f"{server_url(slug)}/{CARD_PART}"
            for slug, catalog in sorted(self.process.catalogs.by_slug.items())
            if catalog.server.listed
        }
        return cards.card_catalog(domain, urls)


HANDLERS: Final = {CARD_PART: CardHandler, CATALOG_PART: CatalogHandler}
