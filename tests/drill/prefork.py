"""A process that has loaded the fixture set, and forks a server for whoever asks.

    python -m tests.drill.prefork

It reads a line of JSON, `{"port": 8765, "output": "/tmp/written"}`, and answers with
the server's process id.  Servers that are killed again and again are there at once this
way: to load everything takes two seconds of a processor.  All have the database that
DATABASE_URL names.

    prefork = Prefork({"DATABASE_URL": url, "SERVER": "uvicorn"})
    process = prefork.launched(port, output)
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import django
from django.utils.module_loading import import_string

from tests.drill import serve

ROOT: Final = Path(__file__).resolve().parents[2]
LOADED: Final = ("mcp_project.asgi.application", "uvicorn.Server", "uvloop.Loop")


class Forked:
    """A process that another one has forked: a `subprocess.Popen` without a status."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # It names this process for ever, the number may be another's one day.
        self._descriptor = os.pidfd_open(pid)
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        """Return None as long as it runs; whatever its status was, 1 stands for it."""
        if self.returncode is None and self._is_over(0):
            self.returncode = 1
            os.close(self._descriptor)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return when it is over; raise `TimeoutExpired` after so many seconds."""
        if self.returncode is None and not self._is_over(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return self.poll() or 0

    def _is_over(self, timeout: float | None) -> bool:
        found = select.poll()
        found.register(self._descriptor, select.POLLIN)
        return bool(found.poll(None if timeout is None else timeout * 1000))


class Prefork:
    """The program; its servers may live longer."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.drill.prefork"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End it, as it does with its input."""
        self._process.communicate()

    def launched(self, port: int, output: Path) -> Forked:
        """Return a server that is about to begin."""
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            asked = json.dumps({"port": port, "output": str(output)})
            self._process.stdin.write(f"{asked}\n")
            self._process.stdin.flush()
            return Forked(int(self._process.stdout.readline()))


def main() -> None:
    """Load, and fork for each line."""
    if not os.environ.get("DATABASE_URL"):
        sys.exit("DATABASE_URL is missing: settings are read before a server forks.")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
    django.setup()
    for path in LOADED:
        import_string(path)
    # Nobody asks for their statuses.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            served(asked["port"], asked["output"])
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def served(port: int, output: str) -> NoReturn:
    """Serve, and end without what the parent does at its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    written = os.open(output, os.O_WRONLY | os.O_APPEND)
    for stream, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), written)):
        os.dup2(descriptor, stream)
    os.dup2(written, 2)
    os.environ["PORT"] = str(port)
    try:
        os._exit(serve.main())
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(1)


if __name__ == "__main__":
    main()
