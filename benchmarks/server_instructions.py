"""How many instructions a server process takes for a call, with its sockets.

Callgrind (valgrind) counts what the loop's thread executes in user mode while eight
connections call: the server program, the application, and what both do in the loop.
What the process does without calls in as much time is taken away, and the thread that
writes the call log is not counted.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.client import TIMEOUT, WrongAnswerError, open_session
from benchmarks.guarded_server import guard_server
from benchmarks.instructions import environment_in, find_valgrind, read_total
from benchmarks.load import Answer
from benchmarks.messages import FIRST_ID, Request, call, is_sum
from benchmarks.processes import Process, serving
from benchmarks.servers import floor
from tests.drill.ports import free_port

CONNECTIONS: Final = 8
CALLS: Final = 200
"""For each connection."""
WARM_UP: Final = 600
"""Calls of each connection before the count: CPython adapts its bytecode to what it
sees, and after a miss it looks again only thousands of calls later."""
AGAIN: Final = 50
ROUNDS: Final = 3

_identifiers = itertools.count(FIRST_ID + 1)


def measured(audit: str) -> dict[str, float]:
    """Return the instructions of a call, by name; `audit` is `MCP_AUDIT`."""
    program = find_valgrind()
    found: dict[str, float] = {}
    with _serving(program, audit) as (server, folder):
        answer = Answer.learned(server.port, call("drill_add"), is_sum)
        counter = _Counter(server, folder)
        found["server: stateless"] = counter.of(call("drill_add"))
        session = open_session(server.port)
        found["server: session"] = counter.of(call("drill_add", session=session))
    with _serving(program, audit) as (server, folder):
        guarded = guard_server(server, environment_in(folder)["DATABASE_URL"])["token"]
        found["server: guarded"] = _Counter(server, folder).of(guarded)
    with _folder() as folder, floor(answer, under=_under(program, folder)) as server:
        counter = _Counter(server, folder)
        found["server: floor"] = counter.of(call("drill_add"), pinned=False)
    return found


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(name)


def _under(program: str, folder: Path) -> list[str]:
    return [
        *(program, "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"),
        f"--callgrind-out-file={folder / 'counted'}",
    ]


@contextmanager
def _serving(program: str, audit: str) -> Iterator[tuple[Process, Path]]:
    port = free_port()
    with _folder() as folder:
        environment = environment_in(folder) | {"PORT": str(port), "MCP_AUDIT": audit}
        command = [*_under(program, folder), sys.executable, "-m", "benchmarks.pinned"]
        with serving(command, port, environment) as process:
            yield process, folder


class _Counter:
    """Counts what a server executes while it is called."""

    def __init__(self, server: Process, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._read: set[Path] = set()

    def of(self, request: Request, *, pinned: bool = True) -> float:
        """Return the instructions of one call: the least of `ROUNDS`."""
        raw = request.raw(self._server.port)
        self._load(raw, WARM_UP)
        self._control("-i", "on")
        self._load(raw, AGAIN)
        if pinned:
            os.kill(self._server.pid, signal.SIGUSR1)
        self._executed()
        counts = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            self._load(raw, CALLS)
            took = time.monotonic() - began
            executed = self._executed()
            time.sleep(took)
            counts.append((executed - self._executed()) / CALLS / CONNECTIONS)
        self._control("-i", "off")
        return min(counts)

    def _control(self, *arguments: str) -> None:
        subprocess.run(
            ["callgrind_control", *arguments, str(self._server.pid)],
            check=True,
            capture_output=True,
            timeout=TIMEOUT,
        )

    def _executed(self) -> int:
        """Return what the loop's thread has executed since this was asked last."""
        self._control("-d")
        total = 0
        for path in set(self._folder.glob("counted*")) - self._read:
            self._read.add(path)
            if re.search(r"^thread: 1$", path.read_text(), re.MULTILINE):
                total += read_total(path)
        return total

    def _load(self, raw: bytes, calls: int) -> None:
        """Call so often on each connection, and check every answer."""
        address = "127.0.0.1", self._server.port

        def connection(_: int) -> None:
            with socket.create_connection(address, TIMEOUT) as way:
                for _number in range(calls):
                    _check(way, raw, next(_identifiers))

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(connection, range(CONNECTIONS)))


def _check(way: socket.socket, raw: bytes, identifier: int) -> None:
    # In one piece, as most clients send a small body: if it came later, the server
    # would wait for it in some calls and not in others.
    way.sendall(raw.replace(b"%d" % FIRST_ID, b"%d" % identifier, 1))
    with http.client.HTTPResponse(way, method="POST") as response:
        response.begin()
        text = response.read()
    answer = json.loads(text)
    right = response.status == 200 and answer["id"] == identifier
    if not right or not is_sum(answer.get("result", {})):
        raise WrongAnswerError(f"HTTP {response.status}: {text[:500]!r}")
