"""Whose open streams end: where others come in now, and where a server is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcp_app.auth.permissions import RightsCache
from mcp_app.catalog.stops import RETRY_S
from mcp_app.interface.principal import Principal
from mcp_app.interface.server import ServerDefinition
from mcp_app.process.callers import Revocation
from mcp_app.process.loading import Catalogs
from mcp_app.process.running import RunningCalls
from mcp_app.streams.listeners import Listeners


@dataclass(eq=False)
class Stream:
    """A stream that changes are written to."""

    server: str
    lasts: bool = False
    principal: Principal = Principal.ANONYMOUS
    owner: str = ""
    session: str = ""
    seen: int = 0
    ends: list[int | None] = field(default_factory=list)

    def watched(self, what: str) -> str | None:
        return None

    def watching(self) -> Iterable[str]:
        return ()

    def tell(self, what: Sequence[str], number: int) -> None:
        """Nothing is told."""

    def beat(self) -> None:
        """Nothing is beaten."""

    def end(self, *, retry_ms: int | None = None) -> None:
        self.ends.append(retry_ms)


def revocation(
    *streams: Stream, access: dict[str, str] | None = None, stopped: Iterable[str] = ()
) -> Revocation:
    """Return those of a process with these servers, by the ways in."""
    listeners = Listeners()
    for each in streams:
        listeners.add(each)
    servers = {
        slug: SimpleNamespace(
            server=ServerDefinition(slug=slug, access=tuple(ways.split()))
        )
        for slug, ways in (access or {}).items()
    }
    catalogs: Any = SimpleNamespace(by_slug=servers, stopped=frozenset(stopped))
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
    known = revocation(access={"shop": before, "office": "token"}).ways()
    later = revocation(own, other, access={"shop": now, "office": "token"})
    later.close_after_access_change(known)
    assert own.ends == ([None] if ends else [])
    assert other.ends == []


async def test_what_was_not_known_before_or_is_gone_now_is_left_alone() -> None:
    new, gone = Stream("new"), Stream("gone")
    later = revocation(new, gone, access={"new": "token"})
    later.close_after_access_change({"gone": ("token",)})
    assert (new.ends, gone.ends) == ([], [])


async def test_streams_of_a_stopped_server_end_and_come_back_later() -> None:
    own, lasting, other = Stream("shop"), Stream("shop", lasts=True), Stream("office")
    revocation(own, lasting, other, stopped=["shop"]).close_stopped()
    (retry_ms,) = own.ends
    assert retry_ms is not None
    assert RETRY_S[0] * 1_000 <= retry_ms <= RETRY_S[1] * 1_000
    # One that is part of a connection goes on: its server is told apart there.
    assert (lasting.ends, other.ends) == ([], [])
