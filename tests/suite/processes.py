"""Programs of a run: what they cost, and that none of them outlives it.

Programs that lose their parent become children of the run (`prctl(2)`,
PR_SET_CHILD_SUBREAPER): what they needed is counted, and they end with it.  Each has
the run's name in its environment; those of a run that was killed are ended by the next.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from tests.suite.owners import is_left

PR_SET_CHILD_SUBREAPER: Final = 36
PROC: Final = Path("/proc")
RUN: Final = "SUITE_RUN"
"""The environment variable with the run's name."""
PATIENCE_S: Final = 20.0
"""So long may a program take to clear up when it is asked to end."""
LOOK_S: Final = 0.1


def adopt_orphans() -> None:
    """Become the parent of each descendant that loses its own, where Linux runs."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Ended:
    """A child that has ended, with the processor seconds of it and of its children."""

    pid: int
    status: int
    processor: float


class Programs:
    """The children of this process; whoever makes it ends them."""

    def __init__(self) -> None:
        self._started: set[int] = set()

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], output: Path
    ) -> int:
        """Return the process id of a program in a session of its own."""
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # `ended` waits for it, and subprocess is not to warn of that.
        process.returncode = 0
        self._started.add(process.pid)
        return process.pid

    def ended(self) -> Ended | None:
        """Return a child that has ended, adopted ones too; None while all run."""
        with suppress(ChildProcessError):
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid:
                self._started.discard(pid)
                return Ended(
                    pid,
                    os.waitstatus_to_exitcode(status),
                    usage.ru_utime + usage.ru_stime,
                )
        return None

    def end(self) -> float:
        """End all descendants, asked first, then killed; return what they needed."""
        processor = 0.0
        deadline, last = time.monotonic() + PATIENCE_S, inf
        _signal([*self._started], signal.SIGINT)
        while True:
            while (one := self.ended()) is not None:
                processor += one.processor
            now, alive = time.monotonic(), {*self._started, *descendants(os.getpid())}
            if not alive or now > last:
                return processor
            if now > deadline or not self._started:
                _signal(alive, signal.SIGKILL)
                # Another user's may not be killed: nobody waits for those for ever.
                last = min(last, now + PATIENCE_S)
            time.sleep(LOOK_S)


def children(pid: int) -> list[int]:
    """Return the children of a process, zombies too."""
    listed: list[int] = []
    for task in (PROC / str(pid) / "task").glob("*/children"):
        with suppress(OSError):
            listed += map(int, task.read_text(encoding="ascii").split())
    return listed


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    direct = children(pid)
    return [*direct, *(below for each in direct for below in descendants(each))]


def processes_of_runs() -> Iterator[tuple[int, str]]:
    """Yield each process that belongs to a run, with the name of the run."""
    prefix = f"{RUN}=".encode()
    for path in PROC.glob("[0-9]*/environ"):
        with suppress(OSError):
            for variable in path.read_bytes().split(b"\0"):
                if variable.startswith(prefix):
                    yield int(path.parent.name), variable[len(prefix) :].decode()


def end_programs_of_killed_runs() -> None:
    """Kill what belongs to runs that have ended without clearing up."""
    left = [pid for pid, run in processes_of_runs() if is_left(run)]
    _signal(left, signal.SIGKILL)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
