"""Work for many keys at once: who waits for what, and what each caller gets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from mcp_app.pools import batching
from mcp_app.pools.batching import (
    KEY_BATCH_SIZE,
    Batches,
    Connections,
    of_process,
    pool_size,
)
from mcp_app.pools.database import DatabaseThreads
from mcp_app.protocol.errors import Unavailable

BAD: Final = 13


class Doubles:
    """Doubles numbers below a hundred, and notes what it was asked for."""

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
        """Let work that begins within the block wait for its end."""
        self.began.clear()
        self.may_end.clear()
        yield
        self.may_end.set()


@pytest.fixture
async def pool() -> AsyncIterator[DatabaseThreads]:
    threads = DatabaseThreads("test-batches")
    yield threads
    threads.close()


@pytest.fixture
def doubles() -> Doubles:
    return Doubles()


@pytest.fixture
def batches(pool: DatabaseThreads, doubles: Doubles) -> Batches[int, int]:
    return Batches(pool, doubles)


async def begun(doubles: Doubles) -> None:
    while not doubles.began.is_set():
        await asyncio.sleep(0.001)


async def test_what_comes_meanwhile_is_done_together(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        first = asyncio.create_task(batches.load_value(1))
        await begun(doubles)
        later = [
            asyncio.create_task(batches.load_value(each)) for each in (1, 2, 2, 200)
        ]
        await asyncio.sleep(0)
    assert [await each for each in (first, *later)] == [2, 2, 4, 4, None]
    # The same key that is under way is done again: it began before it was asked for.
    assert doubles.asked == [[1], [1, 2, 200]]


async def test_no_work_takes_more_than_so_many(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        tasks = [asyncio.create_task(batches.load_value(0))]
        await begun(doubles)
        tasks += [
            asyncio.create_task(batches.load_value(-each)) for each in range(1_200)
        ]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert [len(each) for each in doubles.asked] == [
        1,
        KEY_BATCH_SIZE,
        KEY_BATCH_SIZE,
        200,
    ]


async def test_a_key_that_fails_fails_alone(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        tasks = [asyncio.create_task(batches.load_value(0))]
        await begun(doubles)
        tasks += [asyncio.create_task(batches.load_value(each)) for each in (1, BAD, 2)]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[:2] + answers[3:] == [0, 2, 4]
    assert isinstance(answers[2], ValueError)


async def test_an_outage_is_everybodys(
    batches: Batches[int, int], doubles: Doubles, pool: DatabaseThreads
) -> None:
    with doubles.busy():
        first = asyncio.create_task(batches.load_value(0))
        await begun(doubles)
        later = [asyncio.create_task(batches.load_value(each)) for each in (1, 2)]
        await asyncio.sleep(0)
        pool.give_up(0.0)
        with pytest.raises(Unavailable):
            await first
    assert await asyncio.gather(*later) == [2, 4]


async def test_who_leaves_takes_nobody_along(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        leaving, staying = (
            asyncio.create_task(batches.load_value(1)) for _ in range(2)
        )
        await begun(doubles)
        leaving.cancel()
        await asyncio.sleep(0)
    assert await staying == 2
    assert leaving.cancelled()


async def test_t20_keys_that_nobody_has_are_looked_up_seldom(
    batches: Batches[int, int], monkeypatch: pytest.MonkeyPatch
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


async def test_others_are_served_between_the_answers_of_strangers(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    turns: list[str] = []

    async def ask(key: int) -> None:
        await batches.load_value(key)
        turns.append(str(key))

    async def serve_others() -> None:
        while "202" not in turns:
            turns.append("other")
            await asyncio.sleep(0)

    with doubles.busy():
        first = asyncio.create_task(ask(1))
        await begun(doubles)
        asking = [asyncio.create_task(ask(each)) for each in (200, 201, 2, 202)]
        await asyncio.sleep(0)
    others = asyncio.create_task(serve_others())
    await asyncio.gather(first, others, *asking)
    assert [each for each in turns if each != "other"] == [
        "1",
        "2",
        "200",
        "201",
        "202",
    ]
    between = turns[turns.index("200") : turns.index("202")]
    assert between.count("other") >= 2


async def test_t20_many_strangers_are_answered_in_portions(
    batches: Batches[int, int], doubles: Doubles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "PACE_S", 3_600.0)
    with doubles.busy():
        first = asyncio.create_task(batches.load_value(1))
        await begun(doubles)
        honest = asyncio.create_task(batches.load_value(2))
        many = range(100, 100 + 3 * batching.SHARE)
        strangers = [asyncio.create_task(batches.load_value(each)) for each in many]
        await asyncio.sleep(0)
    assert await first == 2
    assert await honest == 4
    await asyncio.wait(strangers, return_when=asyncio.FIRST_COMPLETED)
    assert [each.done() for each in strangers].count(True) == 3
    assert await batches.load_value(3) == 6
    for each in strangers:
        each.cancel()


async def test_a_stranger_who_has_left_delays_nobody(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        first = asyncio.create_task(batches.load_value(1))
        await begun(doubles)
        asking = [
            asyncio.create_task(batches.load_value(200 + each)) for each in range(3)
        ]
        await asyncio.sleep(0)
        asking[1].cancel()
    assert await first == 2
    answers = await asyncio.wait_for(
        asyncio.gather(*asking, return_exceptions=True), 30
    )
    assert [answers[0], answers[2]] == [None, None]
    # One who comes later waits for nobody.
    assert await batches.load_value(300) is None


async def test_the_next_statement_does_not_wait_for_the_answers_of_strangers(
    batches: Batches[int, int],
    doubles: Doubles,
    pool: DatabaseThreads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "SPACING_S", 0.0)
    unanswered: list[int] = []
    run = pool.run

    async def noted(*arguments: Any) -> Any:
        unanswered.append(sum(not each.done() for each in strangers))
        return await run(*arguments)

    with doubles.busy():
        first = asyncio.create_task(batches.load_value(1))
        await begun(doubles)
        strangers = [
            asyncio.create_task(batches.load_value(200 + each)) for each in range(50)
        ]
        await asyncio.sleep(0)
    await first
    await asyncio.wait(strangers, return_when=asyncio.FIRST_COMPLETED)
    monkeypatch.setattr(pool, "run", noted)
    assert await batches.load_value(2) == 4
    assert unanswered[0] > len(strangers) / 2
    assert await asyncio.gather(*strangers) == [None] * 50


async def test_strangers_get_their_answer_though_the_work_is_cancelled(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        first = asyncio.create_task(batches.load_value(1))
        await begun(doubles)
        waiting = [
            asyncio.create_task(batches.load_value(200 + each)) for each in range(20)
        ]
        await asyncio.sleep(0)
    await first
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert batches._task is not None
    batches._task.cancel()
    answers = await asyncio.wait_for(asyncio.gather(*waiting), 30)
    assert answers == [None] * 20


async def test_who_waits_for_the_next_statement_is_refused_when_it_is_cancelled(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        waiting = [asyncio.create_task(batches.load_value(1))]
        await begun(doubles)
        waiting += [asyncio.create_task(batches.load_value(each)) for each in (2, 3)]
        await asyncio.sleep(0)
        assert batches._task is not None
        batches._task.cancel()
        answers = await asyncio.wait_for(
            asyncio.gather(*waiting, return_exceptions=True), 30
        )
    assert {str(each) for each in answers} == {"This process is stopping."}
    # Whoever comes later is served.
    assert await batches.load_value(4) == 8


async def test_who_waits_for_a_second_try_is_refused_when_it_is_cancelled(
    batches: Batches[int, int], doubles: Doubles
) -> None:
    with doubles.busy():
        first = asyncio.create_task(batches.load_value(1))
        await begun(doubles)
        waiting = [
            asyncio.create_task(batches.load_value(each)) for each in (BAD, 2, 3)
        ]
        await asyncio.sleep(0)
    await first
    with pytest.raises(ValueError, match="thirteen"):
        await waiting[0]
    assert batches._task is not None
    batches._task.cancel()
    answers = await asyncio.wait_for(
        asyncio.gather(*waiting[1:], return_exceptions=True), 30
    )
    assert str(answers[-1]) == "This process is stopping."


def test_another_loop_begins_anew(doubles: Doubles) -> None:
    pool = DatabaseThreads("test-batches")
    batches = Batches(pool, doubles)

    async def left() -> None:
        asyncio.create_task(batches.load_value(1))  # noqa: RUF006 - its loop ends first
        await begun(doubles)

    with doubles.busy():
        asyncio.run(left())
    assert asyncio.run(batches.load_value(2)) == 4
    pool.close()


# -- counting --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threads", "counted"),
    [(8, Connections(usual=21, most=69)), (2, Connections(usual=15, most=45))],
)
def test_the_formula(threads: int, counted: Connections) -> None:
    assert of_process(threads) == counted


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
