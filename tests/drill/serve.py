"""Serves the fixture set on a loopback port until SIGTERM.

    PORT=8765 python -m tests.drill.serve

Environment: PORT; SERVER=daphne|uvicorn|granian|uvicorn-worker|gunicorn, of which the
last serves by WSGI; MOUNT=consumer|view; DATABASE_URL (without it, a temporary SQLite
file for the port); REDIS_URL; NTOOLS=n for n plain tools more;
WIRE=check to validate each message sent; RECORD, a file for how clients write their
calls; LEDGER=bound for resources that show the ledger; FAULTS, a directory by which
`tests.drill.faults` are switched on; JANITOR=n for a janitor that comes each n seconds,
and removes what was over for as long; PATIENCE=n for n seconds, and no more, that slow
clients have to send or take something; UNFOLD=there for an admin with django-unfold;
ROWS=there where the database has its tables and rows already, or a file of SQLite to
begin with a copy of.
"""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import django
from django.utils.module_loading import import_string

from tests.drill.ports import HOST, PortTaken, claimed, directory_of
from tests.drill.recorder import Recorder
from tests.drill.servers import BY_WSGI, SERVERS
from tests.drill.telling import tell_when_asked
from tests.wire.by_wsgi import WsgiCheck
from tests.wire.middleware import WireCheck

USAGE: Final = 2
WIRE_VIOLATED: Final = 3
PORT_TAKEN: Final = 4
MOUNTS: Final = {
    "consumer": "mcp_project.asgi.application",
    "view": "tests.drill.view.application",
}
"""Where the endpoint stands: in front of Django, or within it."""
WSGI: Final = "mcp_project.wsgi.application"
SETTINGS: Final = "tests.drill.settings"


class UsageError(Exception):
    """The environment says something that cannot be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    port: int
    server: str
    plain_tools: int
    wire: bool
    faults: str = ""
    rows: str = ""
    janitor: int = 0
    patience: int = 0
    mount: str = "consumer"
    record: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Options:
        """Raise `UsageError` with a sentence for a value that cannot be used."""
        server = environment.get("SERVER") or "daphne"
        if server not in SERVERS:
            raise UsageError(f"SERVER is {server!r}: it must be {_either(SERVERS)}.")
        mount = environment.get("MOUNT") or "consumer"
        if mount not in MOUNTS:
            raise UsageError(f"MOUNT is {mount!r}: it must be {_either(MOUNTS)}.")
        wire = environment.get("WIRE") or ""
        if wire not in ("", "check"):
            raise UsageError(f"WIRE is {wire!r}: it must be 'check' or empty.")
        return cls(
            port=_number(environment, "PORT", "8765", 65_535),
            server=server,
            mount=mount,
            record=environment.get("RECORD", ""),
            plain_tools=_number(environment, "NTOOLS", "0", 99_999),
            wire=wire == "check",
            faults=environment.get("FAULTS", ""),
            rows=environment.get("ROWS", ""),
            janitor=_number(environment, "JANITOR", "0", 86_400),
            patience=_number(environment, "PATIENCE", "0", 60),
        )


def _either(names: Mapping[str, object]) -> str:
    return " or ".join(repr(name) for name in names)


def _number(given: Mapping[str, str], name: str, default: str, highest: int) -> int:
    text = given.get(name) or default
    if not (text.isascii() and text.isdecimal() and int(text) <= highest):
        raise UsageError(f"{name} is {text!r}: it must be a number up to {highest}.")
    return int(text)


def main(set_up: Callable[[], object] = django.setup) -> int:
    """Serve, and return the exit status; `set_up` is called when the database is known.

    A process that has loaded Django already sets it up in another way.
    """
    try:
        options = Options.read(os.environ)
        listener = claimed(options.port)
    except UsageError as error:
        return _failed(str(error), USAGE)
    except PortTaken as error:
        return _failed(str(error), PORT_TAKEN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    tell_when_asked()
    # Some servers fork, and what they send is found wrong in a child.
    violated = mmap.mmap(-1, 1)

    def report(violation: str) -> None:
        violated[0] = True
        _say(f"WIRE: {violation}")

    with listener, _database(options):
        application = _application(options, set_up)
        checks = WsgiCheck if options.server in BY_WSGI else WireCheck
        check = checks(application, report)
        # uvicorn raises the signal again when it has stopped.
        signal.signal(signal.SIGTERM, lambda *_: None)
        _say(f"Serving http://{HOST}:{options.port}/mcp with {options.server}.")
        SERVERS[options.server](check if options.wire else application, listener)
    return WIRE_VIOLATED if violated[0] else 0


def _failed(sentence: str, status: int) -> int:
    _say(sentence)
    return status


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


@contextmanager
def _database(options: Options) -> Iterator[None]:
    """Without DATABASE_URL, make a directory for the port and remove it at the end."""
    if os.environ.get("DATABASE_URL"):
        yield
        return
    directory = directory_of(options.port)
    # A server that was killed has left its own.
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    if options.rows:
        shutil.copy(options.rows, directory / "db.sqlite3")
    os.environ["DATABASE_URL"] = f"sqlite:///{directory}/db.sqlite3"
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _application(options: Options, set_up: Callable[[], object]) -> Any:
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    set_up()
    if options.plain_tools or not options.rows:
        import_string("tests.drill.preparing.prepare")(options.plain_tools)
    if options.faults:
        import_string("tests.drill.faults.plant")(options.faults)
    if options.janitor:
        import_string("tests.drill.hurried.sweep_each")(options.janitor)
    if options.patience:
        import_string("tests.drill.hurried.wait_for_slow_clients")(options.patience)
    served = WSGI if options.server in BY_WSGI else MOUNTS[options.mount]
    application = import_string(served)
    return Recorder(application, options.record) if options.record else application


def leave(status: int) -> NoReturn:
    """End the process, as its server can."""
    if os.environ.get("SERVER") == "granian":
        # Its threads may still want the interpreter, and abort one that ends.
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    leave(main())
