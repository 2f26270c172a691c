"""T19: clients that are slow on purpose, beside one that is not, on a real server.

The process waits for a second where others wait for ten or thirty.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.drill.running import DrillServer
from tests.process.programs import serving
from tests.process.slow_clients import (
    PATIENCE_S,
    Dribble,
    SlowClient,
    half_body,
    unread_call,
)
from tests.process.streaming import Stateless

pytestmark = pytest.mark.programs

MIB: Final = 1024 * 1024
MANY: Final = 20
LIMITS: Final = {"bodies": 4 * MIB, "queues": 4 * MIB}
LET_GO: Final = "returned without completing response"
"""What uvicorn says of an application that has ended a stream early."""


@pytest.fixture(scope="module")
def server() -> Iterator[DrillServer]:
    environment = {"PATIENCE": "1", "MCP_LIMITS": json.dumps(LIMITS)}
    with serving("uvicorn", environment) as running:
        yield running


@pytest.fixture
def clients() -> Iterator[list[SlowClient]]:
    made: list[SlowClient] = []
    yield made
    for each in made:
        each.close()


def serves(server: DrillServer) -> bool:
    padding = {"example.org/padding": "x" * 3 * MIB}
    call = Stateless(server.url)
    *_, answer = call.messages("drill_add", {"a": 1, "b": 2}, padding)
    return bool(answer["result"]["structuredContent"] == {"result": 3})


def test_t19_half_bodies_are_given_up_and_others_are_served(
    server: DrillServer, clients: list[SlowClient]
) -> None:
    clients += [half_body(server.url, MIB) for _ in range(MANY)]
    clients += [half_body(server.url, MIB, missing=MIB) for _ in range(MANY)]
    # So few bytes a second buy no time.
    dribble = Dribble(clients[MANY:])
    assert serves(server)
    assert {each.status() for each in clients} == {408}
    dribble.stop()
    assert serves(server)


def test_t19_readers_that_take_nothing_are_let_go(
    server: DrillServer, clients: list[SlowClient]
) -> None:
    """The system takes some 3 MB for each of them; the rest is ours."""
    before = server.output.count(LET_GO)
    clients += [
        unread_call(server.url, n=90, delay_ms=1, payload_bytes=50_000)
        for _ in range(MANY)
    ]
    end = time.monotonic() + PATIENCE_S
    while server.output.count(LET_GO) - before < MANY:
        assert serves(server)
        assert time.monotonic() < end, server.output
