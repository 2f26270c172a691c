"""Names are looked up in threads, each once at a time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence

import pytest

from mcp_app.egress import connecting
from mcp_app.egress.connecting import Resolver, Unreachable, system_lookup


def test_what_the_system_says() -> None:
    assert system_lookup("127.0.0.1", 80) == ["127.0.0.1"]


async def test_addresses() -> None:
    resolver = Resolver(lambda host, port: [host, str(port)])
    assert await resolver.addresses("a", 1) == ["a", "1"]


@pytest.mark.parametrize(
    "error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("long")]
)
async def test_a_name_without_addresses(error: Exception) -> None:
    def lookup(host: str, port: int) -> Sequence[str]:
        raise error

    with pytest.raises(Unreachable, match="The name a has no address"):
        await Resolver(lookup).addresses("a", 1)


async def test_a_lookup_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the same name waits for the same lookup; others do not."""
    monkeypatch.setattr(connecting, "LOOKUP_S", 0.05)
    go_on, lookups = threading.Event(), []

    def lookup(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        if host == "slow":
            go_on.wait(60)
            raise OSError("It is gone.")
        return [host]

    resolver = Resolver(lookup)
    for _ in range(2):
        with pytest.raises(Unreachable, match="slow was not looked up within"):
            await resolver.addresses("slow", 1)
    monkeypatch.setattr(connecting, "LOOKUP_S", 60.0)
    assert await resolver.addresses("fast", 1) == ["fast"]
    assert lookups == ["slow", "fast"]
    go_on.set()
    with pytest.raises(Unreachable, match="It is gone"):
        await resolver.addresses("slow", 1)


async def test_only_some_names_at_once() -> None:
    go_on, running, most = threading.Event(), [], []

    def lookup(host: str, port: int) -> Sequence[str]:
        running.append(host)
        most.append(len(running))
        go_on.wait(60)
        running.remove(host)
        return []

    resolver = Resolver(lookup)
    tasks = [
        asyncio.create_task(resolver.addresses(str(each), 1))
        for each in range(connecting.LOOKUPS + 2)
    ]
    while len(running) < connecting.LOOKUPS:
        await asyncio.sleep(0.001)
    go_on.set()
    await asyncio.gather(*tasks)
    assert max(most) <= connecting.LOOKUPS
