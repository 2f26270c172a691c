"""T20: strangers leave threads to those who sign in."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

import pytest

from mcp_app import SyncContext
from mcp_app.process.runtime import Process
from tests.asgi_client import outcome
from tests.scripting import Play
from tests.serving import Connect

CLOSED: Final = "/mcp/private"
NEWEST: Final = "2026-07-28"

pytestmark = pytest.mark.usefixtures("scripted")


@pytest.mark.parametrize("mcp", [{"THREADS": 4}])
async def test_t20_strangers_hold_half_of_the_threads(
    connect: Connect, play: Play, process: Process
) -> None:
    released, begun = threading.Event(), []

    def waits(_: SyncContext) -> str:
        begun.append(1)
        assert released.wait(60)
        return "ran"

    stranger = await connect(NEWEST)
    maria = await connect(NEWEST, path=CLOSED, headers={"x-user": "maria"})
    calls = [play.begin("sync", waits, stranger) for _ in range(4)]
    while len(begun) < 2:
        await asyncio.sleep(0.001)
    assert (await play("sync", lambda _: "quick", client=maria)).text == "quick"
    assert len(begun) == 2
    released.set()
    assert {(await outcome(each)).text for each in calls} == {"ran"}
