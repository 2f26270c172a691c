"""Programs that the tools of the suite start, and end with all that they began."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

NOT_INHERITED: Final = (
    *("COVERAGE_", "DATABASE_URL", "DJANGO_", "PYTEST_", "REDIS_URL"),
    *("REQUIRE_ALL", "SECRECY"),
)
"""What begins so is for the pytest around us, not for the one that we start."""
LOOK_S: Final = 0.1
GREEN: Final = (0, 5)
"""How pytest ends where all passed, and where there was no test."""
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


class Stopped(Exception):
    """Somebody has ended us."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended: its status, what it wrote, seconds of the processor.

    The status is negative for a signal: -9 where it took too long.
    """

    status: int
    output: str
    seconds: float

    @property
    def green(self) -> bool:
        return self.status in GREEN

    @property
    def failed(self) -> list[str]:
        """The tests, or modules, that pytest names as failed with `-rfE`."""
        return FAILED.findall(self.output)


def run(
    command: Sequence[str],
    folder: Path,
    stop: Event,
    ends_s: float,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end, in a group of its own, of which nothing is left.

    Raises `Stopped` where the event is set meanwhile.
    """
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=inherited() | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        seconds = _waited(process, stop, time.monotonic() + ends_s)
        if stop.is_set():
            raise Stopped
        output.seek(0)
        return Ended(process.returncode, output.read(), seconds)


def inherited() -> dict[str, str]:
    """Return the environment without what is for us alone."""
    return {k: v for k, v in os.environ.items() if not k.startswith(NOT_INHERITED)}


def _waited(process: subprocess.Popen[bytes], stop: Event, ends: float) -> float:
    """Return the seconds of a process and of its children."""
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            _kill(pid)
            return used.ru_utime + used.ru_stime
        if stop.is_set() or time.monotonic() > ends:
            _kill(process.pid)
        time.sleep(LOOK_S)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def end_as_by_control_c() -> None:
    """Let SIGTERM end us as SIGINT does: what was begun is ended, too."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
