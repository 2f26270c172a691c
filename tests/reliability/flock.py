"""Processes that are killed, paused, stopped and started again while clients go on."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import ClassVar, Final, Self, TypeVar
from urllib.parse import urlsplit

from tests.drill.running import DrillServer, started

Done = TypeVar("Done")

COUNT: Final = 4
ERROR: Final = '"level": "ERROR"'
PAUSE_S: Final = 1.0
"""Between two kills, so that clients have begun something again."""


class Flock:
    """Server processes of one site, by its environment; besides those of a cluster.

    Clients say with `busy` what they have running where.  One database server has one
    flock at a time: two have more connections than PostgreSQL takes by default.
    """

    _TURNS: ClassVar[defaultdict[str, threading.Lock]] = defaultdict(threading.Lock)

    def __init__(self, environment: Mapping[str, str], count: int = COUNT) -> None:
        self._environment = {**environment, "WIRE": ""}
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        self._logs: list[str] = []
        """What processes wrote that have ended."""
        self.left = False
        """Whether nobody wants to know any more what calls are answered."""
        self._turn = self._TURNS[urlsplit(environment["DATABASE_URL"]).netloc]
        self._turn.acquire()
        try:
            with ThreadPoolExecutor(count) as pool:
                self._servers = list(pool.map(lambda _: self._start(), range(count)))
        except BaseException:
            self._turn.release()
            raise
        self.urls = [each.url for each in self._servers]

    def _start(self, port: int | None = None) -> DrillServer:
        return started("uvicorn", self._environment, port=port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._servers:
            each.kill()
        self._turn.release()

    def has_time(self, end: float) -> bool:
        """Whether a client that waits until `end`, a monotonic time, goes on."""
        return not self.left and time.monotonic() < end

    @contextmanager
    def calling(self, clients: int) -> Iterator[ThreadPoolExecutor]:
        """Give threads for clients; when the block ends, it is over with all of it."""
        pool = ThreadPoolExecutor(clients)
        try:
            yield pool
        except Exception as error:
            error.add_note(f"The processes logged:\n{self._errors()}")
            raise
        finally:
            self.left = True
            # A call that hangs ends with its process.
            for each in self._servers:
                each.kill()
            pool.shutdown(cancel_futures=True)

    def _errors(self) -> str:
        logs = [*self._logs, *(each.output for each in self._servers)]
        lines = [line for log in logs for line in log.splitlines()]
        return "\n".join(each for each in lines if ERROR in each)

    @contextmanager
    def busy(self, url: str) -> Iterator[None]:
        with self._lock:
            self._busy[url] += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy[url] -= 1

    @property
    def pids(self) -> list[int]:
        return [each.process.pid for each in self._servers]

    @property
    def ended(self) -> list[str]:
        return [one.output for one in self._servers if one.process.poll() is not None]

    def is_busy(self, at: int) -> bool:
        return self._busy[self.urls[at]] > 0

    def kill(self, at: int) -> None:
        self._servers[at].kill()
        self._again(at)

    def stop(self, at: int) -> int:
        status = self._servers[at].stop()
        self._again(at)
        return status

    def _again(self, at: int) -> None:
        self._logs.append(self._servers[at].output)
        self._servers[at] = self._start(self._servers[at].port)

    @contextmanager
    def paused(self, at: int) -> Iterator[None]:
        process = self._servers[at].process
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)


class Killer(threading.Thread):
    def __init__(self, flock: Flock, seed: int) -> None:
        super().__init__(daemon=True)
        self._flock = flock
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._kills = self._all = 0
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._over.wait(PAUSE_S):
                at = self._random.randrange(len(self._flock.urls))
                if self._flock.is_busy(at):
                    self._flock.kill(at)
                    with self._lock:
                        self._kills += 1
                        self._all += 1
        except Exception as error:
            self._error = error

    def has_done(self, kills: float) -> bool:
        return self._all >= kills or not self.is_alive()

    def taken(self) -> int:
        with self._lock:
            kills, self._kills = self._kills, 0
        return kills

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        if self._error is not None:
            raise self._error


def under_kill(
    act: Callable[[int], Done],
    flock: Flock,
    killer: Killer,
    *,
    clients: int,
    rounds: int,
    kills: float,
) -> Generator[Done]:
    """Yield what clients did side by side, each time with another number.

    It goes on until there were so many rounds, and so many kills for each of them.
    """
    with flock.calling(clients) as pool:
        begun = min(clients, rounds)
        running = {pool.submit(act, number) for number in range(begun)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for each in ended:
                yield each.result()
                if begun < rounds or not killer.has_done(rounds * kills):
                    running.add(pool.submit(act, begun))
                    begun += 1
