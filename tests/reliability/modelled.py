"""What a client may be told of one call, however its connections and processes break.

A call has any number of connections: the request, the same request once more, and
returns with an event id.  Each tells a part of one sequence of messages, which ends
with the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from tests.process.streaming import Answer, Session, encoded
from tests.reliability.resuming import Told

COUNT: Final = "drill_count"
LEDGER: Final = "drill_ledger"
ASK: Final = "drill_ask_twice"
SLEEP: Final = "drill_sleep"
ADD: Final = "drill_add"
REPEATABLE: Final = frozenset({SLEEP, ADD})
"""They only read: what is not logged yet may run again."""
QUESTIONS: Final = 2
OK: Final = 200
UNAVAILABLE: Final = 503


class Broken(Exception):
    """Something was answered that should not have been."""


def check(true: object, what: str, *found: object) -> None:
    if not true:
        raise Broken(" ".join([what, *map(repr, found)]))


@dataclass(eq=False)
class Opened:
    session: Session
    closed: bool = False


@dataclass(eq=False)
class Connection:
    """One of a call's connections; `after` is the event that it goes on after.

    None stands for a request.  `may_break` says that its process was killed.
    """

    url: str
    answer: Answer
    after: int | None
    may_break: bool = False


@dataclass(eq=False)
class Call:
    opened: Opened
    tool: str
    arguments: dict[str, Any]
    request_id: str = field(default_factory=lambda: uuid4().hex)
    name: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    places: set[str] = field(default_factory=set)
    begun: bool = False
    cancelled: bool = False
    killed: bool = False
    replies: list[str] = field(default_factory=list)

    @property
    def once(self) -> bool:
        return self.tool not in REPEATABLE

    @property
    def answered(self) -> bool:
        return bool(self.messages) and "method" not in self.messages[-1]

    @property
    def ended(self) -> bool:
        return self.answered or self.opened.closed

    @property
    def last(self) -> int:
        """The number of the last event that a client has of its stream."""
        return len(self.messages)

    def body(self, **other: Any) -> bytes:
        params = {
            "name": self.tool,
            "arguments": {**self.arguments, **other},
            "_meta": {"progressToken": "p"},
        }
        return encoded(id=self.request_id, method="tools/call", params=params)

    def request(self, url: str) -> None:
        self.places.add(url)
        answer = self.opened.session.at(url).send(self.body())
        self.connections.append(Connection(url, answer, None))

    def resume(self, url: str, after: int) -> None:
        answer = self.opened.session.at(url).stream(f"{self.name}.{after}")
        self.connections.append(Connection(url, answer, after))

    def hear(self, connection: Connection, most: int | None = None) -> None:
        """Compare what came on a connection, up to so many bytes, with the rest."""
        answer = connection.answer
        raw, status = answer.raw[:most], answer.status
        if status == 0 or self._refused(connection, cut=most is not None):
            return
        told = Told(0, self.name, connection.after)
        told.take(status, answer.headers.get("content-type", ""), raw)
        check(not told.wrong, "twice, out of order or after a gap:", status, raw)
        self.begun, self.name = True, self.name or told.name
        for number, message in enumerate(told.messages, connection.after or 0):
            if number < len(self.messages):
                check(self.messages[number] == message, "not the same again:", message)
            else:
                check(not self.answered, "something after the answer:", message)
                self.messages.append(message)

    def _refused(self, connection: Connection, *, cut: bool) -> bool:
        """Whether a connection was answered with a refusal that may be."""
        answer = connection.answer
        if answer.status == OK:
            return False
        if answer.status == 404 and self.opened.closed:
            return True
        if answer.status == UNAVAILABLE and self.killed:
            return True
        if answer.status != 400 or self.once or connection.after is not None:
            return False
        # Another connection of it was cut, and its run goes on.
        return cut or b"is running" in answer.raw

    def close(self, connection: Connection) -> None:
        self.connections.remove(connection)
        self.hear(connection)
        answer = connection.answer
        if answer.error is not None:
            may = connection.may_break or self.opened.closed
            check(may, "a connection broke:", answer.error, self.messages)
        elif answer.status == OK and not self.cancelled:
            check(self.ended, "it ended without an answer:", answer.raw)

    def judge(self) -> None:
        *before, last = self.messages or [{}]
        check(last.get("id") == self.request_id, "the answer of another:", last)
        if "error" in last:
            check(self._may_be(last["error"]), "an error:", last)
        else:
            check(self._expected(before, last), "a wrong end:", before, last)
        self._judge_before(before)

    def _may_be(self, error: dict[str, Any]) -> bool:
        if self.opened.closed and "its session was closed" in error["message"]:
            return True
        gone = "is gone" in error["message"]
        return self.killed and gone and error["data"] == {"retryable": not self.once}

    def _judge_before(self, before: list[dict[str, Any]]) -> None:
        if self.tool == COUNT:
            counted = [each["params"].get("progress") for each in before]
            check(counted == list(range(1, len(before) + 1)), "counted", counted)
        elif self.tool == ASK:
            asked = [each for each in before if each["method"] == "elicitation/create"]
            check(len({each["id"] for each in asked}) == len(asked), "asked", asked)
            check(self.cancelled or before == asked, "asked", before)
            check(len(asked) <= QUESTIONS, "asked", asked)
        else:
            check(not before, "something before the answer:", before)

    def _expected(self, before: list[dict[str, Any]], last: dict[str, Any]) -> bool:
        result = last["result"]
        if self.tool in (LEDGER, ADD):
            wanted = 1 if self.tool == LEDGER else sum(self.arguments.values())
            return bool(result["structuredContent"] == {"result": wanted})
        text, arguments = result["content"][0]["text"], self.arguments
        if self.tool == COUNT:
            n = arguments["n"]
            return bool(text == f"done {n}") and len(before) == n
        if self.tool == ASK:
            return bool(text == " ".join(self.replies)) and len(before) == QUESTIONS
        return bool(text == f"slept {arguments['seconds']:g} s")
