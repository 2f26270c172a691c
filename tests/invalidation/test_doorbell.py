"""A ring at one process is heard at the others; one that is lost costs a moment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from channels.layers import channel_layers
from django.test import override_settings

from mcp_app.invalidation import doorbell
from mcp_app.invalidation.doorbell import Doorbell, shared_layer
from tests.invalidation.redis_servers import RedisServer
from tests.streams.logging_rows import until

PATIENCE_S: Final = 60
BACKENDS: Final = (
    "channels_redis.pubsub.RedisPubSubChannelLayer",
    "channels_redis.core.RedisChannelLayer",
)
SHORT: Final = "socket_timeout=0.1"


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.kill()


@pytest.fixture
def layers(redis: RedisServer) -> Iterator[None]:
    """Layers as two processes have them, one of each kind; and one inside."""
    named: dict[str, Any] = {
        f"{name} {backend}": {"BACKEND": backend, "CONFIG": {"hosts": [redis.url]}}
        for name in ("here", "there")
        for backend in BACKENDS
    }
    named["inside"] = {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    with override_settings(CHANNEL_LAYERS=named):
        channel_layers.backends.clear()
        yield
    channel_layers.backends.clear()


class Ears:
    def __init__(self) -> None:
        self.heard = 0

    def __call__(self) -> None:
        self.heard += 1

    async def more_than(self, count: int) -> int:
        await until(lambda: self.heard > count)
        return self.heard


@asynccontextmanager
async def listening(alias: str) -> AsyncIterator[tuple[Doorbell, Ears]]:
    ears = Ears()
    bell = Doorbell(alias, ears)
    bell.listen()
    # Whoever joins looks: it may have missed something.
    if shared_layer(alias) is not None:
        await ears.more_than(0)
    yield bell, ears
    hearing, layer = bell._hearing, bell._layer
    bell.close()
    if hearing is not None:
        await asyncio.wait([hearing], timeout=PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            await layer.close_pools() if hasattr(layer, "close_pools") else None
            await layer.flush() if "PubSub" in type(layer).__name__ else None


@pytest.mark.usefixtures("layers")
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_ring_is_heard(backend: str) -> None:
    async with (
        listening(f"here {backend}") as (here, _),
        listening(f"there {backend}") as (_, there),
    ):
        for _ in range(3):
            heard = there.heard
            here.ring()
            await there.more_than(heard)


@pytest.mark.usefixtures("layers")
async def test_a_ring_that_is_on_its_way_is_enough() -> None:
    backend = BACKENDS[0]
    async with (
        listening(f"here {backend}") as (here, _),
        listening(f"there {backend}") as (_, there),
    ):
        heard = there.heard
        for _ in range(100):
            here.ring()
        await there.more_than(heard)
        await asyncio.sleep(0.05)
        assert there.heard == heard + 1


# Of a connection to the killed server, which is the client library's.
@pytest.mark.filterwarnings(
    "ignore:.*StreamWriter.__del__:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.usefixtures("layers")
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_server_that_is_killed_and_comes_back(
    backend: str,
    redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(doorbell, "RETRY", 0.05)
    monkeypatch.setattr(doorbell, "RENEW", 0.2)
    async with (
        listening(f"here {backend}") as (here, _),
        listening(f"there {backend}") as (_, there),
    ):
        with caplog.at_level(logging.WARNING, "mcp_app.invalidation"):
            redis.kill()
            here.ring()
            await until(lambda: "The doorbell cannot be reached" in caplog.text)
        redis.start()

        async def rings() -> None:
            while True:
                here.ring()
                await asyncio.sleep(0.02)

        ringing = asyncio.create_task(rings())
        # Some of it is heard because the group is joined again.
        await there.more_than(there.heard + 20)
        ringing.cancel()


@pytest.mark.filterwarnings(
    "ignore:.*StreamWriter.__del__:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.usefixtures("layers")
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_server_that_is_away_for_a_while_is_two_lines_in_the_log(
    backend: str,
    redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Although nobody rings, and the layer tries it each second."""
    monkeypatch.setattr(doorbell, "RETRY", 0.5)
    caplog.set_level(logging.WARNING)
    async with listening(f"here {backend}"), asyncio.timeout(PATIENCE_S):
        redis.kill()
        while "The doorbell cannot be reached" not in caplog.text:
            await asyncio.sleep(0.01)
        # The layer would have written two more by now.
        await asyncio.sleep(2)
        redis.start()
        while "The doorbell can be reached again." not in caplog.text:
            await asyncio.sleep(0.01)
    lines = [each.message[:26] for each in caplog.records if each.name != "asyncio"]
    # A server that has only just begun may be slow once more.
    assert lines[:2] == ["The doorbell cannot be rea", "The doorbell can be reache"]
    assert all(each.startswith("The doorbell") for each in lines), caplog.text


@pytest.mark.usefixtures("layers")
async def test_nothing_is_said_if_nobody_rings(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Although the client of Redis reads only for a while."""
    backend = {"BACKEND": BACKENDS[1], "CONFIG": {"hosts": [f"{redis.url}?{SHORT}"]}}
    with override_settings(CHANNEL_LAYERS={"quiet": backend}):
        async with listening("quiet") as (bell, ears):
            await asyncio.sleep(0.5)
            assert (ears.heard, caplog.text) == (1, "")
            bell.ring()
            await ears.more_than(1)


@pytest.mark.usefixtures("layers")
@pytest.mark.parametrize("alias", ["inside", "unheard of"])
async def test_where_nobody_else_can_hear_nothing_is_rung(alias: str) -> None:
    async with listening(alias) as (bell, ears):
        bell.ring()
        await asyncio.sleep(0)
    assert ears.heard == 0
    assert bell._ringing is None


@pytest.mark.parametrize("alias", ["inside", "unheard of"])
def test_layers_that_reach_nobody(alias: str, layers: None) -> None:
    assert shared_layer(alias) is None
