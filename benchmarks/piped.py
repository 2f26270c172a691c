"""Servers on pipes: started, asked, and looked at in /proc."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.client import WrongAnswerError
from benchmarks.processes import ROOT, ServerFailedError

HELLO: Final = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmarks", "version": "1"},
    },
}
READY: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PREPARE: Final = """
import django
django.setup()
from tests.drill.preparing import prepare
prepare()
"""


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
        self._write(range(first, sent))
        seen: set[int] = set()
        while len(seen) < count:
            number = _checked(self._next())
            if number in seen or not first <= number < sent:
                raise WrongAnswerError(f"An answer has the id {number}.")
            seen.add(number)
            if sent < last:
                self._write(range(sent, sent + 1))
                sent += 1

    def open(self) -> None:
        """Open the session."""
        self._send(HELLO)
        found = self._next()
        if found.get("id") != "hello" or "result" not in found:
            raise ServerFailedError(f"initialize was answered with {found}.")
        self._send(READY)

    def proportional_kib(self) -> float:
        """Return the memory of the process, what it shares divided (PSS)."""
        text = Path(f"/proc/{self.child.pid}/smaps_rollup").read_text()
        found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def _write(self, numbers: Sequence[int]) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(b"".join(map(_call, numbers)))
        self.child.stdin.flush()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
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
        environment = {
            **_inherited(),
            "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
        }
        subprocess.run(
            [sys.executable, "-c", PREPARE], cwd=ROOT, env=environment, check=True
        )
        with _running(["manage.py", "mcp_stdio"], environment) as server:
            yield server


@contextmanager
def sdk() -> Iterator[Piped]:
    """Serve the tool with the official Python SDK."""
    with _running(["-m", "benchmarks.sdk_peer"], _inherited()) as server:
        yield server


def _inherited() -> dict[str, str]:
    return {
        name: os.environ[name]
        for name in ("PATH", "HOME", "LANG", "TMPDIR")
        if name in os.environ
    }


@contextmanager
def _running(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> Iterator[Piped]:
    child = subprocess.Popen(
        [sys.executable, *arguments],
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
