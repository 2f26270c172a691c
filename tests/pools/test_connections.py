"""Closing old connections, only where a thread has any."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Final

import psycopg
import pytest
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
    connection,
)

from mcp_app.models import Session
from mcp_app.pools import connections
from mcp_app.pools.connections import (
    ConnectionKiller,
    cannot_write,
    is_outage,
    may_be_refused,
    without_old_connections,
)
from mcp_app.pools.database import writer
from mcp_app.protocol.errors import Unavailable
from tests.process.outages import read_only

pytestmark = pytest.mark.usefixtures("served_rows")


def in_new_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


def is_open() -> bool:
    return connection.connection is not None


def raises() -> None:
    connection.ensure_connection()
    raise LookupError


def test_connections_are_closed_before_and_after() -> None:
    def look() -> list[bool]:
        # Where there is none, none is opened.
        with without_old_connections:
            found = [is_open()]
        with without_old_connections:
            connection.ensure_connection()
        found.append(is_open())
        connection.ensure_connection()
        with without_old_connections:
            found.append(is_open())
        with pytest.raises(LookupError), without_old_connections:
            raises()
        return [*found, is_open()]

    assert in_new_thread(look) == [False] * 4


ENDS: dict[str, str] = {
    "database": """
from mcp_app.pools.database import DatabaseThreads
pool = DatabaseThreads("test")
async def main():
    work = asyncio.create_task(pool.run(close_slowly))
    while not begun.is_set():
        await asyncio.sleep(0)
    work.cancel()
asyncio.run(main())
""",
    "user code": """
from mcp_app.pools.turns import UNKNOWN
from mcp_app.pools.user_threads import UserThreads
pool = UserThreads(1)
pool.submit(lambda job: close_slowly(), "test", UNKNOWN)
begun.wait()
""",
}
BEGIN = """
import asyncio, threading, time
import django; django.setup()
begun = threading.Event()
def close_slowly():
    begun.set()
    time.sleep(0.3)
    print("closed")
"""


@pytest.mark.parametrize("pool", ENDS)
def test_a_process_ends_after_the_threads_of_a_closed_pool(pool: str) -> None:
    program = f"{BEGIN}{ENDS[pool]}pool.close()"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "closed\n"


# -- cutting ---------------------------------------------------------------------------


PATIENCE_S: Final = 60


class Pair:
    """A connection as Django has it, and its other end."""

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()
        self.there.settimeout(PATIENCE_S)
        self.wrapper: Any = SimpleNamespace(connection=self)

    def fileno(self) -> int:
        return self.here.fileno()

    def cancel_safe(self, timeout: float) -> None:
        """Let the thread end its statement, and give the connection back."""
        self.wrapper.connection = None

    def line(self) -> ConnectionKiller:
        line = ConnectionKiller.from_wrapper(self.wrapper)
        assert line is not None
        return line

    def is_open(self) -> bool:
        try:
            self.here.send(b"1")
        except BrokenPipeError:
            return False
        return self.there.recv(1) == b"1"


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    with pair.here, pair.there:
        yield pair


def test_a_connection_that_is_shut_breaks(pair: Pair) -> None:
    assert pair.is_open()
    pair.line().break_connection()
    assert not pair.is_open()


def test_what_went_back_to_a_pool_is_left_alone(pair: Pair) -> None:
    line = pair.line()
    pair.wrapper.connection = None
    line.break_connection()
    assert pair.is_open()


def test_what_goes_back_while_it_is_cancelled_is_left_alone(pair: Pair) -> None:
    connections._cancel_and_shut(pair.line())
    assert pair.is_open()


def test_what_has_gone_back_is_not_cancelled(pair: Pair) -> None:
    line = pair.line()
    pair.wrapper.connection = another = object()
    connections._cancel_and_shut(line)
    assert pair.wrapper.connection is another


def test_without_a_thread_it_is_shut(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(connections, "_hears_of_cancelling", lambda _: True)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    connections.cut_connections([pair.line()])
    assert not pair.is_open()


def test_what_has_no_socket_cannot_be_cut() -> None:
    assert ConnectionKiller.from_wrapper(SimpleNamespace(connection=object())) is None


# -- outages ---------------------------------------------------------------------------


def of_psycopg(state: str) -> Exception:
    cause = psycopg.errors.lookup(state)("said the server")
    kind = next(
        each
        for each in (OperationalError, InternalError, DataError, DatabaseError)
        if isinstance(cause, getattr(psycopg, each.__name__))
    )
    error = kind("said the server")
    error.__cause__ = cause
    return error


def test_what_is_an_outage() -> None:
    for error, writes_nothing in (
        (OperationalError(2006, "Server has gone away"), False),
        (InterfaceError("connection already closed"), False),
        *((of_psycopg(state), False) for state in ("57P01", "25P03")),
        *((of_psycopg(state), True) for state in ("25006", "53100")),
        *(
            (OperationalError(code, ""), True)
            for code in (1290, 1792, 1836, 1114, 1021)
        ),
        (OperationalError("attempt to write a readonly database"), True),
        (OperationalError("database or disk is full"), True),
    ):
        assert is_outage(error), error
        assert cannot_write(error) == writes_nothing, error
    for no_outage in (
        *map(of_psycopg, ("25P02", "XX000")),
        *(InternalError({"odd": 1}), InternalError(), ProgrammingError("25006")),
        *(IntegrityError(1062, "Duplicate entry"), DataError("too long")),
        psycopg.errors.lookup("25006")("of a driver that user code asks itself"),
        ValueError("25006"),
    ):
        assert not is_outage(no_outage), no_outage


def test_what_may_be_refused() -> None:
    for error in (*map(OperationalError, (1366, 2006)), DataError("too long")):
        assert may_be_refused(error), error
    for passing in (
        *map(OperationalError, (1114, 1205, "database is locked")),
        *map(of_psycopg, ("55P03", "57014")),
    ):
        assert not may_be_refused(passing), passing


@pytest.mark.databases
@pytest.mark.usefixtures("served_rows")
async def test_a_database_that_writes_nothing_is_a_503() -> None:
    with read_only():
        assert await writer.run(Session.objects.exists) in (True, False)
        with pytest.raises(Unavailable):
            await writer.run(Session.objects.filter(pk=-1).update, seen_ms=1)
    await writer.run(Session.objects.filter(pk=-1).update, seen_ms=1)
