"""What slow clients cost the others at one process: half bodies, unread answers."""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.client import WrongAnswerError
from benchmarks.listening import raise_open_files
from benchmarks.load import Sample
from benchmarks.measuring import AtMost, Effort, Result, Subject
from benchmarks.messages import call, is_sum
from benchmarks.processes import Process
from tests.drill.calling import Stateless
from tests.drill.running import DrillServer, started
from tests.process.slow_clients import Dribble, SlowClient, half_body, unread_call

DRIBBLING: Final = 500
STOPPED: Final = 300
READING: Final = 500
"""How many clients there are of each kind."""
BODY: Final = 4 * 1024 * 1024
PAYLOAD: Final = 50_000
MESSAGES: Final = 60
"""3 MB for each reader, of which the system takes 2.5 to 2.8: the rest is ours."""
MOST_MIB: Final = 150
SLICE_S: Final = 5.0
SLICES: Final = 12
CONNECTIONS: Final = 4
PAUSE_MS: Final = 8
PATIENCE_S: Final = 120.0
LOOK_S: Final = 0.2
LET_GO: Final = "returned without completing response"
"""What uvicorn says of an application that has ended a stream early."""


@dataclass(slots=True)
class Seen:
    """What was seen of a server, five times a second."""

    most: float = 0.0
    """KiB of resident memory."""
    let_go: float = 0.0
    """When the last of the readers was (monotonic)."""


@contextmanager
def _watched(server: DrillServer, process: Process) -> Iterator[Seen]:
    found, over = Seen(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            found.most = max(found.most, process.resident_kib())
            if not found.let_go and server.output.count(LET_GO) >= READING:
                found.let_go = time.monotonic()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


class _Ends(threading.Thread):
    """Notes how long after its beginning each client's connection had an answer."""

    def __init__(self, clients: Sequence[SlowClient]) -> None:
        super().__init__(daemon=True)
        self.seconds: list[float] = []
        self._clients = clients
        self.start()

    def run(self) -> None:
        end = time.monotonic() + PATIENCE_S
        with selectors.DefaultSelector() as waiting:
            for client in self._clients:
                waiting.register(client, selectors.EVENT_READ, client.began)
            while waiting.get_map() and time.monotonic() < end:
                for key, _ in waiting.select(LOOK_S):
                    waiting.unregister(key.fileobj)
                    self.seconds.append(time.monotonic() - key.data)


def of_slow_clients(_: Effort) -> Iterator[Result]:
    """Let 1,300 clients be slow at once, and call a tool beside them."""
    raise_open_files()
    server = started("uvicorn", {"WIRE": ""})
    clients: list[SlowClient] = []
    try:
        yield from _measured(server, clients)
    finally:
        for each in clients:
            each.close()
        server.stop()


def _measured(server: DrillServer, clients: list[SlowClient]) -> Iterator[Result]:
    process = Process(server.process.pid, server.port)
    subject = Subject.asked(process, call("drill_add"), is_sum)
    quiet = [_sample(subject) for _ in range(3)]
    _whole_body(server)
    before = process.resident_kib()
    with _watched(server, process) as seen:
        began = time.monotonic()
        clients += [_reader(server) for _ in range(READING)]
        read = time.monotonic()
        clients += [half_body(server.url, BODY, BODY) for _ in range(DRIBBLING)]
        dribble = Dribble(clients[READING:])
        clients += [half_body(server.url, BODY) for _ in range(STOPPED)]
        opened = time.monotonic() - began
        ends = _Ends(clients[READING:])
        samples = []
        for _ in range(SLICES):
            samples.append(_sample(subject))
            _whole_body(server)
        ends.join()
        dribble.stop()
    yield from _results(quiet, samples, f"all were there after {opened:.0f} s")
    yield _seconds("the last of 800 half bodies is over after", ends.seconds, 65)
    if len(ends.seconds) < DRIBBLING + STOPPED or not seen.let_go:
        raise WrongAnswerError(
            f"{len(ends.seconds)} bodies are over,"
            f" {server.output.count(LET_GO)} readers were let go."
        )
    late = [seen.let_go - read]
    yield _seconds("500 readers that take nothing are let go after", late, 45)
    yield Result(
        figure="memory beside 1,300 slow clients, at most",
        measured=(seen.most - before) / 1024,
        bound=AtMost(MOST_MIB),
        unit="MiB",
        raw=f"{before / 1024:.0f} MiB before; the limits allow 128 MiB to wait",
    )


def _reader(server: DrillServer) -> SlowClient:
    return unread_call(server.url, n=MESSAGES, delay_ms=1, payload_bytes=PAYLOAD)


def _sample(subject: Subject) -> Sample:
    return subject.sample(SLICE_S, connections=CONNECTIONS, pause_ms=PAUSE_MS)


def _whole_body(server: DrillServer) -> None:
    """Send a body of 3 MiB, which comes in pieces."""
    padding = {"example.org/padding": "x" * (3 * 1024 * 1024)}
    *_, answer = Stateless(server.url).messages("drill_add", {"a": 2, "b": 3}, padding)
    if not is_sum(answer.get("result", {})):
        raise WrongAnswerError(f"A body of 3 MiB was not served: {answer!r:.500}")


def _results(
    quiet: Sequence[Sample], beside: Sequence[Sample], raw: str
) -> Iterator[Result]:
    alone, slow = (median(each.p99 for each in found) for found in (quiet, beside))
    yield Result(
        figure="p99 beside 1,300 slow clients / alone",
        measured=slow / alone,
        bound=AtMost(2),
        raw=f"{slow:,.0f} : {alone:,.0f} us, {raw}",
    )


def _seconds(figure: str, seconds: Sequence[float], most: float) -> Result:
    return Result(
        figure=figure,
        measured=max(seconds, default=PATIENCE_S),
        bound=AtMost(most),
        unit="s",
        raw=f"the median is {median(seconds):.1f} s" if seconds else "",
    )
