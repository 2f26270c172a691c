"""A Redis of a test's own, which may be killed and started again."""

from __future__ import annotations

import shutil
from typing import Final

import pytest

from tests.drill.ports import HOST, free_port, has_listener
from tests.drill.programs import Program

START_S: Final = 60


class RedisServer:
    """Keeps nothing on disk."""

    def __init__(self) -> None:
        found = shutil.which("redis-server")
        if found is None:
            pytest.skip("redis-server is missing: it comes with the system.")
        self._command = found
        self.port = free_port()
        self.url = f"redis://{HOST}:{self.port}/0"
        self._program: Program | None = None

    def start(self) -> None:
        """Return when it answers."""
        options = ["--port", str(self.port), "--bind", HOST, "--save", ""]
        # It would write its title over its environment, which says whose it is.
        untitled = ["--set-proc-title", "no"]
        self._program = Program([self._command, *options, *untitled])
        self._program.wait_until(lambda: has_listener(self.port), START_S)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._program is not None:
            self._program.kill()
