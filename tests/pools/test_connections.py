"""Closing old connections, only where a thread has any."""

from __future__ import annotations

import subprocess
import sys
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
