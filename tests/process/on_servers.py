"""After an outage, on databases that are servers; run by `tests/test_databases.py`."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections

from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.process.forking import connection_id
from tests.statements import failing

pytestmark = pytest.mark.databases

PATIENCE_S: Final = 60
CUT: Final = {"postgresql": "SELECT pg_terminate_backend(%s)", "mysql": "KILL %s"}


def cut(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(CUT[connection.vendor], [number])


async def test_async_code_has_a_connection_when_the_database_is_back(
    process: Process,
) -> None:
    await process.gate.look()
    number = await sync_to_async(connection_id)()
    await writer.run(cut, number)
    async with failing():
        with pytest.raises(Unavailable):
            await process.gate.look()
    async with asyncio.timeout(PATIENCE_S):
        await process.gate.look()
    assert await Server.objects.acount()
    assert await sync_to_async(connection_id)() != number
    await sync_to_async(connections.close_all)()
