"""Servers on pipes: started and asked."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.client import WrongAnswerError
from benchmarks.messages import initialize
from benchmarks.processes import ROOT, ServerFailedError, inherited
from tests.drill.piped import COMMAND, database, environment

HELLO: Final = {"jsonrpc": "2.0", "id": "hello", **initialize().message}
READY: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


@dataclass(frozen=True, slots=True)
class Piped:
    """A server with a session in which `drill_add` is called."""

    child: subprocess.Popen[bytes]

    def call(self, first: int, count: int, together: int) -> None:
        """Call so often, with ids from `first` on, so many at the same time.

        Raises `WrongAnswerError` unless each call has its own sum as its answer.
        """
        last = first + count
        sent = min(first + together, last)
        self._send(*map(_call, range(first, sent)))
        seen: set[int] = set()
        while len(seen) < count:
            number = _checked(self._next())
            if number in seen or not first <= number < sent:
                raise WrongAnswerError(f"An answer has the id {number}.")
            seen.add(number)
            if sent < last:
                self._send(_call(sent))
                sent += 1

    def open(self) -> None:
        """Open the session."""
        self._send(json.dumps(HELLO).encode(), b"\n")
        found = self._next()
        if found.get("id") != "hello" or "result" not in found:
            raise ServerFailedError(f"initialize was answered with {found}.")
        self._send(READY)

    def _send(self, *messages: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(b"".join(messages))
        self.child.stdin.flush()

    def _next(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line:
            raise ServerFailedError("The server on stdio has ended.")
        message: dict[str, Any] = json.loads(line)
        return message


def _call(number: int) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"drill_add",'
        b'"arguments":{"a":%d,"b":1}}}\n' % (number, number)
    )


def _checked(message: Mapping[str, Any]) -> int:
    """Return the id of a right answer."""
    number, result = message.get("id"), message.get("result", {})
    right = type(number) is int and result.get("structuredContent") == {
        "result": number + 1
    }
    if not right or type(number) is not int:
        raise WrongAnswerError(f"drill_add was answered with {message}.")
    return number


@contextmanager
def drill() -> Iterator[Piped]:
    """Serve the fixture set from a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        own = environment(database(Path(folder)))
        with _running(COMMAND, own) as server:
            yield server


@contextmanager
def sdk() -> Iterator[Piped]:
    """Serve the tool with the official Python SDK."""
    command = [sys.executable, "-m", "benchmarks.sdk_peer"]
    with _running(command, inherited()) as server:
        yield server


@contextmanager
def _running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Piped]:
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    server = Piped(child)
    try:
        server.open()
        yield server
    finally:
        child.kill()
        child.communicate()
