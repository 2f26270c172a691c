"""Work for many keys at once: who waits for what, and what each caller gets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from mcp_app.pools import batching
from mcp_app.pools.batching import KEY_BATCH_SIZE, Batches
from mcp_app.pools.database import (
    Connections,
    DatabaseThreads,
    connections_of_process,
    pool_size,
)
from mcp_app.protocol.errors import Unavailable
from tests.serving import until

BAD: Final = 13


class Doubles:
    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self, numbers: list[int]) -> dict[int, int]:
        self.asked.append(numbers)
        self.began.set()
        assert self.may_end.wait(30)
        if BAD in numbers:
            raise ValueError("thirteen")
        return {each: 2 * each for each in numbers if each < 100}

    @contextmanager
    def busy(self) -> Iterator[None]:
        self.began.clear()
        self.may_end.clear()
        yield
        self.may_end.set()


@pytest.fixture
def pool() -> Iterator[DatabaseThreads]:
    threads = DatabaseThreads("test-batches")
    yield threads
    threads.close()


class Numbers(Batches[int, int]):
    """Batches of numbers that are doubled."""

    def __init__(self, pool: DatabaseThreads) -> None:
        self.doubles = Doubles()
        super().__init__(pool, self.doubles)

    def ask(self, *keys: int) -> list[asyncio.Task[int | None]]:
        return [asyncio.create_task(self.load_value(key)) for key in keys]

    async def ask_meanwhile(
        self, first: int, *later: int
    ) -> list[asyncio.Task[int | None]]:
        """Ask for numbers while the work for the first is under way."""
        asking = self.ask(first)
        await until(self.doubles.began.is_set)
        asking += self.ask(*later)
        await asyncio.sleep(0)
        return asking


async def answers_of(asking: list[asyncio.Task[int | None]]) -> list[Any]:
    answers = asyncio.gather(*asking, return_exceptions=True)
    return await asyncio.wait_for(answers, 30)


@pytest.fixture
def batches(pool: DatabaseThreads) -> Numbers:
    return Numbers(pool)


async def test_what_comes_meanwhile_is_done_together(batches: Numbers) -> None:
    with batches.doubles.busy():
        asking = await batches.ask_meanwhile(1, 1, 2, 2, 200)
    assert await answers_of(asking) == [2, 2, 4, 4, None]
    # The same key that is under way is done again: it began before it was asked for.
    assert batches.doubles.asked == [[1], [1, 2, 200]]


async def test_no_work_takes_more_than_so_many(batches: Numbers) -> None:
    with batches.doubles.busy():
        asking = await batches.ask_meanwhile(0, *range(-1_200, 0))
    await answers_of(asking)
    sizes = [len(each) for each in batches.doubles.asked]
    assert sizes == [1, KEY_BATCH_SIZE, KEY_BATCH_SIZE, 200]


async def test_a_key_that_fails_fails_alone(batches: Numbers) -> None:
    with batches.doubles.busy():
        asking = await batches.ask_meanwhile(0, 1, BAD, 2)
    answers = await answers_of(asking)
    assert answers[:2] + answers[3:] == [0, 2, 4]
    assert isinstance(answers[2], ValueError)


async def test_an_outage_is_everybodys(batches: Numbers, pool: DatabaseThreads) -> None:
    with batches.doubles.busy():
        first, *later = await batches.ask_meanwhile(0, 1, 2)
        pool.give_up(0.0)
        with pytest.raises(Unavailable):
            await first
    assert await answers_of(later) == [2, 4]


async def test_who_leaves_takes_nobody_along(batches: Numbers) -> None:
    with batches.doubles.busy():
        leaving, staying = batches.ask(1, 1)
        await until(batches.doubles.began.is_set)
        leaving.cancel()
        await asyncio.sleep(0)
    assert await staying == 2
    assert leaving.cancelled()


async def test_t20_keys_that_nobody_has_are_looked_up_seldom(
    batches: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def slept(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", slept)
    assert await batches.load_value(1) == 2
    assert await batches.load_value(200) is None
    assert pauses == []
    assert await batches.load_value(2) == 4
    [pause] = pauses
    assert 0 < pause <= batching.SPACING_S


async def test_others_are_served_between_strangers_answers(batches: Numbers) -> None:
    turns: list[str] = []

    async def serve_others() -> None:
        while "202" not in turns:
            turns.append("other")
            await asyncio.sleep(0)

    keys = (1, 200, 201, 2, 202)
    with batches.doubles.busy():
        asking = await batches.ask_meanwhile(*keys)
        for key, each in zip(keys, asking, strict=True):
            each.add_done_callback(lambda _, key=key: turns.append(str(key)))  # type: ignore[misc]
    others = asyncio.create_task(serve_others())
    await asyncio.gather(others, *asking)
    served = [each for each in turns if each != "other"]
    assert served == ["1", "2", "200", "201", "202"]
    between = turns[turns.index("200") : turns.index("202")]
    assert between.count("other") >= 2


async def test_t20_many_strangers_are_answered_in_portions(
    batches: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "PACE_S", 3_600.0)
    many = range(100, 100 + 3 * batching.SHARE)
    with batches.doubles.busy():
        first, honest, *strangers = await batches.ask_meanwhile(1, 2, *many)
    assert (await first, await honest) == (2, 4)
    await asyncio.wait(strangers, return_when=asyncio.FIRST_COMPLETED)
    assert [each.done() for each in strangers].count(True) == 3
    assert await batches.load_value(3) == 6
    for each in strangers:
        each.cancel()


async def test_a_stranger_who_has_left_delays_nobody(batches: Numbers) -> None:
    with batches.doubles.busy():
        first, *asking = await batches.ask_meanwhile(1, 200, 201, 202)
        asking[1].cancel()
    assert await first == 2
    answers = await answers_of(asking)
    assert [answers[0], answers[2]] == [None, None]
    # One who comes later waits for nobody.
    assert await batches.load_value(300) is None


async def test_the_next_statement_does_not_wait_for_the_answers_of_strangers(
    batches: Numbers, pool: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "SPACING_S", 0.0)
    unanswered: list[int] = []
    run = pool.run

    async def noted(*arguments: Any) -> Any:
        unanswered.append(sum(not each.done() for each in strangers))
        return await run(*arguments)

    with batches.doubles.busy():
        first, *strangers = await batches.ask_meanwhile(1, *range(200, 250))
    await first
    await asyncio.wait(strangers, return_when=asyncio.FIRST_COMPLETED)
    monkeypatch.setattr(pool, "run", noted)
    assert await batches.load_value(2) == 4
    assert unanswered[0] > len(strangers) / 2
    assert await answers_of(strangers) == [None] * 50


async def test_strangers_get_answers_though_work_is_cancelled(batches: Numbers) -> None:
    with batches.doubles.busy():
        first, *waiting = await batches.ask_meanwhile(1, *range(200, 220))
    await first
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert batches._task is not None
    batches._task.cancel()
    assert await answers_of(waiting) == [None] * 20


async def test_who_waits_is_refused_when_work_is_cancelled(batches: Numbers) -> None:
    with batches.doubles.busy():
        waiting = await batches.ask_meanwhile(1, 2, 3)
        assert batches._task is not None
        batches._task.cancel()
        answers = await answers_of(waiting)
    assert {str(each) for each in answers} == {"This process is stopping."}
    # Whoever comes later is served.
    assert await batches.load_value(4) == 8


async def test_who_waits_for_a_second_try_is_refused_then(batches: Numbers) -> None:
    with batches.doubles.busy():
        first, bad, *waiting = await batches.ask_meanwhile(1, BAD, 2, 3)
    await first
    with pytest.raises(ValueError, match="thirteen"):
        await bad
    assert batches._task is not None
    batches._task.cancel()
    assert str((await answers_of(waiting))[-1]) == "This process is stopping."


def test_another_loop_begins_anew(pool: DatabaseThreads) -> None:
    batches = Numbers(pool)

    async def left() -> None:
        batches.ask(1)
        await until(batches.doubles.began.is_set)

    with batches.doubles.busy():
        asyncio.run(left())
    assert asyncio.run(batches.load_value(2)) == 4


# -- counting --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threads", "counted"),
    [(8, Connections(usual=21, most=69)), (2, Connections(usual=15, most=45))],
)
def test_the_formula(threads: int, counted: Connections) -> None:
    assert connections_of_process(threads) == counted


@pytest.mark.parametrize(
    ("pool", "size"),
    [
        (True, 4),
        ({}, 4),
        ({"min_size": 6}, 6),
        ({"min_size": 2, "max_size": 20}, 20),
        ({"max_size": None}, 4),
    ],
)
def test_a_pool_has_as_many_as_it_says(pool: object, size: int) -> None:
    assert pool_size(pool) == size
