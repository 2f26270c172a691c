"""The threads of user code: how many run, wait, are lost, and are refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Final

import pytest

from mcp_app.pools import user_threads
from mcp_app.pools.turns import UNKNOWN, Owner, Turns
from mcp_app.pools.user_threads import Job, NoPlace, UserThreads
from mcp_app.protocol.errors import Unavailable

PATIENCE_S: Final = 60
SIZE: Final = 2
ANN, BEN, CAT = (Owner(name, stranger=False) for name in ("ann", "ben", "cat"))
EVE, FAY = (Owner(name, stranger=True) for name in ("eve", "fay"))


class Scene:
    """Work that says that it has begun, and ends when it is told to."""

    def __init__(self, pool: UserThreads) -> None:
        self.pool = pool
        self.begun: SimpleQueue[int] = SimpleQueue()
        self.ended: SimpleQueue[int] = SimpleQueue()
        self.go = threading.Event()

    def begin(self, count: int = 1, owner: Owner = UNKNOWN) -> list[Job]:
        return [self.pool.submit(self._hold, f"hold {i}", owner) for i in range(count)]

    def hold(self, count: int = 1, owner: Owner = UNKNOWN) -> list[Job]:
        jobs = self.begin(count, owner)
        assert len(self.threads(count)) == count
        return jobs

    def wait(self, count: int = 1, owner: Owner = UNKNOWN) -> list[Job]:
        return [self.pool.submit(self._wait, "wait", owner) for _ in range(count)]

    def _hold(self, job: Job) -> None:
        self.begun.put(threading.get_ident())
        assert self.go.wait(PATIENCE_S)
        self.ended.put(threading.get_ident())

    def _wait(self, job: Job) -> None:
        with self.pool.waiting_for_answer(job):
            self._hold(job)

    def threads(self, count: int) -> set[int]:
        return {self.begun.get(timeout=PATIENCE_S) for _ in range(count)}

    def finish(self, count: int) -> set[int]:
        self.go.set()
        return {self.ended.get(timeout=PATIENCE_S) for _ in range(count)}

    def uncounted(self, count: int) -> bool:
        return settled(lambda: self.pool.uncounted_threads == count)

    def idle(self) -> bool:
        return self.begun.empty()


@pytest.fixture
def pool() -> Iterator[UserThreads]:
    made = UserThreads(SIZE)
    yield made
    made.close()


@pytest.fixture
def scene(pool: UserThreads) -> Iterator[Scene]:
    made = Scene(pool)
    yield made
    made.go.set()


def settled(true: Callable[[], bool]) -> bool:
    """Wait for a thread to have taken note of something."""
    tick = threading.Event()
    for _ in range(1_000):
        if true():
            return True
        tick.wait(0.005)
    return False


def alive(pool: UserThreads) -> int:
    return pool._threads


def test_as_many_run_as_there_are_places(scene: Scene) -> None:
    scene.begin(SIZE + 1)
    assert len(scene.threads(SIZE)) == SIZE
    assert scene.idle()
    first = scene.finish(SIZE + 1)
    assert len(first) <= SIZE
    # An idle thread is used again.
    for _ in range(20):
        scene.hold()
        scene.finish(1)
    assert alive(scene.pool) <= SIZE


def test_who_waits_for_an_answer_lets_others_work(scene: Scene) -> None:
    scene.wait(SIZE)
    scene.threads(SIZE)
    assert scene.uncounted(SIZE)
    scene.hold(SIZE)
    scene.finish(2 * SIZE)
    assert scene.uncounted(0)
    # The substitutes are one too many each, and end.
    assert settled(lambda: alive(scene.pool) == SIZE)


def test_a_queued_job_gets_the_place_of_one_that_asks(scene: Scene) -> None:
    jobs = scene.hold(SIZE)
    scene.begin()
    assert scene.idle()
    scene.pool.uncount_job(jobs[0])
    scene.threads(1)


def test_all_threads_wait_and_the_next_is_refused(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    ceiling = scene.pool.ceiling
    assert ceiling == 4 * SIZE
    scene.wait(ceiling)
    assert len(scene.threads(ceiling)) == ceiling
    assert scene.uncounted(ceiling)
    with caplog.at_level(logging.ERROR), pytest.raises(Unavailable) as refused:
        scene.begin()
    assert refused.value.http_status == 503
    assert refused.value.headers == {"Retry-After": "2"}
    assert f"All {ceiling} threads" in refused.value.message
    assert f"wait or hang: {{'wait': {ceiling}}}" in caplog.text
    scene.finish(ceiling)
    assert scene.uncounted(0)
    scene.hold()


def test_no_more_threads_than_the_ceiling(scene: Scene) -> None:
    ceiling = scene.pool.ceiling
    scene.wait(ceiling - 1)
    scene.threads(ceiling - 1)
    assert scene.uncounted(ceiling - 1)
    scene.begin(SIZE)
    scene.threads(1)
    assert scene.idle()
    assert alive(scene.pool) == ceiling


def test_a_lost_thread_gives_its_place_away_and_comes_back(scene: Scene) -> None:
    jobs = scene.hold(SIZE)
    for job in jobs:
        scene.pool.give_up_job(job)
        # Who gives up twice has given up.
        scene.pool.give_up_job(job)
    assert scene.pool.uncounted_threads == scene.pool.lost_threads == SIZE
    scene.hold(SIZE)
    scene.finish(2 * SIZE)
    assert scene.uncounted(0)
    assert settled(lambda: alive(scene.pool) == SIZE)


def test_a_job_that_is_done_is_not_lost(scene: Scene) -> None:
    scene.go.set()
    for _ in range(3 * scene.pool.ceiling):
        (job,) = scene.hold()
        scene.finish(1)
        settled(lambda job=job: job.is_unwanted)  # type: ignore[misc]
        scene.pool.give_up_job(job)
    assert scene.pool.uncounted_threads == 0
    assert settled(lambda: alive(scene.pool) <= SIZE)


def test_a_lost_job_that_waits_is_no_place_twice(scene: Scene) -> None:
    (job,) = scene.wait()
    scene.threads(1)
    assert scene.uncounted(1)
    assert scene.pool.lost_threads == 0
    scene.pool.give_up_job(job)
    assert scene.pool.uncounted_threads == scene.pool.lost_threads == 1
    scene.finish(1)
    assert scene.uncounted(0)
    assert alive(scene.pool) == 1


def test_a_job_that_waited_and_is_wanted_no_more_takes_no_place(scene: Scene) -> None:
    """It may go on for ever: nobody looks after it again."""
    asked, goes_on = threading.Event(), threading.Event()

    def waits_and_hangs(job: Job) -> None:
        with scene.pool.waiting_for_answer(job):
            assert asked.wait(PATIENCE_S)
        goes_on.set()
        assert scene.go.wait(PATIENCE_S)

    jobs = [scene.pool.submit(waits_and_hangs, "waits", UNKNOWN) for _ in range(SIZE)]
    assert scene.uncounted(SIZE)
    for job in jobs:
        scene.pool.give_up_job(job)
    asked.set()
    assert goes_on.wait(PATIENCE_S)
    assert scene.pool.lost_threads == SIZE
    scene.hold(SIZE)
    scene.finish(SIZE)
    assert scene.uncounted(0)


def no_thread(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_where_no_thread_can_be_started_the_next_job_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_thread)
        for _ in range(SIZE):
            with pytest.raises(Unavailable):
                scene.begin()
    assert alive(scene.pool) == 0
    scene.hold(SIZE)
    assert scene.idle()


def test_where_no_more_threads_can_be_started_jobs_wait_for_those_there_are(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.begin()
    (first,) = scene.threads(1)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    scene.begin()
    assert scene.idle()
    scene.finish(1)
    assert scene.threads(1) == {first}
    assert alive(scene.pool) == 1


def test_a_substitute_that_cannot_be_started_does_not_hurt_who_waits(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.wait(SIZE)
    scene.threads(SIZE)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(Unavailable):
        scene.begin()
    assert len(scene.finish(SIZE)) == SIZE
    assert settled(lambda: alive(scene.pool) == SIZE)


def test_idle_threads_end_then(monkeypatch: pytest.MonkeyPatch, scene: Scene) -> None:
    monkeypatch.setattr(user_threads, "IDLE_SECONDS", 0.02)
    scene.hold(SIZE)
    scene.finish(SIZE)
    assert settled(lambda: alive(scene.pool) == 0)
    scene.hold()


def test_jobs_that_come_while_threads_give_up_are_run(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    monkeypatch.setattr(user_threads, "IDLE_SECONDS", 0.0005)
    scene.go.set()
    tick = threading.Event()
    for _ in range(200):
        scene.hold()
        scene.finish(1)
        tick.wait(0.0005)
    assert alive(scene.pool) <= SIZE


def test_a_closed_pool_lets_running_jobs_go_on_and_takes_no_more(scene: Scene) -> None:
    scene.hold(SIZE)
    scene.pool.close()
    with pytest.raises(Unavailable):
        scene.begin()
    threads = scene.finish(SIZE)
    assert settled(
        lambda: threads.isdisjoint(each.ident for each in threading.enumerate())
    )


# -- owners -------------------------------------------------------------------------


def test_who_has_no_call_running_begins_at_once(scene: Scene) -> None:
    scene.begin(SIZE + 1, ANN)
    scene.threads(SIZE)
    scene.begin(2, BEN)
    scene.threads(1)
    people = [Owner(f"p{i}", stranger=False) for i in range(scene.pool.ceiling)]
    for each in people:
        scene.begin(1, each)
    scene.threads(scene.pool.ceiling - SIZE - 1)
    assert scene.idle()
    assert alive(scene.pool) == scene.pool.ceiling
    scene.finish(SIZE + 3 + len(people))
    assert settled(lambda: alive(scene.pool) == SIZE)
    assert scene.pool._running == {}


def test_free_places_go_by_turns() -> None:
    pool, begun = UserThreads(4), SimpleQueue[str]()
    events = [threading.Event() for _ in range(4)]

    def work(event: threading.Event, job: Job) -> None:
        begun.put(job.name)
        assert event.wait(PATIENCE_S)

    last = threading.Event()
    for event in events:
        pool.submit(partial(work, event), "held", ANN)
    pool.submit(partial(work, last), "held", BEN)
    assert [begun.get(timeout=PATIENCE_S) for _ in range(5)] == ["held"] * 5
    for owner, number in ((ANN, 3), (BEN, 1)):
        for index in range(number):
            pool.submit(partial(work, last), f"{owner.person} {index}", owner)
    # Five run where four have a place: the first that ends makes no room.
    events.pop().set()
    for name in ("ann 0", "ben 0", "ann 1"):
        events.pop().set()
        assert begun.get(timeout=PATIENCE_S) == name
        assert begun.empty()
    last.set()
    assert begun.get(timeout=PATIENCE_S) == "ann 2"
    pool.close()


def test_an_owner_whose_last_call_ends_goes_on_at_once(scene: Scene) -> None:
    scene.hold(SIZE, ANN)
    short = threading.Event()

    def wait(job: Job) -> None:
        assert short.wait(PATIENCE_S)

    scene.pool.submit(wait, "short", BEN)
    scene.begin(1, BEN)
    assert scene.idle()
    short.set()
    scene.threads(1)


@pytest.mark.parametrize(
    ("owner", "other", "words"),
    [
        (ANN, BEN, r"All 4 threads that one caller may hold wait or hang\."),
        (EVE, BEN, r"All threads of callers who did not sign in wait or hang\."),
    ],
)
def test_half_of_the_threads_wait_or_hang_for_one_owner(
    scene: Scene, owner: Owner, other: Owner, words: str
) -> None:
    half = scene.pool.ceiling // 2
    for _ in range(half):
        (job,) = scene.hold(1, owner)
        scene.pool.give_up_job(job)
    with pytest.raises(Unavailable, match=words):
        scene.begin(1, owner)
    scene.hold(SIZE, other)
    scene.finish(half + SIZE)
    assert scene.uncounted(0)
    scene.hold(1, owner)


def test_strangers_hold_half_of_the_threads_together(scene: Scene) -> None:
    half = scene.pool.ceiling // 2
    strangers = [Owner(f"s{i}", stranger=True) for i in range(half + 2)]
    for each in strangers:
        scene.begin(1, each)
    scene.threads(half)
    assert scene.idle()
    # Somebody who has signed in comes last, and goes first.
    scene.hold(1, ANN)
    scene.finish(half + 3)
    scene.threads(2)
    assert settled(lambda: scene.pool._strangers == 0)


def test_a_job_is_given_up_before_its_turn_has_come(scene: Scene) -> None:
    scene.hold(SIZE, ANN)
    waiting = scene.begin(3, ANN)
    for each in waiting[:2]:
        scene.pool.give_up_job(each)
        scene.pool.give_up_job(each)
    scene.finish(SIZE + 1)
    scene.threads(1)
    assert scene.idle()
    assert settled(lambda: scene.pool._begun == 0)


def test_many_at_once_from_many_sides(pool: UserThreads) -> None:
    begun, most = SimpleQueue(), []  # type: ignore[var-annotated]
    owners = (ANN, BEN, CAT, EVE, FAY, UNKNOWN)

    def work(job: Job) -> None:
        most.append(pool._threads)
        if job.owner is CAT:
            with pool.waiting_for_answer(job):
                begun.put(1)
        begun.put(1)

    def submit(owner: Owner) -> None:
        for index in range(300):
            # At a moment too many of its own may wait.
            with suppress(NoPlace):
                job = pool.submit(work, "works", owner)
                if index % 7 == 0:
                    pool.give_up_job(job)
                    begun.put(0)

    sides = [threading.Thread(target=submit, args=(each,)) for each in owners]
    for side in sides:
        side.start()
    for side in sides:
        side.join(PATIENCE_S)
    assert settled(lambda: pool._turns.number == pool._begun == 0)
    assert settled(lambda: pool.uncounted_threads == 0)
    assert max(most) <= pool.ceiling
    assert (pool._running, pool._strangers) == ({}, 0)
    assert settled(lambda: alive(pool) <= SIZE)


# -- turns -----------------------------------------------------------------------------


def _taken(*keys: str) -> str:
    """Return the order of items, each with its owner's key; strangers' are digits."""
    turns: Turns[str] = Turns()
    for key in keys:
        turns.append_item(Owner(key[0], key[0].isdigit()), key)
    return " ".join(turns.take_next_item() for _ in keys)


def test_the_order() -> None:
    for put, taken in {
        "a1": "a1",
        "a1 a2 a3": "a1 a2 a3",
        "a1 a2 a3 b1": "a1 b1 a2 a3",
        "a1 a2 b1 b2 c1": "a1 b1 c1 a2 b2",
        "1a 1b a1 a2": "a1 a2 1a 1b",
        "1a 1b 1c 2a a1 b1": "a1 b1 1a 2a 1b 1c",
    }.items():
        assert _taken(*put.split()) == taken


def test_who_comes_again_is_behind_who_waits() -> None:
    turns: Turns[str] = Turns()
    turns.append_item(ANN, "a1")
    turns.append_item(BEN, "b1")
    assert turns.take_next_item() == "a1"
    turns.append_item(ANN, "a2")
    assert [turns.take_next_item(), turns.take_next_item()] == ["b1", "a2"]
    with pytest.raises(LookupError):
        turns.take_next_item()
