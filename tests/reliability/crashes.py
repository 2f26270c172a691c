"""A database that crashes and recovers, while clients of all kinds go on.

What a client was told is there afterwards: each message of a stream, the line of each
call that must not run twice, each session.  Nobody is told that a session or a key is
not known, every call has its answer in the end, and no process is started again.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Self
from uuid import uuid4

from mcp_app.pools.database import unavailable
from tests.drill.databases import prepare_database
from tests.process.clusters import (
    FOR_ALL,
    KINDS,
    PREPARE,
    asked_for_secrets,
    run_python,
)
from tests.process.streaming import Session
from tests.reliability import once
from tests.reliability.databases import owned
from tests.reliability.flock import Flock
from tests.reliability.load import listing, opened
from tests.reliability.resuming import MESSAGES, Told, again, followed
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "database crash"
CLIENTS: Final = 16


@dataclass(slots=True)
class Visit:
    session: Session
    told: Told = field(default_factory=lambda: Told(MESSAGES))
    key: str = field(default_factory=lambda: uuid4().hex)
    body: bytes = b""
    entered: dict[str, Any] | None = None
    answers: list[dict[str, Any] | None] = field(default_factory=list)

    def work(self, flock: Flock, seed: str) -> None:
        self.body = once.ledger(self.key, once.SLEEP_S)
        self.answers.append(_insisted(lambda: once.added(flock)))
        self.told = followed(flock, self.session, seed)
        self.answers.append(once.eventually(flock, self.session, listing()))
        self.entered = once.eventually(flock, self.session, self.body)
        self.answers.append(_insisted(lambda: _secrets(flock)))

    @property
    def asked(self) -> int:
        entered = self.entered is not None
        return len(self.told.messages) + entered + len(self.answers)

    @property
    def unanswered(self) -> int:
        missing = [*self.answers, self.entered].count(None)
        return missing + (not self.told.over)

    def faults(self, flock: Flock, lines: Counter[str], within: float) -> Iterator[str]:
        """Yield what was wrong, or is not as the client was told; `lines` by key."""
        for each in self.answers:
            if each is not None and "result" not in each:
                yield f"answered {each}"
        if self.told.judged(0, may_fail=False).wrong:
            yield f"told {self.told}"
        if self._streamed(flock, within) != self.told.messages:
            yield f"not told again: {self.told}"
        yield from self._entered(flock, lines[self.key])
        known = once.eventually(flock, self.session, listing())
        if known is None or "result" not in known:
            yield f"a session is not known: {known}"

    def _streamed(self, flock: Flock, patience: float) -> list[dict[str, Any]]:
        told = Told(MESSAGES, self.told.name, 0)
        end = time.monotonic() + patience
        while self.told.name and not told.over and time.monotonic() < end:
            answer = again(self.session, random.choice(flock.urls), told, b"")
            answer.wait(within=patience)
            if not answer.ended:
                answer.leave()
            told.take_of(answer)
        return told.messages

    def _entered(self, flock: Flock, lines: int) -> Iterator[str]:
        if self.entered is None:
            return
        result = self.entered.get("result", {})
        # Its own statement may have met the crash, before or after the commit.
        has_failed = result.get("isError") or _got_no_connection(self.entered)
        enough = (0, 1) if has_failed else (1,)
        if not (result or has_failed) or lines not in enough:
            yield f"{lines} lines, answered {self.entered}"
        if once.eventually(flock, self.session, self.body) != self.entered:
            yield f"another answer than {self.entered}"


def _got_no_connection(answer: dict[str, Any]) -> bool:
    """Whether a tool's own statement found the database still starting."""
    return bool(answer.get("error", {}).get("message") == unavailable().message)


def _insisted(ask: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    end = time.monotonic() + once.PATIENCE_S
    while (found := ask()) is None and time.monotonic() < end:
        time.sleep(once.RETRY_S)
    return found


def _secrets(flock: Flock) -> dict[str, Any] | None:
    """Ask for what only a user sees; other tools are no result."""
    found = once.answer_of([asked_for_secrets(random.choice(flock.urls), "user0")])
    if found is None or "result" not in found:
        return found
    names = {each["name"] for each in found["result"]["tools"]} - FOR_ALL
    return found if names == {"secret"} else {"listed": names}


class Visitors:
    """Clients that make one visit after the other, as long as the block runs.

    Where it ends with an exception, what they wait for is not waited for.
    """

    def __init__(self, flock: Flock, seed: int) -> None:
        self._flock = flock
        self._over = threading.Event()
        self._changed = threading.Condition()
        self._visits: list[Visit] = []
        self._errors: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._run, args=(f"{seed} {number}",), daemon=True)
            for number in range(CLIENTS)
        ]

    def _run(self, seed: str) -> None:
        try:
            while not self._over.is_set():
                visit = Visit(opened(self._flock))
                visit.work(self._flock, seed)
                with self._changed:
                    self._visits.append(visit)
                    self._changed.notify_all()
        except Exception as error:
            with self._changed:
                self._errors.append(error)
                self._changed.notify_all()

    def taken(self, enough: int = 0) -> list[Visit]:
        """Wait for so many visits, and return those since this was asked last."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._errors or len(self._visits) >= enough, 2 * once.PATIENCE_S
            )
            for error in self._errors:
                raise error
            taken, self._visits = self._visits, []
        return taken

    def stop(self) -> None:
        self._over.set()
        for each in self._threads:
            each.join()

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            # Nobody wants to know any more: whoever asks again, gives up.
            self._flock.urls.clear()
        else:
            self.stop()


def crashes(site: Site, rounds: int, seed: int = 1) -> Generator[Round]:
    """Yield crashes; what was told before each is looked for after it."""
    chance = random.Random(seed)
    with owned(KINDS[site.cluster.kind].vendor) as server:
        environment = {**site.cluster.environment, "DATABASE_URL": server.url}
        prepare_database(server.url)
        run_python(environment, "-c", PREPARE)
        with Flock(environment) as flock, Visitors(flock, seed) as visitors:
            for number in range(1, rounds + 1):
                visits = visitors.taken(16)
                time.sleep(chance.uniform(0, 0.5))
                # With what was answered in this moment.
                visits += visitors.taken()
                server.crash(chance)
                time.sleep(chance.uniform(0, 2.0))
                server.start()
                if number == rounds:
                    visitors.stop()
                    visits += visitors.taken()
                yield _judged(visits, flock, server.ledger(), site.patience)


def _judged(
    visits: list[Visit], flock: Flock, lines: Counter[str], patience: float
) -> Round:
    def faults(visit: Visit) -> list[str]:
        found = list(visit.faults(flock, lines, patience))
        visit.session.at(random.choice(flock.urls)).close().wait()
        return found

    with ThreadPoolExecutor(CLIENTS) as pool:
        found = [fault for each in pool.map(faults, visits) for fault in each]
    found += [f"a process ended: {each}" for each in flock.ended]
    for each in found:
        print(f"{TEST}: {each}", file=sys.stderr)
    return Round(
        test=TEST,
        asked=sum(each.asked for each in visits),
        wrong=len(found),
        unanswered=sum(each.unanswered for each in visits),
        kills=1,
        resumes=sum(each.told.resumes for each in visits),
    )
