"""A user, and changes that the process of a test hears of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest
from django.contrib.auth import get_user_model

from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from tests.published import published

Commit: TypeAlias = Callable[..., Any]


@pytest.fixture
async def user(served_rows: None) -> AsyncIterator[Any]:
    made: Any = get_user_model()(username="ana")
    await writer.run(made.save)
    yield made
    await writer.run(made.delete)


@pytest.fixture
async def server(
    served_rows: None, request: pytest.FixtureRequest
) -> AsyncIterator[Server]:
    """The server that a module describes."""
    row = Server(page_size=1000, **request.module.SERVER)
    yield await writer.run(published, row)
    await writer.run(row.delete)


@pytest.fixture
def commit(process: Process) -> Commit:
    async def committed(function: Callable[..., object], *arguments: object) -> Any:
        result = await writer.run(function, *arguments)
        await process.gate.wait_for_check()
        return result

    return committed
