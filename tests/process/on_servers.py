"""Outages and conflicts of databases that are servers.

`tests/test_databases.py` runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, connections, transaction

from mcp_app.conf import Limits
from mcp_app.models import Server, Session, Stream
from mcp_app.pools.database import writer
from mcp_app.process.janitor import all_expired_rows
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.process.forking import connection_id
from tests.statements import failing
from tests.streams.logging_rows import opened, own_session

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

PATIENCE_S: Final = 60
A_MOMENT_S: Final = 0.5
CUT: Final = {"postgresql": "SELECT pg_terminate_backend(%s)", "mysql": "KILL %s"}


def cut(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(CUT[connection.vendor], [number])


async def test_async_code_has_a_connection_after_an_outage(process: Process) -> None:
    await process.gate.wait_for_check()
    number = await sync_to_async(connection_id)()
    await writer.run(cut, number)
    async with failing():
        with pytest.raises(Unavailable):
            await process.gate.wait_for_check()
    async with asyncio.timeout(PATIENCE_S):
        await process.gate.wait_for_check()
    assert await Server.objects.acount()
    assert await sync_to_async(connection_id)() != number
    await sync_to_async(connections.close_all)()


def test_a_sweep_that_gives_way_to_a_writer_goes_on() -> None:
    row = own_session()
    Session.objects.filter(pk=row.pk).update(seen_ms=0)
    key = opened(row)
    holds, swept = Event(), Event()

    def writes() -> None:
        with transaction.atomic():
            Stream.objects.select_for_update().get(pk=key)
            holds.set()
            # Time for the other one to lock the session, and to wait for the stream.
            swept.wait(A_MOMENT_S)
            list(Session.objects.select_for_update().filter(pk=row.pk))

    def sweeps() -> None:
        holds.wait(PATIENCE_S)
        for each in all_expired_rows(Limits()):
            while each.remove() is not None:
                continue
        swept.set()

    def done(act: Callable[[], None]) -> str:
        try:
            act()
        except OperationalError as error:
            return str(error)
        finally:
            connections.close_all()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        _written, removed = pool.map(done, [writes, sweeps])
    assert removed == "done"
    # What the writer had in that moment is left to the next round.
    sweeps()
    assert not Session.objects.filter(pk=row.pk).exists()
