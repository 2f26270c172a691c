"""Prepares the demo and serves it: what `make run` does once all is installed.

    python -m mcp_project.start 8000

A problem is one sentence on standard error, with the way out, and the exit status 1.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import django
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from mcp_project.port import HOST, problem
from mcp_project.shop.supplier_key import supplier_setting

LOCK: Final = Path(sys.prefix, "make-run.lock")
"""Two programs that make the same tables at the same time would disturb each other."""


def prepare(port: str) -> str | None:
    """Make the tables and the demo; return why that is not possible, None if it is."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mcp_project.settings")
    if refusal := problem(port):
        return refusal
    url = f"http://{HOST}:{port}"
    # The server, which this becomes, has the same environment.
    os.environ.setdefault("MCP_HTTP", supplier_setting(url))
    try:
        django.setup()
        with _alone():
            print("Making the database and the demo shop.", flush=True)  # noqa: T201
            if errors := _errors():
                return errors
            call_command("migrate", verbosity=0)
            print(flush=True)  # noqa: T201
            call_command("demo", url=url)
    except DatabaseError as error:
        return _unusable(error)
    except (CommandError, ImproperlyConfigured) as error:
        return str(error)
    except OSError as error:
        return f"{error.filename} cannot be written: {error.strerror}."
    return None


def serve(port: str) -> NoReturn:
    """Become the server, so that signals reach it."""
    print("\nCtrl+C stops it.", flush=True)  # noqa: T201
    server = ("-m", "daphne", "-b", HOST, "-p", port, "--verbosity", "0")
    command = [sys.executable, *server, "mcp_project.asgi:application"]
    os.execv(sys.executable, command)  # noqa: S606 - no shell is needed


def _errors() -> str:
    """Return what the system checks call an error, a line for each."""
    found = checks.run_checks(databases=["default"])
    return "\n".join(str(each.msg) for each in found if each.is_serious())


def _unusable(error: DatabaseError) -> str:
    settings = connection.settings_dict
    reason = str(error).strip().partition("\n")[0]
    return (
        f"The database {settings['NAME']} cannot be used: {reason}. Check DATABASE_URL"
        " in the environment or in the file .env. Without it, the demo uses the file"
        " db.sqlite3 in this folder."
    )


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other `make run` of this checkout prepares its demo."""
    with LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    if refusal := prepare(sys.argv[1]):
        sys.exit(refusal)
    serve(sys.argv[1])
