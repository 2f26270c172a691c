"""What caches of authentication and permissions have in common."""

from __future__ import annotations

import asyncio

import pytest

from mcp_app.auth import caches
from mcp_app.auth.caches import AgedCache


class Numbers:
    """Loads 1, then 2, and so on."""

    def __init__(self) -> None:
        self.last = 0

    async def load(self) -> int:
        self.last += 1
        return self.last


async def test_a_value_is_loaded_once() -> None:
    cache: AgedCache[str, int] = AgedCache()
    numbers = Numbers()
    assert cache.cached("a") is None
    assert [await cache.find("a", numbers.load) for _ in range(3)] == [1, 1, 1]
    assert (cache.cached("a"), cache.cached("b")) == (1, None)
    assert await cache.find("b", numbers.load) == 2


async def test_an_old_value_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache: AgedCache[str, int] = AgedCache()
    numbers = Numbers()
    assert await cache.find("a", numbers.load) == 1
    monkeypatch.setattr(caches, "MAX_AGE_S", 0.0)
    assert cache.cached("a") is None
    assert await cache.find("a", numbers.load) == 2


async def test_none_is_not_cached() -> None:
    cache: AgedCache[str, int | None] = AgedCache()

    async def load() -> int | None:
        return None

    assert await cache.find("a", load) is None
    assert len(cache) == 0


async def test_what_is_loaded_while_everything_is_forgotten_is_not_cached() -> None:
    cache: AgedCache[str, int] = AgedCache()
    go = asyncio.Event()

    async def load() -> int:
        await go.wait()
        return 1

    loading = asyncio.ensure_future(cache.find("a", load))
    await asyncio.sleep(0)
    cache.forget()
    go.set()
    assert await loading == 1
    assert cache.cached("a") is None


async def test_a_full_cache_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MAX_ENTRIES", 2)
    cache: AgedCache[int, int] = AgedCache()
    numbers = Numbers()
    for key in range(3):
        await cache.find(key, numbers.load)
    assert (len(cache), cache.cached(2)) == (1, 3)
