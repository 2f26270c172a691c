"""Statements of the reader thread, which no connection of a test sees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from django.db import OperationalError, connection

from mcp_app.pools.database import reader

Wrapper: TypeAlias = Callable[[Callable[..., Any], str, Any, bool, Any], Any]


@asynccontextmanager
async def wrapped(wrapper: Wrapper) -> AsyncIterator[None]:
    """Let each statement of the reader go through a function."""
    await reader.run(lambda: connection.execute_wrappers.append(wrapper))
    try:
        yield
    finally:
        await reader.run(lambda: connection.execute_wrappers.remove(wrapper))


@asynccontextmanager
async def counted() -> AsyncIterator[list[str]]:
    """Collect the statements of the reader."""
    told: list[str] = []

    def note(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        told.append(sql)
        return execute(sql, params, many, context)

    async with wrapped(note):
        yield told


@asynccontextmanager
async def failing(part: str = "") -> AsyncIterator[list[str]]:
    """Let the reader's statements that have this part fail; collect those."""
    failed: list[str] = []

    def fail(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if part in sql:
            failed.append(sql)
            raise OperationalError("The connection is gone.")
        return execute(sql, params, many, context)

    async with wrapped(fail):
        yield failed
