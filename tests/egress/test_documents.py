"""Documents of other sites by their addresses: what is never fetched, and how much."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_network
from typing import Final

import pytest

from mcp_app.egress.documents import Bounds, fetch
from mcp_app.egress.resolving import EgressError
from tests.egress.peer import answer, peer_on, settled

HERE: Final = Bounds(networks=(ip_network("127.0.0.1/32"),))


@pytest.fixture(autouse=True)
async def _no_connection_left() -> AsyncIterator[None]:
    yield
    await settled()


async def problem(url: str, bounds: Bounds = HERE, lookup: str = "") -> str:
    def looked_up(*_: object) -> Sequence[str]:
        return [lookup]

    try:
        await fetch(url, bounds, key="other", lookup=looked_up)
    except EgressError as error:
        return f"{type(error).__name__}: {error.message}"
    return ""


async def test_a_document_is_fetched() -> None:
    async with peer_on() as peer:
        peer.send = answer({"a": 1}, media_type="application/jwk-set+json")
        for path in ("/a/b", "/a/", "/", "", "/a?b=c%20d"):
            url = f"http://127.0.0.1:{peer.port}{path}"
            found = await fetch(url, HERE, key="other")
            assert found.body == b'{"a": 1}'
            received = peer.received[-1]
            assert (received.method, received.target) == ("GET", path or "/")
            assert received.header("authorization") == []
            assert received.header("cookie") == []


ELSEWHERE: Final = (
    *("https://10.0.0.7/keys", "https://169.254.169.254/latest/meta-data"),
    *("https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/"),
    *("https://2130706433/", "https://0x7f000001/", "https://127.1/", "https://0/"),
    *("http://id.example.com/keys", "http://10.0.0.7/keys"),
    *("https://user@id.example.com/", "https://id.example.com/a/../b"),
    *("https://id.example.com/%2e%2e/b", "https://id.example.com/a#b"),
    *("https://id.example.com\\@127.0.0.1/", "https://ⓛocalhost/"),
    *("https://id.exam\tple.com/", "file:///etc/passwd", "//id.example.com/", ""),
)


@pytest.mark.parametrize("bounds", [HERE, Bounds()], ids=["private", "public"])
async def test_what_is_never_fetched(bounds: Bounds) -> None:
    for url in ELSEWHERE:
        assert (await problem(url, bounds, "203.0.113.7")).startswith("Forbidden"), url


async def test_a_name_that_leads_to_a_private_address() -> None:
    async with peer_on("::1") as canary:
        for address in ("127.0.0.2", "::1", "10.0.0.7"):
            url = f"https://id.example.com:{canary.port}/keys"
            assert "which is not public" in await problem(url, HERE, address)
        assert canary.connections == 0


async def test_loopback_needs_its_network() -> None:
    async with peer_on() as canary:
        for host in ("127.0.0.1", "localhost"):
            url = f"http://{host}:{canary.port}/"
            assert "Forbidden" in await problem(url, Bounds(), "127.0.0.1")
            elsewhere = Bounds(networks=(ip_network("10.0.0.0/8"),))
            assert "Forbidden" in await problem(url, elsewhere, "127.0.0.1")
        assert canary.connections == 0
        canary.send = answer({})
        url = f"http://localhost:{canary.port}/"
        assert await problem(url, HERE, "127.0.0.1") == ""


async def test_what_is_no_document() -> None:
    async with peer_on() as peer:
        url = f"http://127.0.0.1:{peer.port}/"
        canary = f"http://127.0.0.1:{peer.port}/canary"
        for sent, said in (
            (answer(b"x" * 17_000), "TooLarge"),
            (answer(b"", 404), "Unreadable: 127.0.0.1:"),
            (answer(b"", 302, Location=canary), "answered with the status 302"),
            (answer(b"", 204), "answered with the status 204"),
            (b"nonsense\r\n\r\n", "Unreachable"),
        ):
            peer.send = sent
            assert said in await problem(url)
        assert not any("canary" in each.target for each in peer.received)
