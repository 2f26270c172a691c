"""Who asks is kept until something changes, or until what was read is old."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from mcp_app.auth import caches
from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import BY_TOKEN
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import AccessToken, Server
from mcp_app.pools.database import writer
from mcp_app.process import callers
from mcp_app.process.loading import Catalogs
from mcp_app.process.revocation import Revocation
from mcp_app.process.running import RunningCalls
from mcp_app.process.runtime import Process
from mcp_app.streams.listeners import Listeners
from tests.asgi_client import Client
from tests.published import published
from tests.streams.test_listeners import Stream
from tests.wire.middleware import WireCheck

SLUG = "kept"


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": BY_TOKEN}


class Known:
    """A server for a group, and a token of a user who is in it."""

    def __init__(self, process: Process, application: WireCheck) -> None:
        self.process = process
        self.application = application
        self.server = published(Server(slug=SLUG, access="token", groups="inside"))
        self.group = Group.objects.create(name="inside")
        self.user = User.objects.create_user("cleo")
        self.user.groups.add(self.group)
        self.tokens: list[str] = []
        self.new()

    def new(self, **columns: Any) -> str:
        columns = {"user": self.user, "name": "a laptop", "may": "change", **columns}
        _, token = AccessToken.objects.make(**columns)
        self.tokens.append(str(token))
        return str(token)

    def erase(self) -> None:
        for row in (self.server, self.group, self.user):
            row.delete()

    async def asks(self, token: str = "") -> int:
        headers = {"authorization": f"Bearer {token or self.tokens[0]}"}
        client = Client(self.application, path=f"/mcp/{SLUG}", headers=headers)
        return (await client.call("drill_add", a=1, b=2)).status

    def at(self, now: float = 0.0, token: str = "") -> callers.CachedCaller | None:
        raw = {b"authorization": f"Bearer {token or self.tokens[0]}".encode()}
        return self.process.callers.at(SLUG, raw, now)


@pytest.fixture
async def known(process: Process, application: WireCheck) -> AsyncIterator[Known]:
    token_cache.forget_all()
    made = await writer.run(Known, process, application)
    await process.gate.wait_for_check()
    yield made
    await writer.run(made.erase)
    token_cache.forget_all()


async def test_who_was_let_in_is_known(known: Known) -> None:
    assert known.at() is None
    assert await known.asks() == 200
    first = known.at()
    assert first is not None
    assert first.principal.user_name == "cleo"
    assert first.rights.met
    assert known.at() is first
    assert known.at(token=known.tokens[0] + "x") is None
    known_callers = known.process.callers
    assert known_callers.at(SLUG, {}, 0.0) is None
    assert known_callers.at("nothing", {}, 0.0) is None
    # No credential is kept.
    assert len(known_callers) == 1
    for _slug, digest in known_callers._callers:
        assert len(digest) == 32
        assert known.tokens[0].encode() not in digest


async def test_who_lacks_the_rights_of_a_server_is_never_let_in(known: Known) -> None:
    await writer.run(known.user.groups.clear)
    await known.process.gate.wait_for_check()
    # The second time, token and rights are cached.
    assert [await known.asks(), await known.asks()] == [403, 403]
    assert known.at() is None


async def test_it_is_asked_again_when_what_was_read_is_old(known: Known) -> None:
    await known.asks()
    first = known.at()
    assert first is not None
    read = [entry[0] for entry in token_cache._entries.values()]
    rights = [entry[0] for entry in known.process.rights._entries.values()]
    assert first.until == min(*read, *rights) + caches.MAX_AGE_S
    assert known.at(first.until - 0.001) is first
    assert known.at(first.until) is not first


async def test_it_is_asked_again_after_each_change(known: Known) -> None:
    await known.asks()
    first = known.at()
    await writer.run(known.user.groups.clear)
    await known.process.gate.wait_for_check()
    assert known.at() is None
    assert await known.asks() == 403
    await writer.run(known.user.groups.add, known.group)
    await known.process.gate.wait_for_check()
    assert await known.asks() == 200
    assert known.at() not in (None, first)


async def test_a_token_ends_at_the_stroke(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = timezone.now() + timedelta(minutes=5)
    token = await writer.run(lambda: known.new(expires=end))
    await known.asks(token)
    for now, is_known in ((end - timedelta(microseconds=1), True), (end, False)):
        with monkeypatch.context() as patched:
            patched.setattr(timezone, "now", lambda now=now: now)
            assert (known.at(token=token) is not None) is is_known


async def test_a_token_for_networks_is_never_kept(known: Known) -> None:
    token = await writer.run(lambda: known.new(networks="127.0.0.0/8"))
    assert await known.asks(token) == 200
    assert known.at(token=token) is None


async def test_only_so_many_are_kept(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MOST", 3)
    for _ in range(8):
        token = await writer.run(known.new)
        assert await known.asks(token) == 200
        assert known.at(token=token) is not None
        assert len(known.process.callers) <= 3
    for number in range(50):
        assert known.at(token=f"mcp_{number}") is None
    assert len(known.process.callers) <= 3


# -- revocation ------------------------------------------------------------------------


def revocation(*streams: Stream, access: dict[str, str] | None = None) -> Revocation:
    listeners = Listeners()
    for each in streams:
        listeners.add(each)
    servers = {
        slug: SimpleNamespace(
            server=ServerDefinition(slug=slug, access=tuple(ways.split()))
        )
        for slug, ways in (access or {}).items()
    }
    catalogs: Any = SimpleNamespace(by_slug=servers, stopped=frozenset())
    return Revocation(
        listeners,
        RunningCalls(asyncio.get_running_loop()),
        cast("Catalogs", catalogs),
        cast("RightsCache", None),
        cast("Any", None),
    )


@pytest.mark.parametrize(
    ("before", "now", "ends"),
    [
        ("token", "token", False),
        ("token", "public", True),
        ("token session", "token", True),
        # The order says who is asked first.
        ("token session", "session token", True),
        ("token", "", True),
    ],
)
async def test_where_others_come_in(before: str, now: str, ends: bool) -> None:
    own, other = Stream("shop"), Stream("office")
    known = revocation(access={"shop": before, "office": "token"}).access_by_server()
    later = revocation(own, other, access={"shop": now, "office": "token"})
    later.close_after_access_change(known)
    assert own.told == (["end None"] if ends else [])
    assert other.told == []
    # What was not known before, or is gone now, is left alone.
    new, gone = Stream("new"), Stream("gone")
    later = revocation(new, gone, access={"new": "token"})
    later.close_after_access_change({"gone": ("token",)})
    assert (new.told, gone.told) == ([], [])
