"""Every message on every transport is what the schema of its revision says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_app.process.runtime import Process
from tests.marks import long_cases
from tests.wire import exchanges
from tests.wire.transports import TRANSPORTS, HttpWire, close_connections
from tests.wire.validation import wire_validator

TASKS = frozenset(
    {
        *("CancelTaskRequest", "CancelTaskResult", "GetTaskPayloadRequest"),
        *("GetTaskPayloadResult", "GetTaskRequest", "GetTaskResult"),
        *("ListTasksRequest", "ListTasksResult", "TaskStatusNotification"),
        "UpdateTaskResult",
    }
)
"""Nothing here runs as a task."""
PAIRS = [
    (transport, version)
    for transport in TRANSPORTS
    for version in (
        exchanges.STATEFUL if transport == "HTTP+SSE" else exchanges.VERSIONS
    )
]
# What a revision changes is the same on every transport: one has them all.
OLD_ELSEWHERE = [
    (transport, version)
    for transport, version in PAIRS
    if transport != "consumer" and version not in (exchanges.V2025_11, exchanges.V2026)
]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_connections()


@pytest.mark.parametrize(
    ("transport", "version"),
    [
        *(each for each in PAIRS if each not in OLD_ELSEWHERE),
        *long_cases(*OLD_ELSEWHERE),
    ],
)
async def test_messages(
    process: Process, transport: str, version: str, subtests: pytest.Subtests
) -> None:
    for name, exchange in exchanges.EXCHANGES.items():
        if version in exchange.versions:
            with subtests.test(name):
                await run(process, transport, version, exchange)


async def run(
    process: Process, transport: str, version: str, exchange: exchanges.Exchange
) -> None:
    async with TRANSPORTS[transport](process, version, exchange.slug) as wire:
        if exchange.http and not isinstance(wire, HttpWire):
            return
        if exchange.opens:
            await wire.open()
        async with asyncio.timeout(60):
            await exchange.run(wire)
    missing = exchange.kinds(wire) - wire.judge.kinds
    assert not missing, (missing, wire.heard)
    if wire.stateless:
        assert cancelled(wire.heard) <= set(map(str, wire.listening))


def cancelled(messages: list[dict[str, Any]]) -> set[str]:
    return {
        str(each["params"]["requestId"])
        for each in messages
        if each.get("method") == "notifications/cancelled"
    }


@pytest.mark.parametrize("version", exchanges.VERSIONS)
def test_every_kind_of_message_is_shown(version: str) -> None:
    shown: set[str] = set()
    for exchange in exchanges.EXCHANGES.values():
        if version in exchange.versions:
            shown |= exchange.shows | exchange.streamed | exchange.whole
            shown |= exchange.piped
    kinds = wire_validator(version).kinds - {"PingRequest"} - TASKS
    # tests/events shows those of events.
    kinds = frozenset(each for each in kinds if "Event" not in each)
    assert kinds <= shown
    assert all(each in kinds or each.startswith("error -32") for each in shown)
