"""T21: what is refused leaves no row and nothing in memory; closed sessions neither."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from django.apps import apps

from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import BY_TOKEN
from mcp_app.pools.database import reader
from mcp_app.process.runtime import Process
from tests.asgi_client import Client, outcome
from tests.attacks.callers import Callers, callers
from tests.attacks.matrix import ANONYMOUS, OTHER_USER, OWN, REVOKED
from tests.marks import STATEFUL_NEWEST_FIRST
from tests.serving import counted
from tests.wire.middleware import WireCheck

BODIES: Final = (
    *(b"", b"{", b"[]", b"7", b'{"jsonrpc":"2.0","id":1,"method":"nothing"}'),
    b'{"jsonrpc":"2.0","id":1,"method":"initialize"}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
)
BESIDES: Final = frozenset({"Worker", "Counter"})
"""Rows of the process itself."""


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": BY_TOKEN}


@pytest.fixture
async def who(process: Process) -> AsyncIterator[Callers]:
    async with callers() as made:
        yield made


async def rows() -> dict[str, int]:
    return await reader.run(
        lambda: {
            model.__name__: model._default_manager.count()
            for model in apps.get_app_config("mcp_app").get_models()
            if model.__name__ not in BESIDES
        }
    )


async def refuse(application: WireCheck, who: Callers, times: int) -> None:
    for number in range(times):
        for caller in (OWN, OTHER_USER, ANONYMOUS, REVOKED, "nobody"):
            headers = who.headers(caller)
            if caller == "nobody":
                headers = {"authorization": f"Bearer mcp_{number:043}"}
            path = who.path(caller)
            client = Client(application, "2025-11-25", path=path, headers=headers)
            client.session = f"{number:043}"
            for body in BODIES:
                found = await outcome(client.visit("POST", body))
                assert found.status >= 400
            for method in ("GET", "DELETE", "PUT"):
                assert (await outcome(client.visit(method))).status >= 400


async def grown(application: WireCheck, who: Callers) -> int:
    gc.collect()
    objects = len(gc.get_objects())
    await refuse(application, who, 10)
    gc.collect()
    return len(gc.get_objects()) - objects


async def grown_at_least(application: WireCheck, who: Callers) -> int:
    """Return the first growth that is small, or the least of three."""
    seen: list[int] = []
    while len(seen) < 3 and min(seen, default=300) >= 300:
        seen.append(await grown(application, who))
    return min(seen)


async def test_refusals_leave_nothing(
    application: WireCheck, who: Callers, process: Process
) -> None:
    await refuse(application, who, 1)
    before = await rows()
    kept = len(token_cache)
    # 550 refusals; what the interpreter keeps for a while differs from time to time.
    assert await grown_at_least(application, who) < 300
    assert await rows() == before
    assert len(token_cache) == kept
    assert not process.running
    assert not list(process.listeners)


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_sessions_that_were_closed_leave_nothing(
    application: WireCheck, who: Callers, version: str
) -> None:
    before = await counted()
    for _ in range(10):
        path, headers = who.path(OWN), who.headers(OWN)
        client = Client(application, version, path=path, headers=headers)
        await client.open()
        await client.request("resources/subscribe", {"uri": "test://static-text"})
        await client.call("drill_ledger", key="k", seconds=0)
        stream = await client.standing()
        assert (await outcome(client.visit("DELETE"))).status == 204
        await stream.body()
    left = await counted()
    assert {**left, "Ledger": 0} == {**before, "Ledger": 0}
