"""Tests of `mcp_app/egress/resolving.py`."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from httpcore2 import ConnectError
from pytest_django import Settings

from mcp_app.egress import resolving
from mcp_app.egress.backend import GuardedBackend, connection_pool_for
from mcp_app.egress.client import Connections
from mcp_app.egress.requests import SiteRequest
from mcp_app.egress.resolving import (
    EgressError,
    Forbidden,
    Resolver,
    Unreachable,
    system_lookup,
)
from mcp_app.egress.sites import usable_sites
from mcp_app.interface.principal import AccessRequest, Principal
from tests.egress.test_sites import PRIVATE


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
    monkeypatch.setattr(resolving, "LOOKUP_S", 0.05)
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
    monkeypatch.setattr(resolving, "LOOKUP_S", 60.0)
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
        for each in range(resolving.LOOKUPS + 2)
    ]
    while len(running) < resolving.LOOKUPS:
        await asyncio.sleep(0.001)
    go_on.set()
    await asyncio.gather(*tasks)
    assert max(most) <= resolving.LOOKUPS


# -- backend ---------------------------------------------------------------------------


@pytest.fixture
async def canary() -> AsyncIterator[Any]:
    """Listen on loopback, by IPv4 and IPv6, and count who comes."""
    visits: list[str] = []

    async def visited(_reader: object, writer: asyncio.StreamWriter) -> None:
        visits.append("somebody")
        writer.close()

    server = await asyncio.start_server(visited, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    other = await asyncio.start_server(visited, "::1", port)
    yield port, visits
    server.close()
    other.close()


def backend(settings: Settings, lookup: Any, **options: Any) -> GuardedBackend:
    given = {"url": "https://peer.example", **options}
    settings.MCP = {"HTTP": {"peer": given}}
    return GuardedBackend(usable_sites()["peer"], Resolver(lookup))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "::"),
        *("::1", "::ffff:127.0.0.1", "localhost", "①②⑦.0.0.1", "ⓛocalhost"),
    ],
)
async def test_hosts_that_lead_to_this_machine(
    settings: Settings, canary: Any, host: str
) -> None:
    """As the system looks them up: whatever it says, nobody comes."""
    port, visits = canary
    with pytest.raises(EgressError):
        await backend(settings, system_lookup).connect_tcp(host, port)
    assert visits == []


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["93.184.216.34", "127.0.0.1"],
        ["127.0.0.1", "93.184.216.34"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["no address"],
        *([each] for each in PRIVATE),
    ],
)
async def test_names_that_lead_to_this_machine(
    settings: Settings, canary: Any, addresses: list[str]
) -> None:
    port, visits = canary
    own = backend(settings, lambda host, port: addresses)
    with pytest.raises(Forbidden, match="which is not public"):
        await own.connect_tcp("peer.example", port)
    assert visits == []


async def test_a_network_that_is_allowed(settings: Settings, canary: Any) -> None:
    port, visits = canary
    own = backend(settings, lambda host, port: ["127.0.0.1"], networks=["127.0.0.1/32"])
    stream = await own.connect_tcp("peer.example", port)
    await stream.aclose()
    await own.sleep(0.01)
    assert visits == ["somebody"]


async def test_backend_a_name_without_addresses(settings: Settings) -> None:
    with pytest.raises(ConnectError, match="has no address"):
        await backend(settings, lambda host, port: []).connect_tcp("peer.example", 1)


async def test_no_extra(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MCP = {"HTTP": {"peer": {"url": "https://peer.example"}}}
    monkeypatch.setitem(sys.modules, "httpcore2", None)
    monkeypatch.delitem(sys.modules, "mcp_app.egress.backend")
    asked = AccessRequest(principal=Principal.ANONYMOUS, server="")
    request = SiteRequest(method="GET", path="/", log_path="/")
    with pytest.raises(Unreachable, match=r'pip install "django-mcp-app\[http\]"'):
        await Connections().call_site(usable_sites()["peer"], request, asked)


def test_certificates_are_checked(settings: Settings) -> None:
    settings.MCP = {"HTTP": {"peer": {"url": "https://peer.example"}}}
    context: Any = connection_pool_for(usable_sites()["peer"], Resolver())._ssl_context
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
