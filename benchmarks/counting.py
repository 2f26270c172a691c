"""Many calls of `drill_count` at once, whose events are read and checked as they come.

One thread reads all connections, without `http.client`: the reader must cost a
fraction of what the server does.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.client import TIMEOUT, WrongAnswerError, open_session
from benchmarks.messages import FIRST_ID, JsonObject, stateful
from benchmarks.processes import Process

Seen = Callable[[str, int], None]
"""Is told the name of a stream and the number of an event that has just come."""

_EVENT = re.compile(
    rb"id: (?P<name>[\w-]+)\.(?P<number>\d+)\n"
    rb"(?:event: message\n)?data: (?P<data>.*)\n\n"
)
_RECEIVED = 256 * 1024


class Body:
    """Takes the chunks of HTTP apart; `ended` says that the last one has come."""

    def __init__(self) -> None:
        self._rest = b""
        self._headed = False
        self.ended = False

    def feed(self, piece: bytes) -> bytes:
        """Return what the piece adds to the body."""
        self._rest += piece
        if not self._headed and not self._take_head():
            return b""
        taken = []
        while not self.ended and (end := self._rest.find(b"\r\n")) >= 0:
            size = int(self._rest[:end], 16)
            if len(self._rest) < end + size + 4:
                break
            taken.append(self._rest[end + 2 : end + 2 + size])
            self._rest = self._rest[end + size + 4 :]
            self.ended = size == 0
        return b"".join(taken)

    def _take_head(self) -> bool:
        head, blank, rest = self._rest.partition(b"\r\n\r\n")
        if not blank:
            return False
        lines = head.lower().split(b"\r\n")
        if b" 200 " not in lines[0] or b"transfer-encoding: chunked" not in lines:
            raise WrongAnswerError(f"No stream of events: {self._rest[:500]!r}.")
        self._headed, self._rest = True, rest
        return True


class Count:
    """The events of one call: each number once, in order, and the answer at the end."""

    def __init__(self, identifier: int, n: int) -> None:
        self._identifier = identifier
        self._n = n
        self._rest = b""
        self._name = b""
        self._next = 0
        self.answered = False

    def feed(self, text: bytes) -> list[tuple[str, int]]:
        """Take what has come; return the messages: name of the stream, and number."""
        text = self._rest + text
        at, taken = 0, []
        for event in _EVENT.finditer(text):
            # A heartbeat may stand between two events, and nothing else.
            if text[at : event.start()].strip(b":\n"):
                break
            at = event.end()
            self._check(event["name"], int(event["number"]), event["data"])
            if self._next > 1:
                taken.append((event["name"].decode(), self._next - 1))
        self._rest = text[at:]
        return taken

    def _check(self, name: bytes, number: int, data: bytes) -> None:
        if number != self._next or name != (self._name or name) or self.answered:
            raise WrongAnswerError(
                f"Event {name!r}.{number} came where {self._name!r}.{self._next} must."
            )
        self._name, self._next = name, number + 1
        if number == 0:
            right = not data
        elif number <= self._n:
            right = b'"progress":%d,' % number in data
        else:
            self.answered = right = _is_answer(json.loads(data), self._identifier)
        if not right:
            raise WrongAnswerError(f"Event {number} is wrong: {data[:500]!r}.")


def _is_answer(message: JsonObject, identifier: int) -> bool:
    content = message.get("result", {}).get("content", [{}])
    return message.get("id") == identifier and content[0]["text"].startswith("done ")


class Caller:
    """One client: a session and a connection, with one call after the other.

    It is connected while it is entered (`with`): servers close what is idle.
    """

    def __init__(self, port: int, n: int) -> None:
        self._port = port
        self._n = n
        self._session = open_session(port)
        self._identifier = FIRST_ID

    def __enter__(self) -> Caller:
        self.socket = socket.create_connection(("127.0.0.1", self._port), TIMEOUT)
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self) -> None:
        """Begin a call."""
        self._identifier += 1
        arguments = {"n": self._n, "delay_ms": 0}
        params = {"name": "drill_count", "arguments": arguments}
        params["_meta"] = {"progressToken": self._identifier}
        request = stateful(self._session, "tools/call", params)
        raw = request.raw(self._port)
        self.socket.sendall(raw.replace(b"%d" % FIRST_ID, b"%d" % self._identifier, 1))
        self._body, self._count = Body(), Count(self._identifier, self._n)

    def receive(self) -> list[tuple[str, int]]:
        """Read what has come; return the messages that are new."""
        piece = self.socket.recv(_RECEIVED)
        if not piece:
            raise WrongAnswerError("The server closed the connection.")
        return self._count.feed(self._body.feed(piece))

    @property
    def ended(self) -> bool:
        """Whether the call is over; raise where its stream ended without an answer."""
        if self._body.ended and not self._count.answered:
            raise WrongAnswerError("A stream ended without its answer.")
        return self._body.ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What came in how many seconds; `reader` is the reader's share of a processor."""

    messages: int
    seconds: float
    cpu_seconds: float
    reader: float


class Callers:
    """Clients that call `drill_count` all the time."""

    def __init__(self, server: Process, count: int, n: int) -> None:
        self._server = server
        self._callers = [Caller(server.port, n) for _ in range(count)]

    def run(self, seconds: float, seen: Seen = lambda name, number: None) -> Counted:
        """Call for so long, then wait for the calls that run."""
        cpu, own = self._server.cpu_seconds(), time.process_time()
        began, messages = time.monotonic(), 0
        with ExitStack() as stack:
            selector = stack.enter_context(selectors.DefaultSelector())
            for caller in self._callers:
                stack.enter_context(caller)
                selector.register(caller.socket, selectors.EVENT_READ, caller)
                caller.call()
            while (took := time.monotonic() - began) < seconds:
                messages += _read(selector, seen)
            counted = Counted(
                messages=messages,
                seconds=took,
                cpu_seconds=self._server.cpu_seconds() - cpu,
                reader=(time.process_time() - own) / took,
            )
            while selector.get_map():
                _read(selector, seen, again=False)
        return counted


def _read(selector: selectors.BaseSelector, seen: Seen, *, again: bool = True) -> int:
    """Read what has come, and let those whose call is over call again."""
    ready = selector.select(TIMEOUT)
    if not ready:
        raise WrongAnswerError(f"Nothing came for {TIMEOUT:g} seconds.")
    messages = 0
    for key, _ in ready:
        caller: Caller = key.data
        for name, number in caller.receive():
            seen(name, number)
            messages += 1
        if caller.ended and again:
            caller.call()
        elif caller.ended:
            selector.unregister(caller.socket)
    return messages
