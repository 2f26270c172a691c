"""Whether real processes hold people to one rate: who calls too often, who does not."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.client import WrongAnswerError
from benchmarks.measuring import AtLeast, AtMost, Effort, Result
from benchmarks.messages import stateless
from tests.drill.databases import PREPARED
from tests.drill.running import THERE, DrillServer, started
from tests.process.clusters import run_python

PROCESSES: Final = 4
RATE: Final = 300
"""Calls a minute: half of the default, so that the client is not the limit."""
BURST: Final = 50
HOP_S: Final = 5.0
"""How long who hops with bursts stays at a process."""
SETTLING_S: Final = 12.0
"""Two heartbeats, after which each process has found the others."""
TIMEOUT_S: Final = 30.0
PATH: Final = "/mcp/people"
TOOL: Final = "hello"
LIMITS: Final = {
    **{"tool_rate": RATE, "tool_burst": BURST},
    **{"request_rate": 10**6, "request_burst": 10**5},
}

Where = Callable[[float], int]
"""Chooses the process, by the seconds since the beginning."""


@dataclass(slots=True)
class Person:
    """Somebody who calls one tool at `factor` times the rate."""

    name: str
    factor: float
    where: Where
    burst: int = 0
    """Calls at once at each process; with it, `factor` counts for nothing."""
    admitted: list[float] = field(default_factory=list)
    refused: int = 0
    failed: list[str] = field(default_factory=list)


def of_people(effort: Effort) -> Iterator[Result]:
    """Let them call for five minutes of `counting` each, all at once."""
    seconds = 5 * effort.counting
    people = _people()
    with PREPARED["postgresql"]() as url:
        environment = {
            "DATABASE_URL": url,
            "MCP_AUTHENTICATION": json.dumps({"name": "tests.auth.callables.by_name"}),
            "MCP_LIMITS": json.dumps(LIMITS),
            "WIRE": "",
            **THERE,
        }
        run_python(environment, "-c", _PREPARE, *(each.name for each in people))
        servers = [started("uvicorn", environment) for _ in range(PROCESSES)]
        try:
            time.sleep(SETTLING_S)
            _play(people, servers, seconds)
        finally:
            for each in servers:
                each.stop()
    yield from _results(people, seconds)


_PREPARE: Final = f"""
import sys
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import Server, Tool
from tests.published import published
User.objects.bulk_create(User(username=each) for each in sys.argv[1:])
published(Server(slug="people", access="name", selection="tags", tags="people"))
published(Tool(
    name="{TOOL}", tags="people",
    config='{{"content": [{{"type": "text", "text": "Hello."}}]}}',
))
"""


def _people() -> list[Person]:
    return [
        *(
            Person(f"{factor:g} times the rate, {how}", factor, where)
            for factor in (1.5, 3.6, 10.0)
            for how, where in (("evenly", _evenly()), ("95 % at one", _mostly_one()))
        ),
        Person("0.9 of the rate, pinned", 0.9, lambda _: 1),
        Person("0.9 of the rate, evenly", 0.9, _evenly()),
        *(
            Person(f"0.9 of the rate, moving each {each} s", 0.9, _moving(each))
            for each in (2, 5, 10)
        ),
        Person("bursts from process to process", 1, _moving(HOP_S), burst=2 * BURST),
        Person("another person", 0.2, _evenly()),
    ]


def _evenly() -> Where:
    turn = iter(range(10**9))
    return lambda _: next(turn) % PROCESSES


def _mostly_one() -> Where:
    draw = random.Random(7)
    return lambda _: 0 if draw.random() < 0.95 else draw.randrange(PROCESSES)


def _moving(seconds: float) -> Where:
    return lambda now: int(now / seconds) % PROCESSES


def _play(
    people: Sequence[Person], servers: Sequence[DrillServer], seconds: float
) -> None:
    began = time.monotonic()
    callers = [
        threading.Thread(target=_call, args=(each, servers, began, seconds))
        for each in people
    ]
    for each in callers:
        each.start()
    for each in callers:
        each.join()


def _call(
    person: Person, servers: Sequence[DrillServer], began: float, seconds: float
) -> None:
    """Call at the times that the factor says, whatever the answers are."""
    connections = [
        http.client.HTTPConnection("127.0.0.1", each.port, timeout=TIMEOUT_S)
        for each in servers
    ]
    request = stateless("tools/call", {"name": TOOL, "arguments": {}})
    headers, body = {**request.headers, "X-Name": person.name}, request.body()
    for at in _times(person, seconds):
        time.sleep(max(0.0, began + at - time.monotonic()))
        connection = connections[person.where(at)]
        try:
            _note(person, at, _ask(connection, body, headers))
        except (OSError, http.client.HTTPException) as error:
            person.failed.append(repr(error))
    for each in connections:
        each.close()


def _ask(
    connection: http.client.HTTPConnection, body: bytes, headers: dict[str, str]
) -> dict[str, object]:
    """Send a call; on a new connection if the server has closed an idle one."""
    for again in (True, False):
        try:
            connection.request("POST", PATH, body, headers)
            answer: dict[str, object] = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            connection.close()
            if not again:
                raise
        else:
            return answer
    raise AssertionError("It is tried twice.")


def _times(person: Person, seconds: float) -> Iterator[float]:
    if person.burst:
        for step in range(int(seconds / HOP_S)):
            yield from [step * HOP_S] * person.burst
        return
    pause = 60 / (person.factor * RATE)
    yield from (pause * number for number in range(int(seconds / pause)))


def _note(person: Person, at: float, answer: dict[str, object]) -> None:
    result = answer.get("result")
    if not isinstance(result, dict):
        person.failed.append(repr(answer))
    elif result.get("isError"):
        person.refused += 1
    else:
        person.admitted.append(at)


def _results(people: Sequence[Person], seconds: float) -> Iterator[Result]:
    if failed := [f"{each.name}: {each.failed[0]}" for each in people if each.failed]:
        raise WrongAnswerError("; ".join(failed))
    budget = RATE * seconds / 60 + BURST
    for person in people:
        part, minute = len(person.admitted) / budget, _worst_minute(person.admitted)
        raw = f"{len(person.admitted):,} of {budget:,.0f}, {person.refused:,} refused"
        if person.burst:
            yield _result(f"calls of budget: {person.name}", part, AtMost(2), raw)
        elif person.factor < 1:
            refused = float(person.refused)
            yield _result(f"refused: {person.name}", refused, AtMost(0), raw)
        else:
            name = f"calls of budget: {person.name}"
            yield _result(name, part, AtMost(1.15), raw)
            yield _result(f"{name}, at least", part, AtLeast(0.9), raw)
            worst = minute / (RATE + BURST)
            yield _result(f"{name}, worst minute", worst, AtMost(1.3), raw)


def _result(figure: str, measured: float, bound: AtLeast | AtMost, raw: str) -> Result:
    return Result(figure=figure, measured=measured, bound=bound, raw=raw)


def _worst_minute(times: Sequence[float]) -> int:
    return max(
        (sum(at <= each < at + 60 for each in times) for at in times[::25]), default=0
    )
