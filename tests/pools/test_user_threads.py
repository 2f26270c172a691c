"""The threads of user code: how many run, wait, are lost, and are refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Final

import pytest

from mcp_app.pools import user_threads
from mcp_app.pools.user_threads import Job, UserThreads
from mcp_app.protocol.errors import Unavailable

PATIENCE_S: Final = 60
SIZE: Final = 2


class Scene:
    """Work that says that it has begun, and ends when it is told to."""

    def __init__(self, pool: UserThreads) -> None:
        self.pool = pool
        self.begun: SimpleQueue[int] = SimpleQueue()
        self.ended: SimpleQueue[int] = SimpleQueue()
        self.go = threading.Event()

    def begin(self, count: int = 1, *, stranger: bool = False) -> list[Job]:
        """Submit so many jobs that hold their threads."""
        return [
            self.pool.submit(self._hold, f"hold {i}", stranger=stranger)
            for i in range(count)
        ]

    def wait(self, count: int = 1, *, stranger: bool = False) -> list[Job]:
        """Submit so many jobs that wait for an answer meanwhile."""
        return [
            self.pool.submit(self._wait, "wait", stranger=stranger)
            for _ in range(count)
        ]

    def _hold(self, job: Job) -> None:
        self.begun.put(threading.get_ident())
        assert self.go.wait(PATIENCE_S)
        self.ended.put(threading.get_ident())

    def _wait(self, job: Job) -> None:
        with self.pool.waiting(job):
            self._hold(job)

    def threads(self, count: int) -> set[int]:
        """Wait until so many have begun; return in which threads."""
        return {self.begun.get(timeout=PATIENCE_S) for _ in range(count)}

    def finish(self, count: int) -> set[int]:
        """Let all go on, and wait for so many."""
        self.go.set()
        return {self.ended.get(timeout=PATIENCE_S) for _ in range(count)}

    def idle(self) -> bool:
        """Whether nothing begins by itself any more."""
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
    return pool._places + pool.uncounted


def test_as_many_run_as_there_are_places(scene: Scene) -> None:
    scene.begin(SIZE + 1)
    assert len(scene.threads(SIZE)) == SIZE
    assert scene.idle()
    first = scene.finish(SIZE + 1)
    assert len(first) <= SIZE


def test_an_idle_thread_is_used_again(scene: Scene) -> None:
    scene.go.set()
    for _ in range(20):
        scene.begin()
        scene.threads(1)
        scene.finish(1)
    assert alive(scene.pool) <= SIZE


def test_who_waits_for_an_answer_lets_others_work(scene: Scene) -> None:
    scene.wait(SIZE)
    scene.threads(SIZE)
    assert settled(lambda: scene.pool.uncounted == SIZE)
    scene.begin(SIZE)
    assert len(scene.threads(SIZE)) == SIZE
    scene.finish(2 * SIZE)
    assert settled(lambda: scene.pool.uncounted == 0)
    # The substitutes are one too many each, and end.
    assert settled(lambda: alive(scene.pool) == SIZE)


def test_a_job_that_waits_in_the_queue_gets_the_place_of_one_that_asks(
    scene: Scene,
) -> None:
    jobs = scene.begin(SIZE)
    scene.threads(SIZE)
    scene.begin()
    assert scene.idle()
    scene.pool.uncount(jobs[0])
    scene.threads(1)


def test_all_threads_wait_and_the_next_is_refused(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    ceiling = scene.pool.ceiling
    assert ceiling == 4 * SIZE
    scene.wait(ceiling)
    assert len(scene.threads(ceiling)) == ceiling
    assert settled(lambda: scene.pool.uncounted == ceiling)
    with caplog.at_level(logging.ERROR), pytest.raises(Unavailable) as refused:
        scene.begin()
    assert refused.value.http_status == 503
    assert refused.value.headers == {"Retry-After": "2"}
    assert f"All {ceiling} threads" in refused.value.message
    assert f"Waiting or hanging: {{'wait': {ceiling}}}" in caplog.text
    scene.finish(ceiling)
    assert settled(lambda: scene.pool.uncounted == 0)
    scene.begin()
    scene.threads(1)


def test_no_more_threads_than_the_ceiling(scene: Scene) -> None:
    ceiling = scene.pool.ceiling
    scene.wait(ceiling - 1)
    scene.threads(ceiling - 1)
    assert settled(lambda: scene.pool.uncounted == ceiling - 1)
    scene.begin(SIZE)
    scene.threads(1)
    assert scene.idle()
    assert alive(scene.pool) == ceiling


def test_a_lost_thread_gives_its_place_away_and_comes_back(scene: Scene) -> None:
    jobs = scene.begin(SIZE)
    scene.threads(SIZE)
    for job in jobs:
        scene.pool.give_up(job)
        # Who gives up twice has given up.
        scene.pool.give_up(job)
    assert scene.pool.uncounted == scene.pool.lost == SIZE
    scene.begin(SIZE)
    assert len(scene.threads(SIZE)) == SIZE
    scene.finish(2 * SIZE)
    assert settled(lambda: scene.pool.uncounted == 0)
    assert settled(lambda: alive(scene.pool) == SIZE)


def test_a_job_that_has_not_begun_is_taken_back(scene: Scene) -> None:
    scene.begin(SIZE)
    scene.threads(SIZE)
    (waiting,) = scene.begin()
    scene.pool.give_up(waiting)
    scene.finish(SIZE)
    scene.begin()
    scene.threads(1)
    assert scene.idle()
    assert scene.pool.uncounted == 0


def test_a_job_that_is_done_is_not_lost(scene: Scene) -> None:
    """Its caller may be cancelled before it has heard of the end."""
    scene.go.set()
    for _ in range(3 * scene.pool.ceiling):
        (job,) = scene.begin()
        scene.threads(1)
        scene.finish(1)
        settled(lambda job=job: not job._wanted)  # type: ignore[misc]
        scene.pool.give_up(job)
    assert scene.pool.uncounted == 0
    assert settled(lambda: alive(scene.pool) <= SIZE)


def test_a_lost_job_that_waits_is_no_place_twice(scene: Scene) -> None:
    (job,) = scene.wait()
    scene.threads(1)
    assert settled(lambda: scene.pool.uncounted == 1)
    assert scene.pool.lost == 0
    scene.pool.give_up(job)
    assert scene.pool.uncounted == scene.pool.lost == 1
    scene.finish(1)
    assert settled(lambda: scene.pool.uncounted == 0)
    assert alive(scene.pool) == 1


def test_a_job_that_ends_while_it_is_given_up_keeps_its_place(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread is done between two statements of who gives it up."""
    (job,) = scene.begin()
    scene.threads(1)
    part, here = Job.part, threading.get_ident()

    def parted(self: Job) -> bool:
        first = part(self)
        if threading.get_ident() == here:
            scene.finish(1)
            # If it could, the thread would take note of its end meanwhile.
            noted.wait(0.2)
        else:
            noted.set()
        return first

    noted = threading.Event()
    monkeypatch.setattr(Job, "part", parted)
    scene.pool.give_up(job)
    assert noted.wait(PATIENCE_S)
    assert settled(lambda: scene.pool.uncounted == 0)
    assert settled(lambda: scene.pool._places == alive(scene.pool) == 1)


