"""Sessions and calls against a model that knows what each must be answered.

An example is a number of steps that are drawn from its seed: sessions are opened,
closed and expire, calls begin, their connections are cut anywhere and taken up again
anywhere, requests and answers are sent twice and to any process, and processes are
killed.  Whatever happens, each message of a call comes once, in order and without a
gap, whatever must not run twice ran once, and nobody hangs.

What a step draws does not depend on what came of those before: an example is the same
again from its seed, and all of it is in its numbers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Final, TypeVar
from uuid import uuid4

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.process.operating import Operator
from tests.process.streaming import Answer, Session, encoded
from tests.reliability.flock import Flock
from tests.reliability.modelled import (
    ADD,
    ASK,
    COUNT,
    LEDGER,
    QUESTIONS,
    SLEEP,
    UNAVAILABLE,
    Call,
    Connection,
    Opened,
    check,
)
from tests.reliability.once import ledger
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "model"
ALONE: Final = "model, one process"
LANES: Final = 8
"""Examples that one process has at once: each of them mostly waits."""
PATIENCE_S: Final = 120.0
RETRY_S: Final = 0.1
SELDOM: Final = 7
"""A step that takes seconds is one only where the largest number is drawn."""
TOOLS: Final = (COUNT, COUNT, LEDGER, ASK, SLEEP, ADD)
RUNNING: Final = (COUNT, LEDGER, ASK)
"""What is begun where nothing runs that a kill would end."""
WRONG_IDS: Final = ("", "nonsense", "{}.01", "{}.+1", "{}.1_0", "{}.-1", "{}.1e0")

anyone = st.integers(0, 5)
large = st.integers(0, 5_000)
seldom = st.integers(0, SELDOM)

Step = TypeVar("Step", bound=Callable[..., None])


@dataclass
class World:
    """What all examples share; `flock` is None where no process is killed."""

    test: str
    urls: list[str]
    flock: Flock | None
    operator: Operator
    stranger: Session
    kind: str
    wrong_id: bytes = b""
    """What each wrong event id is answered."""


def model(site: Site, rounds: int, seed: int = 1, steps: int = 40) -> Generator[Round]:
    """Yield an example of four processes for each seed, from the first one on."""
    with Flock(site.cluster.environment) as flock:
        world = _world(site, TEST, flock)
        for each in range(seed, seed + rounds):
            yield _example(world, each, steps)


def model_alone(
    site: Site, rounds: int, seed: int = 1, steps: int = 50
) -> Generator[Round]:
    """Yield the same of one process that nobody kills, several examples at once."""
    pool = ThreadPoolExecutor(LANES)
    try:
        example = partial(_example, _world(site, ALONE, None), steps=steps)
        yield from pool.map(example, range(seed, seed + rounds))
    finally:
        pool.shutdown(cancel_futures=True)


def _world(site: Site, test: str, flock: Flock | None) -> World:
    urls = flock.urls if flock else site.cluster.urls[:1]
    stranger = Session(urls[0])
    return World(test, urls, flock, site.operator, stranger, site.cluster.kind)


def _example(world: World, seed: int, steps: int) -> Round:
    made: list[Machine] = []

    def machine() -> Machine:
        # The first one that is made is the same for all seeds, and the simplest.
        made.append(Machine(world, seed, idle=not made))
        return made[-1]

    run_state_machine_as_test(
        hypothesis.seed(seed)(machine),  # type: ignore[arg-type]
        settings=settings(
            max_examples=2,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return made[-1].found()


def step(does: Step) -> Step:
    """Write a step down, and take no more of them when something was wrong."""

    @wraps(does)
    def taken(machine: Machine, **drawn: Any) -> None:
        if machine.over:
            return
        numbers = ", ".join(f"{name}={value}" for name, value in drawn.items())
        machine.steps.append(f"{does.__name__}({numbers})")
        machine.attempt(partial(does, machine, **drawn))

    return taken  # type: ignore[return-value]


def pick(of: list[Any], number: int) -> Any:
    """Return one; 0 stands for the last."""
    return of[-1 - number % len(of)]


class Machine(RuleBasedStateMachine):
    def __init__(self, world: World, seed: int, *, idle: bool) -> None:
        super().__init__()
        self.world = world
        self.seed = seed
        self.over = idle
        self.steps: list[str] = []
        self._idle = idle
        self._sessions: list[Opened] = []
        self._calls: list[Call] = []
        self._asked = self._wrong = self._unanswered = 0
        self._kills = self._resumes = 0

    def attempt(self, does: Callable[[], None]) -> None:
        try:
            does()
        except Exception as error:
            # Whatever it is: what was answered is not what can be read.
            self._unanswered += isinstance(error, TimeoutError)
            self._wrong += not isinstance(error, TimeoutError)
            self.over = True
            example = f"{self.world.test} on {self.world.kind}, --seed {self.seed}"
            lines = [f"{example}: {error!r}", *self.steps]
            print("\n    ".join(lines), file=sys.stderr)

    def found(self) -> Round:
        return Round(
            test=self.world.test,
            asked=self._asked,
            wrong=self._wrong,
            unanswered=self._unanswered,
            kills=self._kills,
            resumes=self._resumes,
        )

    # -- the steps -------------------------------------------------------------------

    @rule(at=anyone, quiet=seldom)
    @step
    def init(self, at: int, quiet: int) -> None:
        self._init(at, quiet == SELDOM)

    @rule(who=anyone, at=anyone, what=anyone, size=anyone)
    @step
    def call(self, who: int, at: int, what: int, size: int) -> None:
        self._call(who, at, TOOLS[what % len(TOOLS)], size)

    @rule(who=anyone, at=anyone, what=anyone)
    @step
    def notify(self, who: int, at: int, what: int) -> None:
        """Say that something is initialized, cancelled, or what nobody knows."""
        opened, url = self._session(who), self._url(at)
        if what == 0 and self._live():
            self._cancel(pick(self._live(), who), url)
            return
        method, params = {
            1: ("notifications/initialized", {}),
            2: ("notifications/cancelled", {"requestId": "of nobody"}),
        }.get(what, ("notifications/of/nobody", {"what": what}))
        self._post(opened, url, {"method": method, "params": params}, 202)

    def _cancel(self, call: Call, url: str) -> None:
        for each in self._calls:
            # A call that only reads may be a second one with that id.
            each.cancelled = each.cancelled or each.request_id == call.request_id
        params = {"requestId": call.request_id, "reason": "drawn"}
        message = {"method": "notifications/cancelled", "params": params}
        self._post(call.opened, url, message, 202)

    @rule(who=anyone, most=large)
    @step
    def cut(self, who: int, most: int) -> None:
        """Let a client have so many bytes at most, and cut its connection."""
        call = pick(self._live() or [self._call(who, who, COUNT, who)], who)
        if not call.connections:
            self._request(call, who)
        connection = pick(call.connections, most)
        if call.tool == COUNT:
            connection.answer.wait(lambda each: len(each.raw) >= most)
        connection.answer.leave()
        call.connections.remove(connection)
        call.hear(connection, most)

    @rule(who=anyone, at=anyone, back=anyone)
    @step
    def resume(self, who: int, at: int, back: int) -> None:
        named = [each for each in self._live() if each.name]
        call = pick(named or [self._named(who, at)], who)
        self._hear(call)
        self._resume(call, at, call.last - back % (call.last + 1))

    @rule(who=anyone, at=anyone, other=anyone)
    @step
    def repeat(self, who: int, at: int, other: int) -> None:
        """Send the same request again, or another one with the same id."""
        call = pick(self._live() or [self._call(who, at, LEDGER, who)], who)
        if not call.once:
            # It is a call of its own, unless the first one runs at that process.
            again = Call(call.opened, call.tool, call.arguments, call.request_id)
            # A cancellation that is on its way to other processes may reach it, too.
            again.cancelled = call.cancelled
            self._calls.append(again)
            self._request(again, at)
        elif other:
            self._request(call, at)
        else:
            self._follow(call, lambda: call.begun, at)
            found = self._sent(call.opened, self._url(at), call.body(other=1), 400)
            error = found.messages[0]["error"] if found.messages else {}
            check(error.get("code") == -32600, "the same id:", found.raw)
            check(f"a call of {call.tool}." in error["message"], "the same id:", error)

    @rule(who=anyone, at=anyone, again=anyone)
    @step
    def answer(self, who: int, at: int, again: int) -> None:
        """Answer a question; also twice, or from a session that was not asked."""
        asking = [each for each in self._live() if each.tool == ASK]
        call = pick(asking or [self._call(who, at, ASK, who)], who)
        number = len(call.replies)
        self._follow(call, lambda: len(self._questions(call)) > number, at)
        if len(self._questions(call)) <= number:
            return
        if again == 0:
            self._reply(call, number, self.world.stranger, at, 400)
        call.replies.append(uuid4().hex)
        self._reply(call, number, call.opened.session, at, 202, call.replies[-1])
        if again == 1:
            self._reply(call, number, call.opened.session, at + 1, 202)

    def _reply(
        self,
        call: Call,
        number: int,
        session: Session,
        at: int,
        status: int,
        text: str = "too late",
    ) -> None:
        question = self._questions(call)[number]["id"]
        result = {"action": "accept", "content": {"answer": text}}
        message = {"id": question, "result": result}
        self._post(Opened(session), self._url(at), message, status)

    @rule(who=anyone, at=anyone, when=seldom)
    @step
    def delete(self, who: int, at: int, when: int) -> None:
        if when < SELDOM // 2:
            return
        opened, url = self._session(who), self._url(at)
        opened.closed = True
        self._done(opened.session.at(url).close(), 204)
        self._expect_gone(opened)

    @rule(who=anyone, when=seldom)
    @step
    def expire(self, who: int, when: int) -> None:
        if when < SELDOM // 2:
            return
        opened = self._session(who)
        opened.closed = True
        self.world.operator.sweeps(opened.session.headers["Mcp-Session-Id"])
        self._expect_gone(opened)

    @rule(who=anyone, at=anyone, when=seldom)
    @step
    def kill(self, who: int, at: int, when: int) -> None:
        flock = self.world.flock
        if when < SELDOM or flock is None:
            return
        for each in self._calls:
            self._hear(each)
        running = [each for each in self._live() if not each.ended]
        call = pick(running or [self._call(who, at, RUNNING[who % 3], SELDOM)], who)
        url = self._url(at) if self._url(at) in call.places else min(call.places)
        for call in self._calls:
            call.killed = call.killed or (url in call.places and not call.answered)
            for connection in call.connections:
                connection.may_break = connection.may_break or connection.url == url
        self._kills += 1
        flock.kill(flock.urls.index(url))

    @rule(who=anyone, at=anyone, what=large)
    @step
    def come_wrongly(self, who: int, at: int, what: int) -> None:
        named = [each for each in self._live() if each.name]
        call = pick(named or [self._named(who, at)], who)
        opened, wrong = call.opened, self._wrong_id(call, what)
        found = opened.session.at(self._url(at)).stream(wrong)
        self._done(found, 400)
        self.world.wrong_id = self.world.wrong_id or found.raw
        check(found.raw == self.world.wrong_id, "a wrong id:", wrong, found.raw)

    def _wrong_id(self, call: Call, what: int) -> str:
        foreign = [
            f"{each.name}.0"
            for each in self._calls
            if each.name and each.opened is not call.opened
        ]
        beyond = f"{call.name}.{1_000 + what}"
        at = what % len(call.name)
        letter = "A" if call.name[at] != "A" else "B"
        altered = f"{call.name[:at]}{letter}{call.name[at + 1 :]}.0"
        malformed = WRONG_IDS[what % len(WRONG_IDS)].format(call.name)
        return str(pick([beyond, altered, malformed, *foreign[:1]], what))

    # -- what steps are made of ------------------------------------------------------

    def _url(self, at: int) -> str:
        return self.world.urls[at % len(self.world.urls)]

    def _init(self, at: int, quiet: bool = False) -> Opened:
        opened = Opened(Session(self._url(at)))
        self._sessions.append(opened)
        self._asked += 1
        if not quiet:
            initialized = {"method": "notifications/initialized"}
            self._post(opened, self._url(at), initialized, 202)
        return opened

    def _session(self, who: int) -> Opened:
        there = [each for each in self._sessions if not each.closed]
        return pick(there, who) if there else self._init(who)

    def _live(self) -> list[Call]:
        return [each for each in self._calls if not each.opened.closed]

    def _call(self, who: int, at: int, tool: str, size: int) -> Call:
        key = uuid4().hex
        arguments: dict[str, dict[str, Any]] = {
            COUNT: {"n": 3 + 6 * size, "delay_ms": 15, "payload_bytes": 40 * size},
            LEDGER: {"key": key, "seconds": (0, 0.1, 0.3, 1.2)[size % 4]},
            ASK: {"question": key},
            SLEEP: {"seconds": (0, 0.1, 1.2)[size % 3]},
            ADD: {"a": size, "b": 1},
        }
        call = Call(self._session(who), tool, arguments[tool])
        self._calls.append(call)
        self._request(call, at)
        return call

    def _named(self, who: int, at: int) -> Call:
        call = self._call(who, at, COUNT, who)
        self._follow(call, lambda: call.name, at)
        return call

    def _request(self, call: Call, at: int) -> None:
        call.request(self._url(at))

    def _resume(self, call: Call, at: int, after: int) -> None:
        self._resumes += 1
        call.resume(self._url(at), after)

    @staticmethod
    def _questions(call: Call) -> list[dict[str, Any]]:
        asked = "elicitation/create"
        return [each for each in call.messages if each.get("method") == asked]

    def _post(
        self, opened: Opened, url: str, message: dict[str, Any], status: int
    ) -> None:
        self._sent(opened, url, encoded(**message), status)

    def _sent(self, opened: Opened, url: str, body: bytes, status: int) -> Answer:
        return self._done(opened.session.at(url).send(body), status)

    def _done(self, answer: Answer, status: int) -> Answer:
        answer.wait()
        self._asked += 1
        if not answer.ended:
            raise TimeoutError(f"no answer, but {status} was due")
        refused = self._kills and answer.status == UNAVAILABLE
        right = answer.status == status and answer.error is None
        what = f"{status} was due:"
        check(right or refused, what, answer.status, answer.raw, answer.error)
        return answer

    def _expect_gone(self, opened: Opened) -> None:
        """Demand that no process knows a session, whatever it is asked."""
        own = [each for each in self._calls if each.opened is opened]
        ping = {"id": uuid4().hex, "method": "ping"}
        answers = []
        for url in self.world.urls:
            for message in (ping, {"method": "notifications/initialized"}):
                answers.append(opened.session.at(url).send(encoded(**message)))
            for call in own[-2:]:
                answers.append(opened.session.at(url).send(call.body()))
                last = f"{call.name}.{call.last}" if call.name else None
                answers.append(opened.session.at(url).stream(last))
            answers.append(opened.session.at(url).close())
        for each in answers:
            self._done(each, 404)

    # -- following a call ------------------------------------------------------------

    def _hear(self, call: Call) -> None:
        for connection in list(call.connections):
            if connection.answer.ended:
                call.close(connection)
            else:
                call.hear(connection)

    def _follow(self, call: Call, enough: Callable[[], object], at: int) -> None:
        """Come back until a client has enough of a call, or all of it."""
        end = time.monotonic() + PATIENCE_S
        while True:
            self._hear(call)
            if enough() or call.ended:
                return
            if not call.connections:
                if call.cancelled and call.begun:
                    return
                self._again(call, at)
                at += 1
            if not self._more(call.connections[-1]):
                time.sleep(RETRY_S)
            if time.monotonic() > end:
                raise TimeoutError(f"no end: {call}")

    def _again(self, call: Call, at: int) -> None:
        if call.name:
            self._resume(call, at, call.last)
        else:
            self._request(call, at)

    @staticmethod
    def _more(connection: Connection) -> bool:
        answer, heard = connection.answer, len(connection.answer.raw)
        if not answer.ended:
            answer.wait(lambda each: len(each.raw) > heard)
        return answer.status not in (0, 400, UNAVAILABLE)

    # -- the end ---------------------------------------------------------------------

    def teardown(self) -> None:
        if self._idle:
            return
        for call in self._calls:
            if not self.over:
                self.attempt(partial(self._finish, call))
        # Leave nothing behind that goes on.
        for opened in self._sessions if self.over else ():
            opened.session.at(self._url(0)).close().wait()

    def _finish(self, call: Call) -> None:
        while call.tool == ASK and not call.ended and self._ask_on(call):
            pass
        self._follow(call, lambda: call.ended, len(call.messages))
        self._end_connections(call)
        if call.answered:
            call.judge()
        elif not call.opened.closed:
            check(call.cancelled, "no answer:", call)
        if call.once:
            self._finish_once(call)

    def _ask_on(self, call: Call) -> bool:
        """Answer the next question; return whether there may be more."""
        number = len(call.replies)
        self._follow(call, lambda: len(self._questions(call)) > number, number)
        if len(self._questions(call)) <= number:
            return False
        call.replies.append(uuid4().hex)
        self._reply(call, number, call.opened.session, number, 202, call.replies[-1])
        return number + 1 < QUESTIONS

    def _end_connections(self, call: Call) -> None:
        for connection in list(call.connections):
            connection.answer.wait()
            if not connection.answer.ended:
                raise TimeoutError(f"a connection does not end: {call}")
            call.close(connection)
            self._asked += 1

    def _finish_once(self, call: Call) -> None:
        if not call.opened.closed:
            self._request(call, len(call.messages) + 1)
            self._end_connections(call)
        if call.tool == COUNT:
            return
        key = call.arguments["key" if call.tool == LEDGER else "question"]
        stranger = Opened(self.world.stranger)
        found = self._sent(stranger, self._url(0), ledger(key, 0), 200)
        lines = found.messages[-1]["result"]["structuredContent"]["result"] - 1
        ran = call.answered and "result" in call.messages[-1]
        check(lines == 1 if ran else lines <= 1, "it ran so often:", lines, call)
