"""Tests of `mcp_app/auth/caches.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import product
from typing import Any, Final

import pytest

from mcp_app.auth import caches
from mcp_app.auth.caches import MAX_AGE_S, AuthenticationCache, authentication_cache
from mcp_app.interface.principal import AuthenticationRequest, Principal
from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.protocol.headers import Headers
from tests.asgi_client import Client
from tests.auth import callables
from tests.published import published
from tests.wire.middleware import WireCheck

# -- result cache ----------------------------------------------------------------------


COUNTING: Final = "tests.auth.callables.counting"
PATHS: Final = ("/mcp/kept", "/mcp/asked")


@pytest.fixture
def mcp() -> dict[str, Any]:
    kept = {"path": COUNTING, "cache": "header"}
    return {"AUTHENTICATION": {"kept": kept, "asked": COUNTING}}


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    authentication_cache.forget_all()
    callables.answers.clear()
    yield
    authentication_cache.forget_all()


@pytest.fixture(autouse=True)
async def servers(served_rows: None) -> AsyncIterator[None]:
    rows = [
        Server(slug=slug, access=access, page_size=1000)
        for slug, access in (("kept", "kept"), ("asked", "asked"), ("other", "kept"))
    ]
    for row in rows:
        await writer.run(published, row)
    yield
    for row in rows:
        await writer.run(row.delete)


async def status(application: WireCheck, path: str, shown: str | None) -> int:
    client = Client(application, path=path, headers={"authorization": shown})
    return (await client.request("tools/list")).status


async def test_it_is_asked_once_where_the_entry_says_so(application: WireCheck) -> None:
    for path, times in zip(PATHS, (1, 3), strict=True):
        callables.answers.clear()
        for _ in range(3):
            assert await status(application, path, "ana") == 200
        assert callables.answers == ["ana"] * times


async def test_other_headers_and_servers_are_asked(
    application: WireCheck,
) -> None:
    for shown in ("ana", "Ana", "ana"):
        await status(application, "/mcp/kept", shown)
    await status(application, "/mcp/other", "ana")
    assert callables.answers == ["ana", "Ana", "ana"]


async def test_an_answer_is_kept_for_one_way_in_one_server_and_one_host() -> None:
    keeps = AuthenticationCache()
    for asked, (name, server, host, shown) in product(
        (True, False), product(("a", "b"), repeat=4)
    ):
        who = Principal(kind="badge", user_name=f"{name} {server} {host} {shown}")
        request = AuthenticationRequest(
            headers=Headers([(b"authorization", shown.encode())]),
            host=host,
            path="/mcp",
            server=server,
            method="POST",
        )
        times: list[Principal] = []

        async def ask(
            who: Principal = who, times: list[Principal] = times
        ) -> Principal:
            times.append(who)
            return who

        assert await keeps.find_or_authenticate(name, request, ask) == who
        assert times == [who] * asked
    assert len(keeps) == 16


@pytest.mark.parametrize("shown", [None, "nobody"])
async def test_refusals_are_not_kept(application: WireCheck, shown: str | None) -> None:
    for _ in range(2):
        assert await status(application, "/mcp/kept", shown) == 401
    assert len(callables.answers) == 2
    assert len(authentication_cache) == 0


async def test_no_secret_is_kept(application: WireCheck) -> None:
    await status(application, "/mcp/kept", "a secret of the site")
    (key,) = authentication_cache._entries
    assert len(key) == 32
    assert b"secret" not in key


async def test_it_grows_old(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await status(application, "/mcp/kept", "ana") == 200
    assert MAX_AGE_S <= 30
    monkeypatch.setattr(caches, "MAX_AGE_S", 0.0)
    assert await status(application, "/mcp/kept", "ana") == 200
    assert callables.answers == ["ana", "ana"]


async def test_there_are_not_more_than_may_be(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "MAX_ENTRIES", 3)
    for number in range(10):
        assert await status(application, "/mcp/kept", str(number)) == 200
        assert len(authentication_cache) <= 3


async def test_what_is_asked_while_rights_change_is_not_kept(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(callables, "PAUSE", (entered, go))
    asked = asyncio.ensure_future(status(application, "/mcp/kept", "ana"))
    await entered.wait()
    authentication_cache.forget_all()
    go.set()
    assert await asked == 200
    assert len(authentication_cache) == 0
