"""A database that is away for the process of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.db import connection, connections
from django.db.backends.signals import connection_created

from mcp_app.pools.database import POOLS, checks, lookups, reader

READ_ONLY: Final = {
    "postgresql": "SET default_transaction_read_only = on",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "sqlite": "PRAGMA query_only = ON",
}


@contextmanager
def away() -> Iterator[None]:
    """Let the database be away for those who connect anew, and who reads must."""
    # Replaced they would not be where other tests have left threads that hang.
    for pool in (checks, reader, lookups):
        pool.close()
    with refusing():
        yield


@contextmanager
def refusing() -> Iterator[None]:
    """Let no connection be opened; those that are open stay."""
    if connection.vendor == "sqlite":
        yield from _moved(Path(connection.settings_dict["NAME"]))
        return
    settings = connections.settings["default"]
    port = settings["PORT"]
    # Nobody listens there.
    settings["PORT"] = "1"
    try:
        yield
    finally:
        settings["PORT"] = port


def _moved(file: Path) -> Iterator[None]:
    """Let the file's name lead nowhere, without a moment at which one could be made."""
    # Other workers of the tests have files of nearly the same name.
    hidden = file.with_name(f"{file.name}.hidden")
    nowhere = file.with_name(f"{file.name}.nowhere")
    hidden.hardlink_to(file)
    nowhere.symlink_to(file.with_name(f"{file.name}.missing") / "database")
    nowhere.replace(file)
    try:
        yield
    finally:
        hidden.replace(file)


@contextmanager
def read_only() -> Iterator[None]:
    """Let the database take nothing from our threads, as a standby would."""

    def restrict(connection: Any, **_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(READ_ONLY[connection.vendor])

    connection_created.connect(restrict)
    _begin_anew()
    try:
        yield
    finally:
        connection_created.disconnect(restrict)
        _begin_anew()


def _begin_anew() -> None:
    for pool in POOLS:
        pool.close()
