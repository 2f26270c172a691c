"""T17: keys of other sites stand in no page, row, bundle, log and answer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from mcp_app.egress.client import close_connections
from mcp_app.interface.principal import AccessRequest
from mcp_app.models import Tool
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.writing import everything, export_bundle
from tests.attacks.canaries import Canaries
from tests.audit.reading import kept
from tests.egress.conftest import peer
from tests.egress.peer import Peer, Received, answer
from tests.kinds.http.test_kind import served
from tests.scripting import STATELESS
from tests.serving import Connect

__all__ = ["peer", "served"]

PARTNER: Final = "canary-of-a-header-17"
QUERY: Final = "canary-of-the-query-17"
OWN: Final = "canary-of-a-function-17"
TOKEN: Final = "canary-of-the-caller-17"
FUNCTION: Final = f"{__name__}.own_headers"
PAGES: Final = ("change", "publish", "history", "who", "try")


def own_headers(request: AccessRequest) -> dict[str, str]:
    return {"X-Own": OWN}


@pytest.fixture
def mcp(peer: Peer) -> JsonObject:
    """One site with keys of the settings, one with those of a function."""
    keys = {"secret_headers": {"X-Partner": PARTNER}, "secret_query": {"key": QUERY}}
    [site] = peer.settings(**keys).values()
    [own] = peer.settings(secret_headers=FUNCTION).values()
    return {"HTTP": {"peer": site, "own": own}}


@pytest.fixture
async def show(served: Peer, connect: Connect) -> AsyncIterator[Any]:
    """Call the tool that shows what the other site answers."""

    async def show() -> Any:
        headers = {"x-user": "1", "authorization": f"Bearer {TOKEN}"}
        client = await connect(STATELESS, path="/mcp/private", headers=headers)
        params = {"name": "show", "arguments": {}}
        return await client.request("tools/call", params)

    yield show
    await close_connections()


def _repeating(status: int) -> Any:
    """Send back what came, as it is and in escapes of JSON."""

    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        texts = [request.target, *(text for _name, text in request.headers)]
        escaped = ("".join(f"\\u{ord(each):04x}" for each in text) for text in texts)
        body = json.dumps(texts)[:-1] + "".join(f', "{each}"' for each in escaped) + "]"
        writer.write(answer(body, status))

    return send


async def _reset(request: Received, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("site", ["peer", "own"])
async def test_keys_of_other_sites_stay_with_them(
    show: Any,
    served: Peer,
    process: Process,
    caplog: pytest.LogCaptureFixture,
    site: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    canaries = Canaries()
    for text in (PARTNER, QUERY, OWN, TOKEN):
        canaries.note("secret", text)
    await writer.run(_change_site, site)
    told = []
    for send in (*map(_repeating, (200, 401, 422, 500)), _reset):
        served.send = send
        told.append((await show()).raw)
    sent = "".join(f"{each.target} {each.headers}" for each in served.received)
    assert "•••".encode() in told[0]
    wanted = {"peer": (PARTNER, QUERY), "own": (OWN,)}[site]
    assert all(text in sent for text in wanted)
    assert TOKEN not in sent
    assert len(await kept(process)) == len(told)
    told += [each.encode() for each in await writer.run(lambda: [*_written()])]
    told.append(caplog.text.encode())
    assert [found for each in told for found in canaries.found("here", each)] == []


def _change_site(site: str) -> None:
    tool = Tool.objects.get(name="show")
    tool.config = json.dumps({"site": site, "path": "/shown"})
    tool.rows().publish([tool])


def _written() -> Iterator[str]:
    """Yield all rows, the bundle and the pages of the tool and of its calls."""
    for model in apps.get_models():
        yield from map(repr, model._default_manager.values())
    yield export_bundle(everything()).decode()
    user = User.objects.create_superuser("sees-all")
    try:
        client = Client()
        client.force_login(user)
        tool = Tool.objects.get(name="show")
        pages = [
            reverse(f"admin:mcp_app_tool_{name}", args=[tool.pk]) for name in PAGES
        ]
        lists = [
            reverse(f"admin:mcp_app_{name}_changelist") for name in ("tool", "call")
        ]
        for url in (*pages, *lists):
            response = client.get(url)
            assert response.status_code == 200, url
            yield response.content.decode()
        trial = client.post(reverse("admin:mcp_app_tool_try", args=[tool.pk]))
        assert trial.status_code == 200
        yield trial.content.decode()
    finally:
        user.delete()
