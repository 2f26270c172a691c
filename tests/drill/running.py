"""Starts the fixture server as a process of its own, for a test.

with running("uvicorn") as url:
    ...

What it sends is checked, unless the test says otherwise.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.drill.databases import prepared_file, until_the_end
from tests.drill.ports import HOST, directory_of, free_port
from tests.drill.prefork import Prefork
from tests.drill.telling import END, TELL
from tests.secrecy import look_at_file

ROOT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 120
STOP_S: Final = 60
LOOK_S: Final = 0.05
PORT_TAKEN: Final = 4
SERVING: Final = "Serving "
ATTEMPTS: Final = 5

# A server gets these from its test, never from whoever runs the tests. It is not
# measured, for that would double what it needs of a processor, and what it runs is
# reached by tests that are in one process with the endpoint, too.
OWN: Final = frozenset(
    {
        *("APPS", "BROKER_URL", "QUEUE", "SKILL_FOLDERS"),
        *("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START", "DATABASE_URL", "DEBUG"),
        *("DJANGO_SETTINGS_MODULE", "FAULTS", "HAPPENINGS", "JANITOR", "LEDGER"),
        *("MCP_USER", "MOUNT"),
        *("NOISE", "NTOOLS", "PATIENCE", "PORT", "RECORD", "REDIS_URL", "ROWS"),
        *("SECRET_KEY", "SERVER", "SPANS", "TASK_TOOLS", "UNFOLD", "WIRE"),
        "WIRE_REPORT",
    }
)


THERE: Final = {"ROWS": "there"}
"""For a database that has its tables and rows: the server need not look for them."""


class ServerFailed(Exception):
    """The server did not start, or did not end well; the text has its output."""


class DrillServer:
    """A process that serves the fixture set; `url` is that of the endpoint.

    Whoever makes one ends it, with `stop` or `kill`.
    """

    def __init__(self, port: int, environment: Mapping[str, str]) -> None:
        self.port = port
        self.url = f"http://{HOST}:{port}/mcp"
        self._written = ""
        # A file, because a full pipe would stop the server.
        with tempfile.NamedTemporaryFile(delete=False) as output:
            self._path = Path(output.name)
        self.process = _prefork.launched({**environment, "PORT": str(port)}, self._path)

    @property
    def output(self) -> str:
        if self._path.exists():
            self._written = self._path.read_text(encoding="utf-8", errors="replace")
        return self._written

    def wait_until_ready(self) -> None:
        end = time.monotonic() + START_S
        # Before it says so, the port may be another server's.
        while SERVING not in self.output or not _answers(self.url):
            if self.process.poll() is not None or time.monotonic() > end:
                raise ServerFailed(f"The server did not start:\n{self.output}")
            time.sleep(LOOK_S)

    def tell(self) -> None:
        """Let it write what it does, if it still can; for whoever waits in vain."""
        if self.process.poll() is None:
            self.process.send_signal(TELL)
            end = time.monotonic() + 5
            while END not in self.output and time.monotonic() < end:
                time.sleep(LOOK_S)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(
                f"The server did not end within {STOP_S} s:\n{self.output}"
            ) from None
        self._clear_away()
        return status

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._clear_away()

    def _clear_away(self) -> None:
        self._written = self.output
        self._path.unlink(missing_ok=True)
        look_at_file(directory_of(self.port) / "db.sqlite3")
        # One that was killed could not do it.
        shutil.rmtree(directory_of(self.port), ignore_errors=True)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=START_S):  # noqa: S310
            return True
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except OSError:
        return False


def inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OWN}


_prefork: Final = Prefork(inherited)
until_the_end.callback(_prefork.close)


def started(
    server: str = "daphne",
    env: Mapping[str, str] | None = None,
    *,
    port: int | None = None,
) -> DrillServer:
    """Start a server, on a free port if none is given; return it when it answers.

    Where no database is named, it has a copy of the prepared one.  The caller ends it
    with `stop` or `kill`.
    """
    given = {"SERVER": server, "WIRE": "check", **(env or {})}
    if given.keys().isdisjoint({"DATABASE_URL", "ROWS"}):
        given["ROWS"] = str(prepared_file())
    for _ in range(ATTEMPTS):
        drill = DrillServer(port or free_port(), {**inherited(), **given})
        try:
            drill.wait_until_ready()
        except ServerFailed:
            drill.kill()
            # Somebody was faster with this port.
            if drill.process.returncode != PORT_TAKEN:
                raise
        else:
            return drill
    raise ServerFailed(f"No port was free in {ATTEMPTS} attempts.")


@contextmanager
def running(
    server: str = "daphne", env: Mapping[str, str] | None = None
) -> Iterator[str]:
    drill = started(server, env)
    try:
        yield drill.url
    except BaseException as error:
        drill.kill()
        error.add_note(f"The server wrote:\n{drill.output}")
        raise
    status = drill.stop()
    if status:
        raise ServerFailed(f"The server ended with {status}:\n{drill.output}")
