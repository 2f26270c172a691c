"""The authenticator of docs/oauth.md for opaque tokens, as it stands there."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qs

import pytest
from django.contrib.auth import get_user_model
from pytest_django import Settings

from mcp_app.auth.caches import authentication_cache
from mcp_app.models import Server
from mcp_app.pools.database import writer
from tests.asgi_client import Client, Outcome
from tests.published import published
from tests.wire.middleware import WireCheck

PAGE: Final = Path(__file__).parents[3] / "docs/oauth.md"
AUDIENCE: Final = "https://shop.example.com/mcp"
CREDENTIALS: Final = "Basic c2hvcDpzZWNyZXQ="


class Introspection(ThreadingHTTPServer):
    """An address that says what tokens mean (RFC 7662), to whoever may ask."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.known: dict[str, Any] = {}
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Introspection

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        token = parse_qs(self.rfile.read(length).decode())["token"][0]
        self.server.asked.append(token)
        is_let_in = self.headers["Authorization"] == CREDENTIALS
        found = self.server.known.get(token, {"active": False})
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(200 if is_let_in else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def issuer(settings: Settings) -> Iterator[Introspection]:
    with Introspection() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.005,))
        thread.start()
        settings.INTROSPECTION_URL = f"http://127.0.0.1:{server.server_port}/introspect"
        settings.INTROSPECTION_AUTHORIZATION = CREDENTIALS
        settings.INTROSPECTION_AUDIENCE = AUDIENCE
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def mcp(issuer: Introspection, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    section = PAGE.read_text("utf-8").split("## Opaque tokens")[1]
    code, settings, *_ = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    module = ModuleType("shop_introspection")
    exec(compile(code, "docs/oauth.md", "exec"), module.__dict__)  # noqa: S102
    monkeypatch.setitem(sys.modules, "shop_introspection", module)
    given: dict[str, Any] = {"env": lambda _: "c2hvcDpzZWNyZXQ="}
    exec(compile(settings, "docs/oauth.md", "exec"), given)  # noqa: S102
    assert given["INTROSPECTION_AUTHORIZATION"] == CREDENTIALS
    entry = {**given["MCP"]["AUTHENTICATION"]["opaque"]}
    assert entry["path"] == "shop.introspection.principal"
    entry["path"] = f"{module.__name__}.principal"
    return {"AUTHENTICATION": {"opaque": entry}}


@pytest.fixture(autouse=True)
async def _rows(served_rows: None) -> AsyncIterator[None]:
    server = Server(slug="opaque", access="opaque", page_size=1000)
    users: Any = get_user_model()._default_manager
    made = [
        await writer.run(lambda: users.create(username="ana")),
        await writer.run(lambda: users.create(username="ines", is_active=False)),
    ]
    await writer.run(published, server)
    authentication_cache.forget_all()
    yield
    authentication_cache.forget_all()
    for each in (server, *made):
        await writer.run(each.delete)


def meaning(**changes: Any) -> dict[str, Any]:
    return {
        "active": True,
        "sub": "ana",
        "aud": AUDIENCE,
        "exp": time.time() + 300,
        "scope": "mcp:read mcp:change",
        "client_id": "cursor",
        **changes,
    }


def client(application: WireCheck, token: str) -> Client:
    headers = {"authorization": f"Bearer {token}"}
    return Client(application, path="/mcp/opaque", headers=headers)


async def listing(application: WireCheck, token: str) -> Outcome:
    return await client(application, token).request("tools/list")


async def test_a_token_lets_in_whom_the_issuer_says(
    application: WireCheck, issuer: Introspection
) -> None:
    issuer.known["opaque-1"] = meaning()
    found = await client(application, "opaque-1").call("drill_whoami")
    assert found.result["structuredContent"]["user"] == "ana"
    # Kept by its header.
    assert (await listing(application, "opaque-1")).status == 200
    assert issuer.asked == ["opaque-1"]


async def test_what_a_token_may(application: WireCheck, issuer: Introspection) -> None:
    issuer.known["reads"] = meaning(scope="mcp:read")
    issuer.known["changes"] = meaning(scope="mcp:change")
    names = [
        {each["name"] for each in (await listing(application, token)).result["tools"]}
        for token in ("reads", "changes")
    ]
    assert "drill_ledger" in names[1] - names[0]


async def test_what_is_not_good(
    application: WireCheck, issuer: Introspection, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.known |= {
        "ended": meaning(exp=time.time() - 1),
        "endless": {**meaning(), "exp": 0},
        "for others": meaning(aud="https://shop.example.com/mcp/other"),
        "for no address": meaning(aud="account"),
        "for nobody": meaning(aud=None),
        "nobody": meaning(sub="zoe"),
        "inactive": meaning(sub="ines"),
        "no sub": meaning(sub=None),
        "not active": meaning(active="true"),
    }
    with caplog.at_level(logging.DEBUG):
        for token in (*issuer.known, "unheard-of"):
            assert (await listing(application, token)).status == 401
    assert issuer.asked[-1] == "unheard-of"
    assert "unheard-of" not in caplog.text


async def test_our_tokens_stay(application: WireCheck, issuer: Introspection) -> None:
    assert (await listing(application, "mcp_9fK2ab")).status == 401
    assert issuer.asked == []


async def test_what_is_away_is_an_outage(
    application: WireCheck, issuer: Introspection, settings: Settings
) -> None:
    issuer.known["nonsense"] = b"<html>"
    assert (await listing(application, "nonsense")).status == 503
    settings.INTROSPECTION_AUTHORIZATION = "Basic d3Jvbmc="
    assert (await listing(application, "any")).status == 503
    settings.INTROSPECTION_URL = "http://127.0.0.1:1/"
    found = await listing(application, "any")
    assert (found.status, "retry-after" in found.headers) == (503, True)
