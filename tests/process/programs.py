"""The command lines of ASGI servers, serving the fixture set from a database file."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

from tests.drill.databases import prepared_file
from tests.drill.ports import HOST, free_port
from tests.drill.running import LOOK_S, OWN, ROOT, START_S
from tests.process.streaming import called
from tests.wire.programs import wire_checked

APPLICATION: Final = "mcp_project.asgi:application"

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "daphne": ("daphne", "-b", HOST, "-p", "{port}", APPLICATION),
    "uvicorn": (
        *("uvicorn", "--host", HOST, "--port", "{port}", "--lifespan", "off"),
        *("--workers", "2", "--timeout-worker-healthcheck", "60", APPLICATION),
    ),
    "granian": (
        *("granian", "--host", HOST, "--port", "{port}", "--interface", "asginl"),
        *("--workers", "2", "--workers-kill-timeout", "30"),
        *("--respawn-failed-workers", APPLICATION),
    ),
    "gunicorn": (
        *("gunicorn", "--bind", f"{HOST}:{{port}}", "--workers", "2", "--preload"),
        *("--worker-class", "uvicorn_worker.UvicornWorker", "--no-control-socket"),
        *("--graceful-timeout", "30", APPLICATION),
    ),
    "sync": (
        *("gunicorn", "--bind", f"{HOST}:{{port}}", "--workers", "1"),
        *("--no-control-socket", "mcp_project.wsgi:application"),
    ),
}


@dataclass(frozen=True, slots=True)
class Program:
    """A server that runs, with all of its processes in one group."""

    url: str
    process: subprocess.Popen[bytes]
    written: IO[bytes]
    database: Path

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def workers(self) -> dict[str, int]:
        """Return the ids of the processes that have a row, with their pids."""
        with closing(sqlite3.connect(self.database)) as connection:
            return dict(connection.execute("SELECT id, pid FROM mcp_app_worker"))

    @property
    def output(self) -> str:
        """What it has written so far."""
        return Path(self.written.name).read_text(errors="replace")

    def wait_until_ready(self) -> None:
        """Return when it serves a call."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            answer = called(self.url, "drill_add", a=1, b=1)
            if answer.until(lambda each: each.ended).status == 200:
                return
            assert self.process.poll() is None, self.output
            time.sleep(LOOK_S)
        raise AssertionError(f"The server did not start:\n{self.output}")


@contextmanager
def program(name: str, env: Mapping[str, str], *options: str) -> Iterator[Program]:
    """Run a server's own command; whatever is left of it is killed at the end."""
    port = free_port()
    url = f"http://{HOST}:{port}/mcp"
    *command, last = [part.format(port=port) for part in COMMANDS[name]]
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory) / "db.sqlite3"
        environment = {
            **{name: value for name, value in os.environ.items() if name not in OWN},
            "DATABASE_URL": f"sqlite:///{database}",
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
            **env,
        }
        shutil.copy(prepared_file(), database)
        with (
            wire_checked(environment) as checked,
            open(Path(directory) / "output", "wb") as output,
        ):
            process = subprocess.Popen(
                [sys.executable, "-m", *command, *options, last],
                cwd=ROOT,
                env=checked,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            running = Program(url, process, output, database)
            try:
                running.wait_until_ready()
                yield running
            finally:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
