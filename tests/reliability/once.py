"""Calls that must not run twice, at processes that are killed, paused and stopped.

A client that got no answer sends the same request again, to any process, until it has
one.  Whatever happens, the call ran at most once, and each answer to it is the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final
from uuid import uuid4

from tests.process.streaming import Answer, Session, called, encoded
from tests.reliability.flock import COUNT, Flock, Killer, under_kill
from tests.reliability.resuming import Told, read_on, request
from tests.reliability.rounds import Round
from tests.reliability.site import Site

KILLED: Final = "kill in a call"
PAUSED: Final = "zombie"
RESTARTED: Final = "rolling restart"
CLIENTS: Final = 20
SLEEP_S: Final = 0.1
PATIENCE_S: Final = 120.0
RETRY_S: Final = 0.1
KILLS: Final = 0.1
AGAIN: Final = 0.2
"""The part of the requests that are sent twice at once."""
UNAVAILABLE: Final = 503
STREAMS: Final = 10
LONG: Final = 40
AWAKE_S: Final = 3.0
"""What a process that goes on wants to say is said by then."""


def ledger(key: str, seconds: float) -> bytes:
    """Return a call that enters a line, sleeps, and counts the lines of its key."""
    params = {"name": "drill_ledger", "arguments": {"key": key, "seconds": seconds}}
    return encoded(id=uuid4().hex, method="tools/call", params=params)


def answer_of(answers: Iterable[Answer]) -> dict[str, Any] | None:
    """Wait for answers, and return what one of them says; None where none does.

    Nobody may be told that a session, or who asks, is not known.
    """
    found = None
    for each in list(answers):
        each.wait()
        if each.status in (401, 404):
            return {"status": each.status}
        if each.status not in (0, UNAVAILABLE) and each.error is None:
            last: dict[str, Any] = each.messages[-1] if each.messages else {}
            found = last if "id" in last else found
    return found


def insisted(flock: Flock, session: Session, seed: str) -> tuple[int, int, bool]:
    """Call until there is an answer; return answers, faults, whether there was one."""
    chance = random.Random(seed)
    key = uuid4().hex
    body, answer = ledger(key, SLEEP_S), None
    end = time.monotonic() + PATIENCE_S
    while answer is None and flock.has_time(end):
        urls = chance.sample(flock.urls, 1 + (chance.random() < AGAIN))
        with flock.busy(urls[0]):
            answer = answer_of([session.at(url).send(body) for url in urls])
        if answer is None:
            time.sleep(RETRY_S)
    if answer is None:
        return 0, 0, False
    others = [eventually(flock, session, body), eventually(flock, session, body)]
    lines = eventually(flock, session, ledger(key, 0))
    return 4, sum(each != answer for each in others) + _twice(answer, lines), True


def eventually(flock: Flock, session: Session, body: bytes) -> dict[str, Any] | None:
    end = time.monotonic() + PATIENCE_S
    while flock.has_time(end):
        url = random.choice(flock.urls)
        if found := answer_of([session.at(url).send(body)]):
            return found
        time.sleep(RETRY_S)
    return None


def _twice(answer: dict[str, Any], lines: dict[str, Any] | None) -> int:
    """Whether a call ran twice, or was answered and did not run.

    `lines` is the answer to one more call, which has entered a line of its own.
    """
    if lines is None or "result" not in lines:
        # That one was killed, too.
        return 0
    if "structuredContent" not in lines["result"]:
        raise AssertionError(f"The drill's ledger could not be read: {lines}")
    entered = lines["result"]["structuredContent"]["result"] - 1
    return int(entered != 1 if "result" in answer else entered > 1)


def killed(site: Site, rounds: int, seed: int = 2) -> Generator[Round]:
    clients = min(CLIENTS, rounds)
    sessions = [Session(site.cluster.urls[0]) for _ in range(clients)]

    def insist(number: int) -> tuple[int, int, bool]:
        return insisted(flock, sessions[number % clients], f"{seed} {number}")

    with Flock(site.cluster.environment) as flock, Killer(flock, seed) as killer:
        for asked, wrong, answered in under_kill(
            insist, flock, killer, clients=clients, rounds=rounds, kills=KILLS
        ):
            yield Round(
                test=KILLED,
                asked=asked,
                wrong=wrong,
                unanswered=not answered,
                kills=killer.taken(),
            )


def zombies(site: Site, rounds: int) -> Generator[Round]:
    """Yield streams of processes that stood still until others took them for dead.

    What such a process says when it goes on must not be added.
    """
    here = site.cluster.urls[0]
    with Flock(site.cluster.environment, 1) as flock:
        for first in range(0, rounds, STREAMS):
            count = min(STREAMS, rounds - first)
            calls = [_begun(flock.urls[0]) for _ in range(count)]
            with flock.paused(0):
                ended = [
                    read_on(session, here, Told(LONG), body) for session, body in calls
                ]
            # It is awake when it answers.
            added(flock)
            time.sleep(AWAKE_S)
            for (session, body), before in zip(calls, ended, strict=True):
                after = read_on(session, here, Told(LONG), body)
                same = after.messages == before.messages
                yield Round(
                    test=PAUSED,
                    asked=len(after.messages),
                    wrong=before.wrong + after.wrong + (not same),
                    unanswered=not before.over,
                )


def _begun(url: str) -> tuple[Session, bytes]:
    session, body = Session(url), request(LONG, 500)
    answer = session.send(body)
    answer.until(lambda each: each.messages)
    answer.leave()
    return session, body


def restarts(site: Site, rounds: int, processes: int = COUNT) -> Generator[Round]:
    """Yield restarts of one process after the other, while clients call.

    What is refused with 503, or not taken at all, is called at another process.
    """
    environment = site.cluster.environment
    with Flock(environment, processes) as flock, ThreadPoolExecutor(1) as pool:
        sessions = [Session(site.cluster.urls[0]) for _ in range(CLIENTS // 2)]
        for number in range(rounds):
            stopped = pool.submit(flock.stop, number % len(flock.urls))
            asked = wrong = failed = 0
            while not stopped.done():
                for found in _served(flock, sessions, str(number)):
                    asked += 1
                    failed += found is None
                    wrong += found is not None and "result" not in found
            yield Round(
                test=RESTARTED,
                asked=asked,
                wrong=wrong + (stopped.result() != 0),
                unanswered=failed,
                kills=1,
            )


def _served(
    flock: Flock, sessions: list[Session], key: str
) -> Generator[dict[str, Any] | None]:
    with ThreadPoolExecutor(len(sessions) + 1) as pool:
        calls = [
            pool.submit(eventually, flock, each, ledger(f"restart {key}", SLEEP_S))
            for each in sessions
        ]
        calls.append(pool.submit(added, flock))
        for each in as_completed(calls):
            yield each.result()


def added(flock: Flock) -> dict[str, Any] | None:
    for url in random.sample(flock.urls, len(flock.urls)):
        if found := answer_of([called(url, "drill_add", a=1, b=2)]):
            return found
    return None
