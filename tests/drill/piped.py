"""Runs `manage.py mcp_stdio` with the fixture set, for a test that has its pipes.

with piped(tmp_path) as server:
    server.send({...})
    server.next()
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from tests.drill.databases import prepared_file
from tests.drill.running import OWN, ROOT

COMMAND: Final = (sys.executable, str(ROOT / "manage.py"), "mcp_stdio")
PATIENCE_S: Final = 120


def database(directory: Path) -> Path:
    """Return a copy of the prepared database in a directory of the test's."""
    path = directory / "db.sqlite3"
    shutil.copy(prepared_file(), path)
    return path


def environment(file: Path, **more: str) -> dict[str, str]:
    """Return the environment of a command that uses a database file."""
    inherited = {k: v for k, v in os.environ.items() if k not in OWN}
    settings = "tests.drill.settings"
    own = {"DATABASE_URL": f"sqlite:///{file}", "DJANGO_SETTINGS_MODULE": settings}
    return {**inherited, **own, **more}


class Piped:
    """A server on pipes; its standard error is a file."""

    def __init__(self, env: Mapping[str, str], written: Path, *arguments: str) -> None:
        self._path = written
        with written.open("wb") as file:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=ROOT,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    @property
    def written(self) -> str:
        """What it has written to standard error."""
        return self._path.read_text(encoding="utf-8", errors="replace")

    def send(self, *messages: Any) -> None:
        """Write messages, all at once."""
        self.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def next(self) -> Any:
        """Return the next message; None at the end."""
        line = self._lines.get(timeout=PATIENCE_S)
        return json.loads(line) if line else None

    def answer(self, request_id: object) -> Any:
        """Return the answer to a request, and drop what comes before it."""
        while (message := self.next()) is not None:
            if message.get("id") == request_id:
                return message
        raise AssertionError(f"It ended before its answer:\n{self.written}")

    def rest(self) -> list[Any]:
        """Return all messages that come to the end."""
        return list(iter(self.next, None))

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        """Return the exit status."""
        return self.process.wait(PATIENCE_S)


@contextmanager
def piped(
    directory: Path, *arguments: str, file: Path | None = None, **env: str
) -> Iterator[Piped]:
    """Run a server; kill it if it runs at the end.

    Without a database file it has one of its own.
    """
    used = environment(file or database(directory), **env)
    server = Piped(used, directory / "stderr", *arguments)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        for pipe in (server.process.stdin, server.process.stdout):
            assert pipe is not None
            # What could not be written any more is lost.
            with suppress(BrokenPipeError):
                pipe.close()
