"""Programs as a newcomer starts them: in a fresh shell, ended with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.drill.ports import HOST
from tests.wire.programs import wire_checked

CHECKOUT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 120
STOP_S: Final = 60
LOOK_S: Final = 0.05
PATIENCE_S: Final = 300

KEPT: Final = ("LANG", "TMPDIR")


class ProgramFailed(Exception):
    """A program did not start, or did not end well; the text has its output."""


def shell_environment(**variables: str) -> dict[str, str]:
    """The environment of a fresh shell in which the virtual environment is active."""
    programs = Path(sys.executable).parent
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": tempfile.gettempdir(),
        # What is printed has to be there when it is looked for.
        "PYTHONUNBUFFERED": "1",
        **variables,
    }


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Run a command to its good end; return what it printed."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if ended.returncode:
        raise ProgramFailed(f"{command} ended with {ended.returncode}:\n{ended.stderr}")
    return ended.stdout


class Serving:
    """A program that serves on a port of loopback; `output` is what it has written."""

    def __init__(self, url: str, written: Path) -> None:
        self.url = url
        self._written = written

    @property
    def output(self) -> str:
        return self._written.read_text(encoding="utf-8", errors="replace")


@contextmanager
def serving(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], port: int
) -> Iterator[Serving]:
    """Run a program while it serves on the port, and end all of its processes."""
    with (
        wire_checked(environment) as checked,
        tempfile.NamedTemporaryFile() as written,
    ):
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=checked,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        served = Serving(f"http://{HOST}:{port}", Path(written.name))
        try:
            _wait_until_it_listens(process, port, served)
            yield served
        except BaseException as error:
            error.add_note(f"{command} wrote:\n{served.output}")
            raise
        finally:
            _end(process)


def _wait_until_it_listens(
    process: subprocess.Popen[bytes], port: int, served: Serving
) -> None:
    end = time.monotonic() + START_S
    while not _listened_to(port):
        if process.poll() is not None or time.monotonic() > end:
            raise ProgramFailed(f"It does not serve:\n{served.output}")
        time.sleep(LOOK_S)


def _listened_to(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex((HOST, port)) == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """End all processes of the shell's job, as closing the terminal does.

    SIGINT would do, too, but not where the tests themselves run in the background.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise ProgramFailed(f"{process.args!r} does not end.") from None