def test_a_job_that_waited_and_is_wanted_no_more_takes_no_place(scene: Scene) -> None:
    """It may go on for ever: nobody looks after it again."""
    asked, goes_on = threading.Event(), threading.Event()

    def waits_and_hangs(job: Job) -> None:
        with scene.pool.waiting(job):
            assert asked.wait(PATIENCE_S)
        goes_on.set()
        assert scene.go.wait(PATIENCE_S)

    jobs = [scene.pool.submit(waits_and_hangs) for _ in range(SIZE)]
    assert settled(lambda: scene.pool.uncounted == SIZE)
    for job in jobs:
        scene.pool.give_up(job)
    asked.set()
    assert goes_on.wait(PATIENCE_S)
    assert scene.pool.lost == SIZE
    scene.begin(SIZE)
    assert len(scene.threads(SIZE)) == SIZE
    scene.finish(SIZE)
    assert settled(lambda: scene.pool.uncounted == 0)


def no_thread(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_where_no_thread_can_be_started_the_next_job_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was refused must not be served later, and no place is lost."""
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_thread)
        for _ in range(SIZE):
            with pytest.raises(Unavailable):
                scene.begin()
    assert scene.pool._places == 0
    scene.begin(SIZE)
    assert len(scene.threads(SIZE)) == SIZE
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
    assert settled(lambda: scene.pool._places == alive(scene.pool) == SIZE)


def test_counting_a_job_that_is_counted_changes_nothing(scene: Scene) -> None:
    (job,) = scene.begin()
    scene.threads(1)
    scene.pool.count(job)
    assert alive(scene.pool) == 1


def test_idle_threads_end_after_a_while(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    monkeypatch.setattr(user_threads, "IDLE_SECONDS", 0.02)
    scene.begin(SIZE)
    scene.threads(SIZE)
    scene.finish(SIZE)
    assert settled(lambda: alive(scene.pool) == 0)
    scene.begin()
    scene.threads(1)


def test_jobs_that_come_while_threads_give_up_are_run(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    monkeypatch.setattr(user_threads, "IDLE_SECONDS", 0.0005)
    scene.go.set()
    tick = threading.Event()
    for _ in range(200):
        scene.begin()
        scene.threads(1)
        scene.finish(1)
        tick.wait(0.0005)
    assert alive(scene.pool) <= SIZE


def test_a_closed_pool_lets_running_jobs_go_on_and_takes_no_more(scene: Scene) -> None:
    scene.begin(SIZE)
    scene.threads(SIZE)
    scene.pool.close()
    with pytest.raises(Unavailable):
        scene.begin()
    threads = scene.finish(SIZE)
    assert settled(
        lambda: threads.isdisjoint(each.ident for each in threading.enumerate())
    )


HALF: Final = 2


@pytest.fixture
def shared() -> Iterator[Scene]:
    """Four places, of which strangers may have two."""
    pool = UserThreads(2 * HALF)
    made = Scene(pool)
    yield made
    made.go.set()
    pool.close()


def test_strangers_have_half_of_the_places(shared: Scene) -> None:
    shared.begin(10, stranger=True)
    assert len(shared.threads(HALF)) == HALF
    assert shared.idle()
    shared.begin(HALF)
    shared.threads(HALF)
    assert shared.idle()
    shared.finish(10 + HALF)
    assert shared.threads(10 - HALF)
    assert settled(lambda: shared.pool._strangers._number == 0)


def test_a_stranger_that_waits_for_an_answer_lets_another_run(shared: Scene) -> None:
    shared.wait(3, stranger=True)
    shared.threads(3)
    assert settled(lambda: shared.pool.uncounted == 3)
    shared.begin(HALF + 1, stranger=True)
    shared.threads(HALF)
    assert shared.idle()
    shared.finish(3 + HALF + 1)
    assert settled(lambda: shared.pool._strangers._number == 0)
    assert settled(lambda: alive(shared.pool) == 2 * HALF)


def test_strangers_who_go_on_take_no_places_of_others(shared: Scene) -> None:
    """Those who were answered while others run keep no place until they are done."""
    answered = threading.Event()
    asking = [
        shared.pool.submit(_asks(shared, answered), "asks", stranger=True)
        for _ in range(HALF)
    ]
    assert settled(lambda: shared.pool.uncounted == HALF)
    shared.begin(HALF, stranger=True)
    shared.threads(HALF)
    answered.set()
    shared.threads(HALF)
    assert [each.counted for each in asking] == [False] * HALF
    shared.begin(HALF)
    shared.threads(HALF)
    shared.finish(3 * HALF)
    assert settled(lambda: shared.pool.uncounted == 0)
    assert settled(lambda: alive(shared.pool) == 2 * HALF)


def _asks(scene: Scene, answered: threading.Event) -> Callable[[Job], None]:
    def work(job: Job) -> None:
        with scene.pool.waiting(job):
            assert answered.wait(PATIENCE_S)
        scene._hold(job)

    return work


def test_strangers_who_leave_do_not_take_all_threads(shared: Scene) -> None:
    most = shared.pool.ceiling // 2
    for _ in range(most):
        (job,) = shared.begin(stranger=True)
        shared.threads(1)
        shared.pool.give_up(job)
    with pytest.raises(Unavailable):
        shared.begin(stranger=True)
    shared.begin(2 * HALF)
    assert len(shared.threads(2 * HALF)) == 2 * HALF
    shared.finish(most + 2 * HALF)
    assert settled(lambda: shared.pool.uncounted == 0)
    assert settled(lambda: alive(shared.pool) == 2 * HALF)
    shared.begin(stranger=True)
    shared.threads(1)


def test_strangers_whose_call_is_given_up_lose_their_share(shared: Scene) -> None:
    jobs = shared.begin(HALF + 2, stranger=True)
    shared.threads(HALF)
    # One waits aside, and never runs; of one that hangs another has the share.
    shared.pool.give_up(jobs[HALF])
    assert shared.idle()
    shared.pool.give_up(jobs[0])
    shared.threads(1)
    shared.finish(HALF + 1)
    assert settled(lambda: shared.pool._strangers._number == 0)
    assert shared.idle()


def test_a_stranger_that_has_not_begun_is_given_up(shared: Scene) -> None:
    shared.begin(2 * HALF)
    shared.threads(2 * HALF)
    jobs = shared.begin(HALF + 1, stranger=True)
    for each in jobs[:HALF]:
        shared.pool.give_up(each)
        shared.pool.give_up(each)
    assert shared.pool._strangers._number == 1
    assert shared.pool.uncounted == 0
    shared.finish(2 * HALF + 1)
    assert settled(lambda: shared.pool._strangers._number == 0)


def test_no_thread_for_a_stranger_could_be_started(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        for _ in range(HALF + 1):
            with pytest.raises(Unavailable):
                shared.begin(stranger=True)
    shared.begin(HALF, stranger=True)
    shared.threads(HALF)
