"""Who asks is kept until something changes, or until what was read is old."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from mcp_app.auth import caches
from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import BY_TOKEN
from mcp_app.models import AccessToken, Server
from mcp_app.pools.database import writer
from mcp_app.process import callers
from mcp_app.process.runtime import Process
from tests.asgi_client import Client
from tests.published import published
from tests.wire.middleware import WireCheck

SLUG = "kept"


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": BY_TOKEN}


class Known:
    """A server for a group, and a token of a user who is in it."""

    def __init__(self) -> None:
        self.server = published(Server(slug=SLUG, access="token", groups="inside"))
        self.group = Group.objects.create(name="inside")
        self.user = User.objects.create_user("cleo")
        self.user.groups.add(self.group)
        self.tokens: list[str] = []
        self.new()

    def new(self, **columns: Any) -> str:
        """Return a new token."""
        columns = {"user": self.user, "name": "a laptop", "may": "change", **columns}
        _, token = AccessToken.objects.make(**columns)
        self.tokens.append(str(token))
        return str(token)

    def erase(self) -> None:
        """Delete everything."""
        for row in (self.server, self.group, self.user):
            row.delete()


@pytest.fixture
async def known(process: Process) -> AsyncIterator[Known]:
    token_cache.forget()
    made = await writer.run(Known)
    await process.gate.look()
    yield made
    await writer.run(made.erase)
    token_cache.forget()


async def asked(application: WireCheck, token: str) -> int:
    """Let a client of this token ask; return the status."""
    headers = {"authorization": f"Bearer {token}"}
    client = Client(application, path=f"/mcp/{SLUG}", headers=headers)
    return (await client.call("drill_add", a=1, b=2)).status


def at(process: Process, token: str, now: float = 0.0) -> callers.Caller | None:
    raw = {b"authorization": f"Bearer {token}".encode()}
    return process.callers.at(SLUG, raw, now)


async def test_who_was_let_in_is_known(
    application: WireCheck, process: Process, known: Known
) -> None:
    (token,) = known.tokens
    assert at(process, token) is None
    assert await asked(application, token) == 200
    first = at(process, token)
    assert first is not None
    assert first.principal.user_name == "cleo"
    assert first.rights.met
    assert at(process, token) is first
    assert at(process, token + "x") is None
    assert process.callers.at(SLUG, {}, 0.0) is None
    assert process.callers.at("nothing", {}, 0.0) is None


async def test_no_credential_is_kept(
    application: WireCheck, process: Process, known: Known
) -> None:
    (token,) = known.tokens
    await asked(application, token)
    assert at(process, token) is not None
    assert len(process.callers) == 1
    secret = token.encode()
    for _slug, digest in process.callers._known:
        assert len(digest) == 32
        assert secret not in digest


async def test_it_is_asked_again_when_what_was_read_is_old(
    application: WireCheck, process: Process, known: Known
) -> None:
    (token,) = known.tokens
    await asked(application, token)
    first = at(process, token)
    assert first is not None
    read = [entry[0] for entry in token_cache._entries._entries.values()]
    rights = [entry[0] for entry in process.rights._entries._entries.values()]
    assert first.until == min(*read, *rights) + caches.MAX_AGE_S
    assert at(process, token, first.until - 0.001) is first
    assert at(process, token, first.until) is not first


async def test_it_is_asked_again_after_each_change(
    application: WireCheck, process: Process, known: Known
) -> None:
    (token,) = known.tokens
    await asked(application, token)
    first = at(process, token)
    await writer.run(known.user.groups.clear)
    await process.gate.look()
    assert at(process, token) is None
    assert await asked(application, token) == 403
    await writer.run(known.user.groups.add, known.group)
    await process.gate.look()
    assert await asked(application, token) == 200
    assert at(process, token) not in (None, first)


async def test_a_token_ends_at_the_stroke(
    application: WireCheck,
    process: Process,
    known: Known,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = timezone.now() + timedelta(minutes=5)
    token = await writer.run(lambda: known.new(expires=end))
    await asked(application, token)
    for now, is_known in ((end - timedelta(microseconds=1), True), (end, False)):
        with monkeypatch.context() as patched:
            patched.setattr(timezone, "now", lambda now=now: now)
            assert (at(process, token) is not None) is is_known


async def test_a_token_for_networks_is_never_kept(
    application: WireCheck, process: Process, known: Known
) -> None:
    token = await writer.run(lambda: known.new(networks="127.0.0.0/8"))
    assert await asked(application, token) == 200
    assert at(process, token) is None


async def test_only_so_many_are_kept(
    application: WireCheck,
    process: Process,
    known: Known,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callers, "MOST", 3)
    for _ in range(8):
        token = await writer.run(known.new)
        assert await asked(application, token) == 200
        assert at(process, token) is not None
        assert len(process.callers) <= 3
    for number in range(50):
        assert at(process, f"mcp_{number}") is None
    assert len(process.callers) <= 3
