"""T33: that nobody can be asked who it is makes nobody a stranger: 503, never 401."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from mcp_app.auth import token_cache as token_entries
from mcp_app.auth import users
from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import BY_TOKEN
from mcp_app.process.runtime import Process
from tests.asgi_client import Client, outcome
from tests.attacks.callers import Callers, callers
from tests.attacks.matrix import OTHER_USER, OWN, REVOKED
from tests.marks import NEWEST_FIRST
from tests.serving import counted
from tests.wire.middleware import WireCheck


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": BY_TOKEN}


@pytest.fixture
async def who(process: Process) -> AsyncIterator[Callers]:
    async with callers() as made:
        yield made
    token_cache.forget_all()


@pytest.mark.parametrize("broken", [OperationalError, InterfaceError])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_an_outage_denies_nobody(
    application: WireCheck,
    process: Process,
    outside: WireCheck,
    who: Callers,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    broken: type[Exception],
) -> None:
    client = Client(application, version, path=who.path(OWN), headers=who.headers(OWN))
    await client.open()
    # Nobody looks at a session before it is known who asks.
    unknown = Client(outside, version, path=who.path(OWN))
    unknown.session = client.session
    before = await counted()

    def away(*_: object) -> Any:
        raise broken("The connection is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(token_cache._tokens, "_work", away)
        # As after a change that may have been any.
        process.generation += 1
        token_cache.forget_all()
        for caller in (OWN, OTHER_USER, REVOKED):
            headers = who.headers(caller)
            for visit in (
                unknown.begin("tools/list", headers=headers),
                unknown.visit("GET", headers=headers),
                unknown.visit("DELETE", headers=headers),
            ):
                found = await outcome(visit)
                assert found.status == 503
                assert 1 <= int(found.headers["retry-after"]) <= 60
                assert "www-authenticate" not in found.headers
    # Afterwards all is as it was: the session, and who is nobody.
    assert await counted() == before
    assert (await client.request("tools/list")).status == 200
    refused = unknown.begin("tools/list", headers=who.headers(REVOKED))
    assert (await outcome(refused)).status == 401


async def test_an_outage_hides_nothing(
    application: WireCheck, who: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights that cannot be read are none that are missing."""
    client = Client(application, path=who.path(OWN), headers=who.headers(OWN))
    assert (await client.call("secret")).text == "for few"

    def away(*_: object) -> Any:
        raise OperationalError("The connection is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(users, "active_users", away)
        patched.setattr(token_entries, "active_users", away)
        token_cache.forget_all()
        found = await client.call("secret")
        assert (found.status, found.error["code"]) == (503, -32603)
    assert (await client.call("secret")).text == "for few"
