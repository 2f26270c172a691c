"""A Redis of a test's own, which may be killed and started again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from typing import Final

import pytest

from tests.drill.ports import HOST, free_port

START_S: Final = 60


class RedisServer:
    """Keeps nothing on disk."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is missing: it comes with the system.")
        self._program = program
        self.port = free_port()
        self.url = f"redis://{HOST}:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it answers."""
        options = ["--port", str(self.port), "--bind", HOST, "--save", ""]
        # It would write its title over its environment, which says whose it is.
        untitled = ["--set-proc-title", "no"]
        self._process = subprocess.Popen(
            [self._program, *options, *untitled],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + START_S
        while not self._answers():
            assert time.monotonic() < end, "redis-server did not start."
            time.sleep(0.01)

    def _answers(self) -> bool:
        with socket.socket() as caller:
            return caller.connect_ex((HOST, self.port)) == 0

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
