"""Programs that tests start, each in a process group of its own.

with Program([sys.executable, "-m", "tests.drill.serve"]) as program:
    program.wait_until(it_answers, 60)
    assert program.stop() == 0

One that is left when the tests end is killed, also where they are killed themselves: a
shell waits for that.  The system would do it for a process (PR_SET_PDEATHSIG), but not
for those that it has started, and as soon as the thread that started it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import DEVNULL, PIPE, STDOUT
from threading import Lock, Thread
from typing import Final, Self

from tests.drill.databases import until_the_end

ROOT: Final = Path(__file__).resolve().parents[2]
STOP_S: Final = 120
LOOK_S: Final = 0.02

LAST_WILL: Final = """
while read -r line; do groups=$line; done
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class ProgramFailed(Exception):
    """A program did not start, or did not end well; the text has its output."""


class Program:
    """A program that runs; whoever makes one ends it, as a block of `with` does.

    With `pipes` a test talks to it, and its output is what it writes beside that.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        cwd: str | Path = ROOT,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        pipes: bool = False,
    ) -> None:
        # A file, because a full pipe would stop it.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - until its end
        self._output = ""
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            user=user,
            stdin=PIPE if pipes else DEVNULL,
            stdout=PIPE if pipes else self._file,
            stderr=self._file if pipes else STDOUT,
            start_new_session=True,
        )
        _tell_heir(_groups.add, self.process.pid)
        self._lines = SimpleQueue[bytes]()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        if not self._file.closed:
            written = self._file.fileno()
            found = os.pread(written, os.fstat(written).st_size, 0)
            self._output = found.decode(errors="replace")
        return self._output

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return when it is ready; raise `ProgramFailed` if it ends or takes longer."""
        end = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise self._failure(f"ended with {self.process.returncode}")
            if time.monotonic() > end:
                raise self._failure(f"was not ready within {seconds} s")
            time.sleep(LOOK_S)

    def say(self, line: str) -> None:
        self.write(f"{line}\n".encode())

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def hear(self, seconds: float | None = None) -> str:
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            raise self._failure(f"said nothing for {seconds} s") from None
        if not line:
            # For whoever asks again.
            self._lines.put(line)
        return line.decode()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line)
        self._lines.put(b"")

    def wait(self, seconds: float = STOP_S) -> int:
        """Return its exit status, and leave none of its processes.

        Raises `ProgramFailed` if it has not ended by itself.
        """
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self._failure(f"did not end within {seconds} s") from None
        self.kill()
        return status

    def stop(self) -> int:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End all of its processes at once, as a crash would."""
        if self._file.closed:
            return
        if not self._has_lost_number():
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        _tell_heir(_groups.discard, self.process.pid)
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            # What could not be written any more is lost.
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self._output = self.output
        self._file.close()

    def _has_lost_number(self) -> bool:
        """Whether the number of its group is that of another process by now.

        The system gives a number again once nobody of the group is left.
        """
        if self.process.returncode is None:
            return False
        try:
            os.kill(self.process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            # It is somebody else's.
            return True
        return True

    def _failure(self, what: str) -> ProgramFailed:
        self.kill()
        return ProgramFailed(f"{self.process.args!r} {what}:\n{self.output}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.kill()
        if error is not None:
            error.add_note(f"{self.process.args!r} wrote:\n{self.output}")


_groups: Final[set[int]] = set()
_lock: Final = Lock()


def _tell_heir(change: Callable[[int], None], group: int) -> None:
    with _lock:
        change(group)
        pipe = _heir().stdin
        assert pipe is not None
        pipe.write(f"{' '.join(map(str, _groups))}\n".encode())
        pipe.flush()


@cache
def _heir() -> subprocess.Popen[bytes]:
    """Return a shell that kills the groups it was told last when its input ends."""
    command = ["sh", "-c", LAST_WILL]
    heir = subprocess.Popen(
        command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
    )
    until_the_end.callback(heir.communicate)
    return heir
