"""T12: messages that are nearly those of the official schemas, and none is a failure.

    make mutations MUTATIONS=100000 SEED=2

sends more of them, drawn from another seed.
"""

from __future__ import annotations

import os
from random import Random
from typing import Final

import pytest

from tests.asgi_client import Client, Visit, routing_headers
from tests.attacks.mutations import Mutations
from tests.serving import Connect
from tests.wire.validation import VERSIONS

MESSAGES: Final = int(os.environ.get("MUTATIONS", "2000")) // len(VERSIONS)
SEED: Final = os.environ.get("SEED", "1")
USER_CODE: Final = "mcp_app.calls"
IN_TURN: Final = 20
"""Messages after which a client begins anew: its session may be spoilt."""


RATES: Final = dict.fromkeys(
    ("request_rate", "request_burst", "tool_rate", "tool_burst"), 1_000_000
)


@pytest.mark.parametrize(
    "mcp", [{"LIMITS": {"question_deadline": 0.01, "tool_timeout": 0.05, **RATES}}]
)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", [SEED])
async def test_t12_whatever_is_nearly_right_is_answered_by_the_schema(
    connect: Connect, caplog: pytest.LogCaptureFixture, version: str, seed: str
) -> None:
    """The seed is in the name of the test."""
    mutations = Mutations(version, Random(f"{version} {seed}"))  # noqa: S311
    for number in range(MESSAGES):
        if number % IN_TURN == 0:
            client = await connect(version)
        await answered(client, *mutations.next(), routed=bool(number % 4))
    failed = [each for each in caplog.records if each.exc_info]
    assert {each.name for each in failed} <= {USER_CODE}, failed


async def answered(
    client: Client, body: bytes, message: object, *, routed: bool
) -> None:
    """Send a message, and read its answer; the wire is checked on the way."""
    named = routing_headers(message) if routed else {}
    headers = {name: text.encode().decode("latin-1") for name, text in named.items()}
    visit = client.visit("POST", body, headers=headers)
    if b"subscriptions/listen" in body:
        await first_message(visit)
    else:
        await visit.body()
    await visit.leave()
    assert visit.status < 500, (body, visit.raw)


async def first_message(visit: Visit) -> None:
    await visit.begun()
    while not (visit.ended or visit.raw):
        await visit._next()
