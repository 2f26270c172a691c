"""Clients of both eras that call, follow and listen, whatever is killed meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self
from uuid import uuid4

from tests.process import streaming
from tests.reliability import once
from tests.reliability.flock import Flock
from tests.reliability.resuming import followed
from tests.reliability.rounds import Round

TEST: Final = "load"
CALLS: Final = 10
"""After so many a client closes its session, and opens another."""
NOT_FOUND: Final = 404
CLOSED: Final = (204, NOT_FOUND)
"""404: the first answer was lost."""


@dataclass(frozen=True, slots=True)
class Client:
    flock: Flock
    session: streaming.Session
    chance: random.Random

    def _seed(self) -> str:
        return str(self.chance.random())

    def changes(self) -> Round:
        asked, wrong, answered = once.insisted(self.flock, self.session, self._seed())
        return Round(test=TEST, asked=asked, wrong=wrong, unanswered=not answered)

    def follows(self) -> Round:
        told = followed(self.flock, self.session, self._seed())
        return told.judged(0, may_fail=True)

    def reads(self) -> Round:
        answers = (
            once.eventually(self.flock, self.session, listing()),
            once.added(self.flock),
        )
        return Round(
            test=TEST,
            asked=sum(each is not None for each in answers),
            wrong=sum(each is not None and "result" not in each for each in answers),
            unanswered=answers.count(None),
        )

    def stands(self) -> Round:
        return self._held(lambda url, last: self.session.at(url).stream(last))

    def listens(self) -> Round:
        headers, body = streaming.stateless_request(
            "subscriptions/listen", notifications={"toolsListChanged": True}
        )
        return self._held(lambda url, _: streaming.Answer(url, "POST", headers, body))

    def _held(self, begin: Callable[[str, str | None], streaming.Answer]) -> Round:
        opened = wrong = resumes = 0
        last = None
        for _ in range(3):
            answer = begin(self.chance.choice(self.flock.urls), last)
            answer.wait(lambda each: each.raw)
            if answer.status == 200:
                opened, resumes = opened + 1, resumes + (last is not None)
                time.sleep(1.0)
                last = answer.ids[-1] if answer.ids else last
                if not answer.ended:
                    answer.leave()
            else:
                wrong += answer.status not in (0, once.UNAVAILABLE)
                time.sleep(once.RETRY_S)
        return Round(test=TEST, asked=opened, wrong=wrong, resumes=resumes)

    def closes(self) -> Round:
        tries, end = 0, time.monotonic() + once.PATIENCE_S
        while time.monotonic() < end:
            answer = self.session.at(self.chance.choice(self.flock.urls)).close()
            answer.wait()
            if answer.status in CLOSED:
                # As a first answer it says that the session was lost.
                wrong = answer.status == NOT_FOUND and not tries
                return Round(test=TEST, asked=1, wrong=wrong)
            tries += 1
            time.sleep(once.RETRY_S)
        return Round(test=TEST, unanswered=1)


WORK: Final[Mapping[Callable[[Client], Round], int]] = {
    Client.changes: 4,
    Client.follows: 3,
    Client.reads: 4,
    Client.stands: 1,
    Client.listens: 1,
}


def listing() -> bytes:
    return streaming.encoded(id=uuid4().hex, method="tools/list")


def opened(flock: Flock) -> streaming.Session:
    end = time.monotonic() + once.PATIENCE_S
    while time.monotonic() < end:
        try:
            # The process may be killed meanwhile, or not be there yet.
            with suppress(AssertionError):
                return streaming.Session(random.choice(flock.urls))
        except streaming.SessionRefused as refused:
            if refused.status != once.UNAVAILABLE:
                raise
        time.sleep(once.RETRY_S)
    raise TimeoutError(f"No process has opened a session in {once.PATIENCE_S:g} s.")


class Load:
    def __init__(self, flock: Flock, clients: int, seed: int) -> None:
        self._flock = flock
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._found: list[Round] = []
        self._errors: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._run, args=(f"{seed} {number}",), daemon=True)
            for number in range(clients)
        ]

    def _run(self, seed: str) -> None:
        chance = random.Random(seed)
        try:
            while not self._over.is_set():
                self._visit(Client(self._flock, opened(self._flock), chance))
        except Exception as error:
            self._errors.append(error)

    def _visit(self, client: Client) -> None:
        work, weights = list(WORK), list(WORK.values())
        for each in client.chance.choices(work, weights, k=CALLS):
            if self._over.is_set():
                break
            self._note(each(client))
        self._note(client.closes())

    def _note(self, found: Round) -> None:
        with self._lock:
            self._found.append(found)

    def taken(self) -> list[Round]:
        for error in self._errors:
            raise error
        with self._lock:
            found, self._found = self._found, []
        return found

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join()
