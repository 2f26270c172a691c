"""The threads that run synchronous user code.

At most `size` calls run at the same time.  A thread that waits for a person's answer,
or whose call has exceeded its time limit, is not counted: a substitute starts, up to
four times `size` threads in all.  Jobs of strangers, who have not signed in, get half
of the places; more of them wait aside.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from django.db import connections

from mcp_app.protocol.errors import Unavailable

logger = logging.getLogger("mcp_app.calls")

IDLE_SECONDS = 30.0
SUBSTITUTES = 4


class Job:
    """A piece of work; `counted` says whether its thread holds one of the places.

    `has_share` says whether it is one of the strangers' jobs that may run.
    """

    __slots__ = (
        "_unbegun",
        "_wanted",
        "counted",
        "has_share",
        "name",
        "stranger",
        "work",
    )

    def __init__(
        self, work: Callable[[Job], None], name: str, *, stranger: bool
    ) -> None:
        self.work = work
        self.name = name
        self.stranger = stranger
        self.counted = True
        self.has_share = False
        # Lists of one item: if several threads pop, only one gets it.
        self._unbegun = [True]
        self._wanted = [True]

    def claim(self) -> bool:
        """Take the job, to run it or to withdraw it; True for the first caller only."""
        return _first(self._unbegun)

    @property
    def is_unwanted(self) -> bool:
        """Whether the job is finished or given up."""
        return not self._wanted

    def part(self) -> bool:
        """Finish the job or give it up; True for the first caller only."""
        return _first(self._wanted)


def _first(token: list[bool]) -> bool:
    try:
        return token.pop()
    except IndexError:
        return False


class _Strangers:
    """Which jobs of strangers may run; the others wait here, in their order.

    Strangers have half of the places, and half of the threads that may wait or hang.
    """

    def __init__(self, places: int, ceiling: int) -> None:
        self._places = max(1, places // 2)
        self._ceiling = max(1, ceiling // 2)
        self._number = 0
        self._waiting = 0
        self._queue: dict[Job, None] = {}

    @property
    def is_full(self) -> bool:
        """Whether so many threads wait or hang that none may begin."""
        return self._waiting >= self._ceiling

    def admits(self, job: Job) -> bool:
        """Whether a job may run now; else it waits."""
        if not self.resumes(job):
            self._queue[job] = None
        return job.has_share

    def resumes(self, job: Job) -> bool:
        """Whether a job may have one of the places."""
        if self._number < self._places:
            job.has_share = True
            self._number += 1
        return job.has_share

    def add_waiting(self, more: int) -> None:
        """Count threads that wait or hang."""
        self._waiting += more

    def end(self, job: Job) -> None:
        """Forget a job."""
        self._queue.pop(job, None)
        if job.has_share:
            job.has_share = False
            self._number -= 1

    def following(self) -> Iterator[Job]:
        """Yield those that waited and may run now."""
        while self._queue and not self.is_full and self._number < self._places:
            job = next(iter(self._queue))
            del self._queue[job]
            self.resumes(job)
            yield job


class NoPlace(Unavailable):
    """Nothing was run: all threads wait or hang."""


class UserThreads:
    """A pool of daemon threads: a call that never ends does not keep a process alive.

    Each counted thread is a place.  A thread whose job is not counted gives its place
    to another.  When it goes on, there is one thread too many for a moment, and the
    next one that is done ends.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.ceiling = size * SUBSTITUTES
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._places = 0
        self._uncounted: set[Job] = set()
        self._strangers = _Strangers(size, self.ceiling)
        self._closed = False

    def submit(
        self, work: Callable[[Job], None], name: str = "", *, stranger: bool = False
    ) -> Job:
        """Run `work` as soon as a place is free; raise `NoPlace` if none can be.

        `work` gets its job, and must not raise; `name` is for the log.
        """
        if self._closed or len(self._uncounted) >= self.ceiling:
            raise self._no_place()
        job = Job(work, name, stranger=stranger)
        if stranger and not self._admits(job):
            return job
        self._jobs.put(job)
        if self._places < self.size and not self._start_thread() and job.claim():
            with self._lock:
                self._end(job)
            raise NoPlace("No thread for user code could be started.")
        return job

    def _admits(self, job: Job) -> bool:
        """Whether a stranger's job may run now; raise `NoPlace` if it never can."""
        with self._lock:
            if self._strangers.is_full:
                # No log line: strangers could write as many as they like.
                raise NoPlace(
                    "All threads of callers who did not sign in wait or hang."
                )
            return self._strangers.admits(job)

    def uncount(self, job: Job) -> None:
        """Give the job's place away, if it has one: it waits for an answer or hangs."""
        with self._lock:
            if not job.is_unwanted:
                self._uncount(job)
        if not self._jobs.empty():
            self._start_thread()

    def _uncount(self, job: Job) -> None:
        """Take the place; the caller holds the lock."""
        if job.counted:
            job.counted = False
            self._places -= 1
            self._uncounted.add(job)
            self._strangers.add_waiting(job.stranger)
            self._end(job)

    def _end(self, job: Job) -> None:
        """Let others run for a stranger's job; the caller holds the lock."""
        if job.stranger:
            self._strangers.end(job)
            self._begin_others()

    def _begin_others(self) -> None:
        """Let strangers' jobs run that waited; the caller holds the lock."""
        for each in () if self._closed else self._strangers.following():
            self._jobs.put(each)

    def count(self, job: Job) -> None:
        """Count a job that goes on; more than `size` may run for a moment.

        A job that was given up stays without a place until its thread is done, and so
        does a stranger's for which none is left.
        """
        with self._lock:
            waits = job in self._uncounted and not job.is_unwanted
            if waits and (not job.stranger or self._strangers.resumes(job)):
                self._count(job)

    def _count(self, job: Job) -> None:
        """Return the place; the caller holds the lock."""
        if job in self._uncounted:
            self._uncounted.remove(job)
            job.counted = True
            self._places += 1
            self._strangers.add_waiting(-job.stranger)
            self._begin_others()

    @contextmanager
    def waiting(self, job: Job) -> Iterator[None]:
        """Let a substitute work while this job's thread waits for an answer."""
        self.uncount(job)
        try:
            yield
        finally:
            self.count(job)

    def give_up(self, job: Job) -> None:
        """Give a job up; if a thread has started it, that loses its place."""
        is_unbegun = job.claim()
        with self._lock:
            # Its thread may finish at this moment: then it keeps its place.
            is_running = job.part() and not is_unbegun
            if is_running:
                self._uncount(job)
            else:
                self._end(job)
        if not self._jobs.empty():
            self._start_thread()

    def close(self) -> None:
        """Let idle threads end; running jobs go on."""
        with self._lock:
            self._closed = True
            for _ in range(self._places):
                self._jobs.put(None)

    @property
    def uncounted(self) -> int:
        """How many threads wait for an answer or hang."""
        return len(self._uncounted)

    @property
    def lost(self) -> int:
        """How many threads still run for a call that is over."""
        with self._lock:
            return sum(job.is_unwanted for job in self._uncounted)

    def _no_place(self) -> NoPlace:
        with self._lock:
            names = Counter(job.name for job in self._uncounted)
        logger.error(
            "No thread for user code is free. Waiting or hanging: %s.", dict(names)
        )
        return NoPlace(f"All {self.ceiling} threads for user code wait or hang.")

    def _start_thread(self) -> bool:
        """Start a thread if there is a place; return whether any thread has one."""
        with self._lock:
            alive = self._places + len(self._uncounted)
            if self._places >= self.size or alive >= self.ceiling:
                return True
            self._places += 1
        thread = threading.Thread(target=self._serve, name="mcp-user-code", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            logger.exception("No thread for user code could be started.")
            return self._without_thread()
        return True

    def _without_thread(self) -> bool:
        """Take back the place of a thread that did not start."""
        with self._lock:
            self._places -= 1
            return self._places > 0

    def _serve(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                if self._gives_up():
                    break
                continue
            if job is None or not self._run(job):
                break
        connections.close_all()

    def _run(self, job: Job) -> bool:
        """Run a job; return whether this thread is still needed."""
        if job.claim():
            job.work(job)
            with self._lock:
                job.part()
                self._count(job)
                self._end(job)
        return self._places <= self.size or not self._leave()

    def _leave(self) -> bool:
        """Give up a place if there is one too many."""
        with self._lock:
            if self._places <= self.size:
                return False
            self._places -= 1
            return True

    def _gives_up(self) -> bool:
        """Give up the place of a thread that found no work for a while."""
        with self._lock:
            self._places -= 1
        if self._jobs.empty():
            return True
        # A job came while this thread was leaving, and found its place still taken.
        with self._lock:
            self._places += 1
        return False
