"""A process that has loaded the fixture set, and forks a server for whoever asks.

    python -m tests.drill.prefork

To load everything takes a second of a processor: each process of the tests starts one
of these, for all of its servers.  A line of JSON asks for a server, by its environment
and the file that it writes into, and is answered with its process id.  A process id
asks for the status of a server that has ended.  Its servers end with it, and it ends
with its input.

    prefork = Prefork(lambda: os.environ)
    process = prefork.launched({"PORT": "8765", "DATABASE_URL": url}, output)

What was read of the environment before the fork a server reads again, for it has its
own; where that is not enough, it begins anew as the program that it is otherwise.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils.module_loading import import_string

from tests import secrecy
from tests.conformance import disabling
from tests.drill import serve
from tests.drill.apps import say_that_fixtures_are_there

ROOT: Final = Path(__file__).resolve().parents[2]
SETTINGS: Final = ("mcp_project.settings", serve.SETTINGS)
READ_AGAIN: Final = frozenset({"DATABASES", "LOGGING", "MCP"})
"""Settings that are read while all is loaded, and may differ in a server."""
READ_ONCE: Final = (disabling.VARIABLE, secrecy.VARIABLE)
"""What is read from the environment itself, where Django is set up."""
LOADED: Final = (
    "channels_redis.pubsub",
    # Not `daphne.server`: it makes a loop, which processes cannot share.
    "daphne.http_protocol",
    "django.contrib.sessions.backends.db",
    "django.core.asgi",
    "django.core.wsgi",
    "django.db.backends.postgresql.base",
    "django.db.models.sql.compiler",
    "gunicorn.workers.gthread",
    "mcp_app.asgi",
    "mcp_app.transports.http.consumer",
    "tests.drill.preloading",
    "tests.drill.preparing",
    "tests.drill.urls",
    "uvicorn.lifespan.off",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.auto",
)
"""Modules that servers import, besides those that Django does."""


class PreforkEnded(Exception):
    """It cannot answer any more."""


class Forked:
    def __init__(self, pid: int, prefork: Prefork) -> None:
        self.pid = pid
        self._prefork = prefork
        self._lock = threading.Lock()
        # It names this process for ever, the number may be another's one day.
        self._descriptor = os.pidfd_open(pid)
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and self._is_over(0):
                self.returncode = self._prefork.status(self.pid)
                os.close(self._descriptor)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not self._is_over(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        status = self.poll()
        assert status is not None
        return status

    def _is_over(self, timeout: float | None) -> bool:
        watched = select.poll()
        watched.register(self._descriptor, select.POLLIN)
        return bool(watched.poll(None if timeout is None else timeout * 1000))


class Prefork:
    """The program, which is started when it is needed; threads may share it."""

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def launched(self, environment: Mapping[str, str], output: Path) -> Forked:
        asked = {"environment": dict(environment), "output": str(output)}
        return Forked(self._answer(asked), self)

    def status(self, pid: int) -> int:
        return self._answer(pid)

    def close(self) -> None:
        with self._lock:
            if self._process is not None:
                self._process.communicate()
            self._process = None

    def _answer(self, asked: object) -> int:
        with self._lock:
            process = self._process = self._process or self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(f"{json.dumps(asked)}\n")
                process.stdin.flush()
            if answer := process.stdout.readline():
                return int(answer)
        raise PreforkEnded(f"It has ended with {process.wait()}.")

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.drill.prefork"],
            cwd=ROOT,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def main() -> None:
    load()
    # Ctrl+C ends servers, and somebody wants to know how.
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: set[int] = set()
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            running.remove(asked)
            answer = os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1])
        else:
            answer = os.fork()
            if not answer:
                signal.signal(signal.SIGINT, interrupted)
                served(**asked)
            running.add(answer)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def load() -> None:
    """Import what servers need; what depends on the environment is no part of it."""
    os.environ["DATABASE_URL"] = "sqlite://:memory:"
    os.environ["DJANGO_SETTINGS_MODULE"] = serve.SETTINGS
    django.setup()
    for module in LOADED:
        importlib.import_module(module)
    with suppress(ImproperlyConfigured):
        importlib.import_module("django.db.backends.mysql.base")
    for path in settings.MIDDLEWARE:
        import_string(path)
    # A page of memory that it writes to would be a copy in each server.
    gc.collect()
    gc.freeze()


def served(environment: dict[str, str], output: str) -> NoReturn:
    """Serve, as the program does; what is read and written is its own."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(output, os.O_WRONLY | os.O_APPEND)
    for stream, descriptor in enumerate((nothing, written, written)):
        os.dup2(descriptor, stream)
    os.close(nothing)
    os.close(written)
    if any(os.environ.get(name) != environment.get(name) for name in READ_ONCE):
        begun_anew(environment)
    os.environ.clear()
    os.environ.update(environment)
    serve.leave(serve.main(set_up_again))


def begun_anew(environment: Mapping[str, str]) -> NoReturn:
    os.execve(sys.executable, (sys.executable, "-m", "tests.drill.serve"), environment)  # noqa: S606 - needs no shell


def set_up_again() -> None:
    """Set Django up by the environment that this process has now."""
    before = {name: value for name, value in vars(settings).items() if name.isupper()}
    for module in SETTINGS:
        del sys.modules[module]
    found = vars(importlib.import_module(serve.SETTINGS))
    given = {name: value for name, value in found.items() if name.isupper()}
    changed = {name for name in before.keys() & given if before[name] != given[name]}
    if changed - READ_AGAIN:
        begun_anew(os.environ)
    for name, value in given.items():
        setattr(settings, name, value)
    setting_changed.send(sender=None, setting="MCP", value=settings.MCP, enter=True)
    connections.settings = connections.configure_settings(settings.DATABASES)
    with suppress(AttributeError):
        del connections[DEFAULT_DB_ALIAS]
    django.setup()
    importlib.reload(sys.modules["tests.drill.mcp"])
    import_string("mcp_app.catalog.bindings.connect_signals")(
        import_string("mcp_app.mcp").bindings.values()
    )
    secrecy.watch()
    say_that_fixtures_are_there()


if __name__ == "__main__":
    main()
