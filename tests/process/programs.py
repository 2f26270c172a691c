"""The command lines of ASGI servers, serving the fixture set from a database file."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from tests.drill.piped import database, environment
from tests.drill.ports import HOST, free_port
from tests.drill.programs import Program
from tests.drill.running import START_S, DrillServer, started
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


class Command(Program):
    def __init__(self, name: str, env: Mapping[str, str], *options: str) -> None:
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}/mcp"
        self._database = env["DATABASE_URL"].removeprefix("sqlite:///")
        *command, last = [part.format(port=self.port) for part in COMMANDS[name]]
        super().__init__([sys.executable, "-m", *command, *options, last], env=env)

    def workers(self) -> dict[str, int]:
        """Return the ids of the processes that have a row, with their pids."""
        with closing(sqlite3.connect(self._database)) as connection:
            return dict(connection.execute("SELECT id, pid FROM mcp_app_worker"))

    def serves(self) -> bool:
        answer = called(self.url, "drill_add", a=1, b=1)
        return answer.until(lambda each: each.ended).status == 200


@contextmanager
def serving(server: str, env: Mapping[str, str]) -> Iterator[DrillServer]:
    """Run a server, which must end well."""
    running = started(server, env)
    try:
        yield running
        assert running.stop() == 0, running.output
    finally:
        running.kill()


@contextmanager
def program(name: str, env: Mapping[str, str], *options: str) -> Iterator[Command]:
    with tempfile.TemporaryDirectory() as directory:
        given = {**environment(database(Path(directory))), **env}
        with (
            wire_checked(given) as checked,
            Command(name, checked, *options) as running,
        ):
            running.wait_until(running.serves, START_S)
            yield running
