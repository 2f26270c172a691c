"""The threads that run synchronous user code.

At most `size` calls run at the same time, and one more for each person who has none
running; all callers whose address is not known share one more.  Other calls wait for
their turn, which goes from person to person.  A thread that waits for a person's answer
is not counted, nor is one whose call has exceeded its time limit: a substitute starts.
There are never more than four times `size` threads, and at most half of them wait or
hang for one person.  Strangers, who have not signed in, have half of them together.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from weakref import WeakSet

from django.db import connections

from mcp_app.pools.connections import end_before_exit
from mcp_app.pools.turns import GUESS, UNKNOWN, Owner, Turns
from mcp_app.protocol.errors import Unavailable

logger = logging.getLogger("mcp_app.calls")

IDLE_SECONDS = 30.0
SUBSTITUTES = 4


class Job:
    """A piece of work of an owner; `counted` says whether it holds one of the places.

    Before its turn comes, and while its thread waits or hangs, it holds none.
    `is_unwanted` says whether it is finished or given up.
    """

    __slots__ = ("_unbegun", "counted", "is_unwanted", "name", "owner", "work")

    def __init__(self, work: Callable[[Job], None], name: str, owner: Owner) -> None:
        self.work = work
        self.name = name
        self.owner = owner
        self.counted = self.is_unwanted = False
        # A list of one item: if several threads pop, only one gets it.
        self._unbegun = [True]

    def claim(self) -> bool:
        """Take the job, to run it or to withdraw it; True for the first caller only."""
        try:
            return self._unbegun.pop()
        except IndexError:
            return False

    @property
    def is_unbegun(self) -> bool:
        return bool(self._unbegun)


class NoPlace(Unavailable):
    """Nothing was run: all threads wait or hang."""


class UserThreads:
    """A pool of daemon threads: a call that never ends does not keep a process alive.

    A job that may begin is counted, and goes to the queue of the threads.  While a job
    waits and is not counted, another thread works in its place.  When the waiting job
    goes on, there is one thread too many, until the next thread ends with its job.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.ceiling = size * SUBSTITUTES
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._turns: Turns[Job] = Turns()
        self._threads = 0
        self._started: WeakSet[threading.Thread] = WeakSet()
        self._begun = 0
        """Jobs that have begun: each needs a thread until it ends."""
        self._running: dict[Owner, int] = {}
        """The counted jobs of each owner that has any."""
        self._uncounted: set[Job] = set()
        self._strangers = 0
        """The jobs of strangers that have begun."""
        self._closed = False

    def submit(self, work: Callable[[Job], None], name: str, owner: Owner) -> Job:
        """Run `work`, which must not raise, at the owner's turn, or raise `NoPlace`."""
        job = Job(work, name, owner)
        with self._lock:
            if self._closed or len(self._uncounted) >= self.ceiling // 2:
                self._check_uncounted(owner)
            if self._may_begin(owner):
                self._begin_job(job)
            else:
                self._turns.append_item(owner, job)
            lacking = self._begun > self._threads
        if lacking and not self._start_threads() and job.claim():
            with self._lock:
                self._end_job(job)
            raise NoPlace("No thread for user code could be started.")
        return job

    def uncount_job(self, job: Job) -> None:
        """Give the job's place away, if it has one: it waits for an answer or hangs."""
        with self._lock:
            if not job.is_unwanted:
                self._uncount_job(job)
        self._start_threads()

    def count_job(self, job: Job) -> None:
        """Count a job that goes on, even beyond `size`, unless it was given up."""
        with self._lock:
            if job in self._uncounted and not job.is_unwanted:
                self._uncounted.remove(job)
                self._add_running(job)

    @contextmanager
    def waiting_for_answer(self, job: Job) -> Iterator[None]:
        """Let a substitute work while this job's thread waits for an answer."""
        self.uncount_job(job)
        try:
            yield
        finally:
            self.count_job(job)

    def give_up_job(self, job: Job) -> None:
        """Give a job up; if a thread has started it, the thread loses its place."""
        is_unbegun = job.claim()
        with self._lock:
            # Its thread may have finished at this moment: then it keeps its place.
            if not job.is_unwanted:
                job.is_unwanted = True
                take_back = self._end_job if is_unbegun else self._uncount_job
                take_back(job)
        self._start_threads()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._jobs.put(None)
        end_before_exit(self._started)

    @property
    def uncounted_threads(self) -> int:
        return len(self._uncounted)

    @property
    def lost_threads(self) -> int:
        with self._lock:
            return sum(job.is_unwanted for job in self._uncounted)

    # -- under the lock -------------------------------------------------------------

    def _check_uncounted(self, owner: Owner) -> None:
        """Raise `NoPlace` if so many threads wait or hang that no job may be added."""
        if self._closed or len(self._uncounted) >= self.ceiling:
            raise self._no_place_error(f"All {self.ceiling} threads for user code")
        if owner.stranger:
            thread_count = sum(each.owner.stranger for each in self._uncounted)
        else:
            thread_count = sum(each.owner == owner for each in self._uncounted)
        if thread_count < self.ceiling // 2 or owner == UNKNOWN:
            return
        if owner.stranger:
            # No log line: strangers could write as many as they like.
            raise NoPlace("All threads of callers who did not sign in wait or hang.")
        raise self._no_place_error(
            f"All {self.ceiling // 2} threads that one caller may hold"
        )

    def _no_place_error(self, threads: str) -> NoPlace:
        names = Counter(job.name for job in self._uncounted)
        logger.error("%s wait or hang: %s.", threads, dict(names))
        return NoPlace(f"{threads} wait or hang.")

    def _may_begin(self, owner: Owner) -> bool:
        begun = self._begun
        if begun >= self.ceiling:
            return False
        if owner.stranger and self._strangers >= self.ceiling // 2:
            return False
        counted = begun - len(self._uncounted)
        # An owner with a running job has no right to a place beyond `size`.
        if counted < self.size or owner in self._running:
            return counted < self.size
        # Many guessed owners may be the same caller: they share one more place.
        return counted == self.size or not owner.person.startswith(GUESS)

    def _begin_job(self, job: Job) -> None:
        self._begun += 1
        self._strangers += job.owner.stranger
        self._add_running(job)
        self._jobs.put(job)

    def _begin_others(self) -> None:
        while self._turns.number and not self._closed:
            try:
                job = self._turns.take_next_item(
                    self._may_begin, strangers=self._strangers < self.ceiling // 2
                )
            except LookupError:
                return
            if job.is_unbegun:
                self._begin_job(job)

    def _add_running(self, job: Job) -> None:
        job.counted = True
        owner = job.owner
        self._running[owner] = self._running.get(owner, 0) + 1

    def _subtract_running(self, job: Job) -> None:
        job.counted = False
        number = self._running.pop(job.owner)
        if number > 1:
            self._running[job.owner] = number - 1

    def _uncount_job(self, job: Job) -> None:
        if job.counted:
            self._subtract_running(job)
            self._uncounted.add(job)
            self._begin_others()

    def _end_job(self, job: Job) -> None:
        """Forget a job; do nothing if it has not begun, or has ended already."""
        if job.counted:
            self._subtract_running(job)
        elif job in self._uncounted:
            self._uncounted.remove(job)
        else:
            return
        self._begun -= 1
        self._strangers -= job.owner.stranger
        if self._turns.number:
            self._begin_others()

    def _release_thread(self) -> bool:
        if self._threads <= self._begun:
            return False
        self._threads -= 1
        return True

    # -- threads --------------------------------------------------------------------

    def _start_threads(self) -> bool:
        """Start the missing threads; return whether any thread can take a job."""
        while True:
            with self._lock:
                if self._begun <= self._threads:
                    return True
                self._threads += 1
            name = "mcp-user-code"
            thread = threading.Thread(target=self._serve_jobs, name=name, daemon=True)
            try:
                thread.start()
                self._started.add(thread)
            except RuntimeError:
                logger.exception("No thread for user code could be started.")
                with self._lock:
                    self._threads -= 1
                    return self._threads > len(self._uncounted)

    def _serve_jobs(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._release_thread():
                        break
                continue
            if job is None:
                with self._lock:
                    self._threads -= 1
                break
            if job.claim():
                job.work(job)
                if not self._finish_job(job):
                    break
        connections.close_all()

    def _finish_job(self, job: Job) -> bool:
        with self._lock:
            job.is_unwanted = True
            self._end_job(job)
            surplus = self._threads - len(self._uncounted) - self.size
            stays = surplus <= 0 or not self._release_thread()
            lacking = self._begun > self._threads
        if lacking:
            self._start_threads()
        return stays
