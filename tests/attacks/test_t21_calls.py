"""T21: what strangers call in vain does not fill the call log, and is counted."""

from __future__ import annotations

import time
from typing import Final

import pytest

from mcp_app.audit.call_log import STRANGERS_ROWS
from mcp_app.audit.writing import MAX_TEXT_BYTES
from mcp_app.process.runtime import Process
from tests.asgi_client import Client, JsonObject
from tests.audit.reading import counted, kept
from tests.marks import long_cases
from tests.serving import Connect

BATCHING: Final = "2025-03-26"
BATCH: Final = 100
LONG: Final = 512
KEY: Final = ("default", "tool", "", "unknown")


def batch(number: int) -> list[JsonObject]:
    """Return calls of tools that do not exist; some names take 2 KiB."""
    return [
        {
            "jsonrpc": "2.0",
            "id": f"{number}-{each}",
            "method": "tools/call",
            "params": {"name": f"{number}-{each}:{'𝄞' * (LONG if each < 10 else 0)}"},
        }
        for each in range(BATCH)
    ]


async def rows_of(client: Client, process: Process, batches: int) -> tuple[int, int]:
    began = int(time.monotonic())
    for number in range(batches):
        sent = await client.sent(batch(number))
        assert [each["error"]["code"] for each in sent.messages] == [-32602] * BATCH
    seconds = int(time.monotonic()) - began + 1
    rows = await kept(process)
    for row in rows:
        assert len(row.error.encode()) <= MAX_TEXT_BYTES
        assert not row.name
    return len(rows), seconds


@pytest.mark.parametrize("batches", [15, *long_cases(100)])
async def test_t21_batches_of_unknown_names_leave_few_rows(
    connect: Connect, process: Process, batches: int
) -> None:
    client = await connect(BATCHING)
    rows, seconds = await rows_of(client, process, batches)
    assert STRANGERS_ROWS <= rows <= STRANGERS_ROWS * seconds
    assert (await counted())[KEY] == batches * BATCH


async def test_who_has_signed_in_is_heard(connect: Connect, process: Process) -> None:
    stranger = await connect(BATCHING)
    person = await connect(BATCHING, path="/mcp/private", headers={"x-user": "maria"})
    rows, seconds = await rows_of(stranger, process, 1)
    assert rows <= STRANGERS_ROWS * seconds
    # More may not run together.
    await person.sent(batch(1)[:50])
    # What runs has a row, whoever calls it.
    for _ in range(2 * STRANGERS_ROWS):
        await stranger.call("drill_add", a=1, b=2)
        await stranger.call("fails", kind="tool error")
    found = await kept(process)
    assert sum(row.user_name == "maria" for row in found) == 50
    assert sum(row.name == "drill_add" for row in found) == 2 * STRANGERS_ROWS
    assert sum(row.outcome == "tool_error" for row in found) == 2 * STRANGERS_ROWS


@pytest.mark.parametrize("mcp", [{"LIMITS": "off"}])
async def test_without_rates_each_has_a_row(connect: Connect, process: Process) -> None:
    client = await connect(BATCHING)
    rows, _ = await rows_of(client, process, 1)
    assert rows == BATCH == (await counted())[KEY]
