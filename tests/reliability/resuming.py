"""Streams of calls, whose clients and processes break, and which go on elsewhere.

A client that lost its connection comes back with the id of the last event that it has,
at any process.  Each message must come once, in order and without a gap, up to one that
answers the call: its result, or the error that its process is gone.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Generator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

from tests.process.raw_requests import connected, post_head
from tests.process.streaming import JSON, Answer, Session, encoded
from tests.reliability.flock import Flock, Killer, under_kill
from tests.reliability.rounds import Round
from tests.reliability.site import Site
from tests.wire.events import EventReader

TEST: Final = "resume under kill"
CUT: Final = "cut at every byte"
CLIENTS: Final = 50
MESSAGES: Final = 40
DELAY_MS: Final = 25
KILLS: Final = 0.08
CUTS: Final = 0.3
"""The part of the connections that the client itself cuts."""
PATIENCE_S: Final = 120.0
RETRY_S: Final = 0.1
EVENTS: Final = 20
UNAVAILABLE: Final = 503


@dataclass(slots=True)
class Told:
    count: int
    name: str = ""
    last: int | None = None
    """The number of the last event; None before the first."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    wrong: int = 0
    reason: str = ""
    resumes: int = 0

    @property
    def over(self) -> bool:
        return bool(self.wrong or (self.messages and "method" not in self.messages[-1]))

    @property
    def last_id(self) -> str:
        return f"{self.name}.{self.last}"

    def take(self, status: int, kind: str, body: bytes) -> None:
        """Note what came on one connection, which may have been cut anywhere."""
        if status in (0, UNAVAILABLE):
            return
        if status != 200:
            self._note_wrong(f"HTTP {status}: {body[:300]!r}")
        elif kind == "text/event-stream":
            for event in EventReader().feed(body):
                if event.id is not None:
                    self._hear(event.id, event.data[0])
        else:
            # A repeated request is answered as a whole where nothing came before.
            with suppress(json.JSONDecodeError):
                self.messages.append(json.loads(body))

    def take_of(self, answer: Answer) -> None:
        self.take(answer.status, answer.headers.get("content-type", ""), answer.raw)

    def _hear(self, event_id: str, data: str) -> None:
        name, _, number = event_id.partition(".")
        self.name = self.name or name
        if not data:
            self.last = int(number) if self.last is None else self.last
        elif name == self.name and int(number) == (self.last or 0) + 1:
            self.last = int(number)
            self.messages.append(json.loads(data))
        else:
            self._note_wrong(f"the event {event_id} after {self.last_id}: {data[:300]}")

    def _note_wrong(self, reason: str) -> None:
        self.wrong += 1
        self.reason = self.reason or reason

    def judged(self, kills: int, *, may_fail: bool) -> Round:
        *before, last = self.messages or [{}]
        counted = [each["params"]["progress"] for each in before if "params" in each]
        wrong = self.wrong + (counted != list(range(1, len(before) + 1)))
        if "result" in last:
            wrong += len(before) != self.count
        elif "error" in last:
            wrong += not (may_fail and "is gone" in last["error"]["message"])
        return Round(
            test=TEST,
            asked=len(self.messages),
            wrong=wrong,
            unanswered=not self.over,
            kills=kills,
            resumes=self.resumes,
        )


def request(count: int, delay_ms: int) -> bytes:
    params = {
        "name": "drill_count",
        "arguments": {"n": count, "delay_ms": delay_ms},
        "_meta": {"progressToken": "p"},
    }
    return encoded(id=uuid4().hex, method="tools/call", params=params)


def again(session: Session, url: str, told: Told, body: bytes) -> Answer:
    if told.last is None:
        return session.at(url).send(body)
    told.resumes += 1
    return session.at(url).stream(told.last_id)


def read_on(session: Session, url: str, told: Told, body: bytes) -> Told:
    """Read what follows at one process, until the call is answered."""
    end = time.monotonic() + PATIENCE_S
    while not told.over and time.monotonic() < end:
        answer = again(session, url, told, body)
        answer.wait()
        told.take_of(answer)
        if not told.over:
            time.sleep(RETRY_S)
    return told


def followed(flock: Flock, session: Session, seed: str) -> Told:
    chance = random.Random(seed)
    told, body = Told(MESSAGES), request(MESSAGES, DELAY_MS)
    end = time.monotonic() + PATIENCE_S
    while not told.over and flock.has_time(end):
        url = chance.choice(flock.urls)
        with nullcontext() if told.last is not None else flock.busy(url):
            answer = again(session, url, told, body)
            if chance.random() < CUTS:
                answer.wait(partial(_has, chance.randrange(1, MESSAGES)))
                if not answer.ended:
                    answer.leave()
            else:
                answer.wait()
        before = len(told.messages)
        told.take_of(answer)
        if len(told.messages) == before:
            time.sleep(RETRY_S)
    return told


def _has(events: int, answer: Answer) -> bool:
    return answer.raw.count(b"\n\n") > events


def resumes(site: Site, rounds: int, seed: int = 1) -> Generator[Round]:
    clients = min(CLIENTS, rounds)
    sessions = [Session(site.cluster.urls[0]) for _ in range(clients)]

    def follow(number: int) -> Told:
        return followed(flock, sessions[number % clients], f"{seed} {number}")

    with Flock(site.cluster.environment) as flock, Killer(flock, seed) as killer:
        for each in under_kill(
            follow, flock, killer, clients=clients, rounds=rounds, kills=KILLS
        ):
            yield each.judged(killer.taken(), may_fail=True)


def cuts(site: Site, rounds: int) -> Generator[Round]:
    """Yield calls whose answer was cut after each number of bytes, evenly spread."""
    here, there, *_ = site.cluster.urls
    session = Session(here)
    whole = _read(here, session, request(EVENTS, 0), None)
    for number in range(rounds):
        after = 1 + number * len(whole) // rounds
        told, body = Told(EVENTS), request(EVENTS, 0)
        told.take(*_parsed(_read(here, session, body, after)))
        read_on(session, there, told, body)
        yield replace(told.judged(0, may_fail=False), test=CUT)


def _read(url: str, session: Session, body: bytes, most: int | None) -> bytes:
    found = b""
    own = {"Connection": "close", "Content-Length": len(body)}
    head = post_head(url, {**JSON, **session.headers, **own})
    with connected(url) as connection:
        connection.sendall(head + b"\r\n" + body)
        while most is None or len(found) < most:
            piece = connection.recv(65_536 if most is None else most - len(found))
            if not piece:
                break
            found += piece
    return found


def _parsed(found: bytes) -> tuple[int, str, bytes]:
    """Return status, content type and body of as much of an answer as there is."""
    head, complete, rest = found.partition(b"\r\n\r\n")
    if not complete:
        return 0, "", b""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    body = b""
    while rest:
        size, complete, rest = rest.partition(b"\r\n")
        if not complete:
            break
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return int(first.split()[1]), headers.get("content-type", ""), body
