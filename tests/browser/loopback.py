"""A program that signs in: on a port of loopback it gets what the browser brings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests.drill.ports import HOST
from tests.oauth.program import VERIFIER, challenge_of

BACK: Final = "/back"
STATE: Final = "a state & more"
THANKS: Final = "You can close this window."


@dataclass(frozen=True, slots=True)
class Back:
    redirect: str
    brought: Queue[dict[str, str]]

    def gets(self) -> dict[str, str]:
        return self.brought.get(timeout=60.0)

    def got_nothing(self) -> bool:
        try:
            self.brought.get_nowait()
        except Empty:
            return True
        return False


@dataclass
class Loopback:
    """A program on this computer, at a site; `resource` is the server that it wants."""

    site: str
    resource: str
    back: Back
    client_id: str = ""

    def address(self, name: str, redirect: str = "") -> str:
        """Register a program of this name; return the page that it opens.

        Its answer comes here, unless another redirect is given.
        """
        redirect = redirect or self.back.redirect
        answer = httpx.post(
            f"{self.site}/mcp-oauth/register",
            json={"client_name": name, "redirect_uris": [redirect]},
        )
        assert answer.status_code == 201, answer.text
        self.client_id = answer.json()["client_id"]
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect,
            "state": STATE,
            "scope": "mcp:read mcp:change",
            "resource": self.resource,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
        }
        return f"{self.site}/mcp-oauth/authorize?{urlencode(query)}"

    def exchange(self, code: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": code,
            "redirect_uri": self.back.redirect,
            "code_verifier": VERIFIER,
        }
        answer = httpx.post(f"{self.site}/mcp-oauth/token", data=form)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@contextmanager
def loopback(site: str, slug: str) -> Iterator[Loopback]:
    with listening() as back:
        yield Loopback(site, f"{site}/mcp/{slug}", back)


@contextmanager
def listening() -> Iterator[Back]:
    brought: Queue[dict[str, str]] = Queue()

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            where = urlsplit(self.path)
            if where.path == BACK:
                query = parse_qs(where.query, strict_parsing=True)
                brought.put({name: value for name, [value] in query.items()})
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(THANKS.encode())

        def log_message(self, format: str, *values: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((HOST, 0), Listener)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Back(f"http://{HOST}:{server.server_port}{BACK}", brought)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
