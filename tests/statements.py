"""Statements of our own threads that read, which no connection of a test sees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from django.db import OperationalError, connection

from mcp_app.pools.database import DatabaseThreads, checks, lookups, reader

Pools: TypeAlias = Sequence[DatabaseThreads]
Wrapper: TypeAlias = Callable[[Callable[..., Any], str, Any, bool, Any], Any]
READING: Final = (checks, reader, lookups)
"""Pools of one thread each."""


@asynccontextmanager
async def wrapped(wrapper: Wrapper, pools: Pools = READING) -> AsyncIterator[None]:
    for each in pools:
        await each.run(lambda: connection.execute_wrappers.append(wrapper))
    try:
        yield
    finally:
        for each in pools:
            await each.run(lambda: connection.execute_wrappers.remove(wrapper))


@asynccontextmanager
async def counted(pools: Pools = READING) -> AsyncIterator[list[str]]:
    told: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        # MariaDB is asked for its version once in each connection.
        if "SELECT VERSION()" not in sql:
            told.append(sql)
        return execute(sql, *rest)

    async with wrapped(note, pools):
        yield told


@asynccontextmanager
async def failing(part: str = "") -> AsyncIterator[list[str]]:
    failed: list[str] = []

    def fail(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if part in sql:
            failed.append(sql)
            raise OperationalError("The connection is gone.")
        return execute(sql, *rest)

    async with wrapped(fail):
        yield failed
