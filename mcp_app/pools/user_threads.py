"""The threads that run sync user code.

At most `size` calls run at the same time.  A thread that waits for a person's
answer, or whose call is past its time, is not counted: a substitute is started, up
to four times `size` threads in all.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcp_app.protocol.errors import Unavailable

logger = logging.getLogger("mcp_app.calls")

IDLE_SECONDS = 30.0
SUBSTITUTES = 4


@dataclass(slots=True, eq=False)
class Job:
    """A piece of work; `counted` says whether it holds one of the places."""

    work: Callable[[Job], None]
    name: str
    counted: bool = field(default=False)


class UserThreads:
    """A pool of daemon threads: a call that never ends does not keep a process."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ceiling = size * SUBSTITUTES
        self._condition = threading.Condition(threading.Lock())
        self._jobs: deque[Job] = deque()
        self._alive = 0
        self._idle = 0
        self._running = 0
        self._uncounted: set[Job] = set()
        self._closed = False

    def submit(self, work: Callable[[Job], None], name: str = "") -> Job:
        """Run `work` as soon as a place is free; raise `Unavailable` if none can be.

        `work` gets its job, and must not raise; `name` is for the log.
        """
        job = Job(work, name)
        if not self._accepted(job):
            raise self._unavailable()
        return job

    def _accepted(self, job: Job) -> bool:
        with self._condition:
            if self._closed or len(self._uncounted) >= self.ceiling:
                return False
            self._jobs.append(job)
            self._serve()
            return True

    def _unavailable(self) -> Unavailable:
        with self._condition:
            names = Counter(job.name for job in self._uncounted)
        logger.error("No thread for user code is free: %s wait or hang.", dict(names))
        return Unavailable(f"All {self.ceiling} threads for user code wait or hang.")

    def uncount(self, job: Job) -> None:
        """Give the job's place away, if it has one: it waits, or it is lost."""
        with self._condition:
            if job.counted:
                job.counted = False
                self._running -= 1
                self._uncounted.add(job)
                self._serve()

    def count(self, job: Job) -> None:
        """The job runs on; for a moment more than `size` may."""
        with self._condition:
            if job in self._uncounted:
                self._uncounted.remove(job)
                job.counted = True
                self._running += 1

    @contextmanager
    def waiting(self, job: Job) -> Iterator[None]:
        """Let a substitute work while this job's thread waits for an answer."""
        self.uncount(job)
        try:
            yield
        finally:
            self.count(job)

    def discard(self, job: Job) -> bool:
        """Take a job back that no thread has begun; tell whether that was so."""
        with self._condition:
            try:
                self._jobs.remove(job)
            except ValueError:
                return False
            return True

    def close(self) -> None:
        """Let idle threads end; running jobs go on."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    @property
    def uncounted(self) -> int:
        """How many threads wait for an answer or are lost."""
        return len(self._uncounted)

    def _serve(self) -> None:
        if not self._jobs or self._running >= self.size:
            return
        if self._idle:
            self._condition.notify()
        elif self._alive < self.ceiling:
            self._alive += 1
            threading.Thread(
                target=self._work, name="mcp-user-code", daemon=True
            ).start()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job.work(job)
            finally:
                self._finished(job)

    def _next(self) -> Job | None:
        with self._condition:
            self._idle += 1
            ready = self._condition.wait_for(self._may_run, IDLE_SECONDS)
            self._idle -= 1
            if not ready or not self._jobs:
                self._alive -= 1
                return None
            job = self._jobs.popleft()
            job.counted = True
            self._running += 1
            # Several jobs may have come for one notification.
            self._serve()
            return job

    def _may_run(self) -> bool:
        return self._closed or (bool(self._jobs) and self._running < self.size)

    def _finished(self, job: Job) -> None:
        with self._condition:
            if job.counted:
                job.counted = False
                self._running -= 1
            self._uncounted.discard(job)
            self._serve()
