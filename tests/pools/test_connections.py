"""Closing old connections, only where a thread has any."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from mcp_app.pools.connections import without_old_connections

pytestmark = pytest.mark.usefixtures("served_rows")


def in_new_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


def test_what_was_opened_inside_is_closed_after() -> None:
    def look() -> list[bool]:
        found = []
        with without_old_connections:
            connection.ensure_connection()
            found.append(connection.connection is not None)
        found.append(connection.connection is not None)
        return found

    assert in_new_thread(look) == [True, False]


def test_what_was_open_before_is_closed_at_the_beginning() -> None:
    def look() -> bool:
        connection.ensure_connection()
        with without_old_connections:
            return connection.connection is not None

    assert in_new_thread(look) is False


def test_a_thread_without_connections_gets_none() -> None:
    def look() -> bool:
        with without_old_connections:
            assert threading.current_thread() is not threading.main_thread()
        return connection.connection is not None

    assert in_new_thread(look) is False


def raises() -> None:
    connection.ensure_connection()
    raise LookupError


def test_an_exception_passes_and_the_connection_is_closed() -> None:
    def look() -> bool:
        with pytest.raises(LookupError), without_old_connections:
            raises()
        return connection.connection is not None

    assert in_new_thread(look) is False


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
from mcp_app.pools.user_threads import UNKNOWN
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
