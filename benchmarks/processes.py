"""Servers as processes: started, measured from /proc, ended by their ids."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

START_SECONDS = 180.0
"""A server with 10,000 tools writes as many rows before it listens."""
STOP_SECONDS = 15.0

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_ALL = (11, 12, 13, 14)
"""User and system time, of the process and of its children that have ended."""
_KERNEL = (12, 14)


class ServerFailedError(Exception):
    """A server ended or did not answer; the text has the end of its output."""


class Process:
    """A running server and the processes under it."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port

    def tree(self) -> list[int]:
        """Return the ids of this process and of all that descend from it."""
        found = [self.pid]
        for pid in found:
            found.extend(_children(pid))
        return found

    def cpu_seconds(self) -> float:
        """Return the user and system time of the tree, ended children included."""
        return sum(_ticks(pid) for pid in self.tree()) / _TICKS_PER_SECOND

    def kernel_seconds(self) -> float:
        """Return the system time in it."""
        return sum(_ticks(pid, _KERNEL) for pid in self.tree()) / _TICKS_PER_SECOND

    def resident_kib(self) -> float:
        """Return the tree's resident set size, which nobody who shares it changes.

        Only what it grows by means something: shared pages count for each process.
        """
        return sum(_resident_kib(pid) for pid in self.tree())


@contextmanager
def serving(
    command: Sequence[str], port: int, environment: Mapping[str, str]
) -> Iterator[Process]:
    """Run a server until the block ends; when it begins, that port answers.

    The server's environment is what is given and what finds programs, nothing
    else: a DATABASE_URL of the caller must not change a figure.
    """
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**inherited(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        process = Process(child.pid, port)
        try:
            if not _ready(child, port):
                raise ServerFailedError(_complaint(command, output.fileno()))
            yield process
        finally:
            _stop(child, process)


def inherited() -> dict[str, str]:
    """Return what a server needs of this environment to find programs."""
    names = ("PATH", "HOME", "LANG", "TMPDIR")
    return {name: os.environ[name] for name in names if name in os.environ}


def run_module(module: str, environment: Mapping[str, str]) -> Any:
    """Run `python -m module` to its end; return the JSON of its last line."""
    ended = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise ServerFailedError(ended.stderr[-2000:])
    return json.loads(ended.stdout.splitlines()[-1])


def _ready(child: subprocess.Popen[bytes], port: int) -> bool:
    end = time.monotonic() + START_SECONDS
    while child.poll() is None and time.monotonic() < end:
        if _answers(port, end - time.monotonic()):
            return True
        time.sleep(0.05)
    return False


def _answers(port: int, seconds: float) -> bool:
    """Return whether a request gets any response, be it an error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/mcp")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def _complaint(command: Sequence[str], output: int) -> str:
    size = os.fstat(output).st_size
    tail = os.pread(output, 4000, max(0, size - 4000)).decode(errors="replace")
    return f"{' '.join(command)} does not answer. The end of its output:\n{tail}"


def _stop(child: subprocess.Popen[bytes], process: Process) -> None:
    """End the server, and by their ids those of its tree that outlive it."""
    pids = process.tree()
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            text = (task / "children").read_text()
            children.extend(int(child) for child in text.split())
    return children


def _ticks(pid: int, fields: tuple[int, ...] = _ALL) -> int:
    with suppress(OSError):
        # The name, in brackets, may hold spaces; utime is the 14th field.
        found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(found[field]) for field in fields)
    return 0


def _resident_kib(pid: int) -> int:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        found = re.search(r"^Rss:\s+(\d+) kB", text, re.MULTILINE)
        return int(found[1]) if found else 0
    return 0
