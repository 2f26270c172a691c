"""Runs `manage.py mcp_stdio` with the fixture set, for a test that has its pipes.

with piped(tmp_path) as server:
    server.send({...})
    server.next()
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.drill.databases import prepared_file
from tests.drill.programs import Program
from tests.drill.running import OWN, ROOT

COMMAND: Final = (sys.executable, str(ROOT / "manage.py"), "mcp_stdio")
PATIENCE_S: Final = 120


def database(directory: Path) -> Path:
    path = directory / "db.sqlite3"
    shutil.copy(prepared_file(), path)
    return path


def environment(file: Path, **more: str) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if k not in OWN}
    settings = "tests.drill.settings"
    own = {"DATABASE_URL": f"sqlite:///{file}", "DJANGO_SETTINGS_MODULE": settings}
    return {**inherited, **own, **more}


class Piped(Program):
    """A server on pipes; its output is what it writes to standard error."""

    def send(self, *messages: Any) -> None:
        self.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))

    def next(self) -> Any:
        line = self.hear(PATIENCE_S)
        return json.loads(line) if line else None

    def answer(self, request_id: object) -> Any:
        while (message := self.next()) is not None:
            if message.get("id") == request_id:
                return message
        raise AssertionError(f"It ended before its answer:\n{self.output}")

    def rest(self) -> list[Any]:
        return list(iter(self.next, None))


@contextmanager
def piped(
    directory: Path, *arguments: str, file: Path | None = None, **env: str
) -> Iterator[Piped]:
    """Run a server; kill it if it runs at the end.

    Without a database file it has one of its own.
    """
    used = environment(file or database(directory), **env)
    with Piped([*COMMAND, *arguments], env=used, pipes=True) as server:
        yield server
