"""T20: who calls too often is told to wait, and nobody else notices."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.audit.turned_away import Reason
from mcp_app.models import Question, Session
from mcp_app.pools.database import reader, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.client_messages import CANCELLED
from tests.asgi_client import Client, Outcome, outcome
from tests.audit.reading import kept
from tests.serving import Connect

CLOSED: Final = "/mcp/private"
NEWEST: Final = "2026-07-28"
SESSIONS: Final = "2025-03-26"
VERSIONS: Final = (NEWEST, SESSIONS)
SAID: Final = (
    "You call open_to_all too often: one person may call it 600 times a minute, and at"
    " most 10 times in one burst. Wait 1 second. If there are many items, ask for more"
    " of them in one call."
)
TOOLS: Final = {"LIMITS": {"tool_burst": 10, "request_burst": 1_000}}
DOOR: Final = {
    "LIMITS": {"request_rate": 600, "request_burst": 20, "batch": 20},
    "TRUSTED_PROXIES": 1,
}

FEW: Final = ("request_rate", "request_burst", "batch")

pytestmark = pytest.mark.usefixtures("each_way")


def of(name: str) -> dict[str, str]:
    return {"x-user": name}


async def until_refused(client: Client, good: str, most: int = 40) -> Outcome:
    for _ in range(most):
        called = await client.call("open_to_all")
        if called.status != 200 or called.text != good:
            return called
    raise AssertionError("Nothing was refused.")


@pytest.mark.parametrize("mcp", [TOOLS])
@pytest.mark.parametrize("version", VERSIONS)
async def test_t20_a_model_reads_how_long_to_wait(
    connect: Connect, process: Process, version: str
) -> None:
    maria = await connect(version, path=CLOSED, headers=of("maria"))
    otto = await connect(version, path=CLOSED, headers=of("otto"))
    refused = await until_refused(maria, "maria")
    assert (refused.status, refused.text) == (200, SAID)
    assert refused.result["isError"] is True
    # Another client of hers is the same person.
    other = await connect(version, path=CLOSED, headers=of("maria"))
    assert (await until_refused(other, "maria", 10)).text == SAID
    # Other tools and other people go on, and what does not exist is no key.
    assert (await maria.call("changes_in_private")).text == "changed"
    assert (await otto.call("open_to_all")).text == "otto"
    buckets = len(process.rates)
    for number in range(10):
        await maria.call(f"made-up-{number}")
    assert len(process.rates) == buckets
    rows = [each for each in await kept(process) if each.outcome == "limited"]
    assert {(each.name, each.user_name, each.error) for each in rows} == {
        ("open_to_all", "maria", SAID)
    }


@pytest.mark.parametrize("mcp", [DOOR])
@pytest.mark.parametrize("version", VERSIONS)
async def test_t20_requests_are_refused_with_their_ids(
    connect: Connect, process: Process, version: str
) -> None:
    maria = await connect(version, path=CLOSED, headers=of("maria"))
    refused = await until_refused(maria, "maria")
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    told = refused.messages[0]
    assert told["error"]["code"] == -32603
    assert told["error"]["message"] == "Too many requests. Try again in 1 second."
    assert told["id"] is not None
    for bucket in process.rates._persons._new.values():
        # However slow this machine is.
        bucket.full += 3_600
    listed = await maria.request("tools/list", id="the list")
    assert (listed.status, listed.messages[0]["id"]) == (429, "the list")
    later = await connect(version, path=CLOSED, headers=of("hanna"))
    assert (await later.call("open_to_all")).text == "hanna"
    rows = await kept(process)
    assert {each.outcome for each in rows} == {"answered"}
    counts = process.turned_away.counts_of_day()
    reasons = {reason: number for _, reason, _, number in counts}
    assert reasons[Reason.TOO_MANY] == 2


def answer(name: str) -> JsonObject:
    return {"jsonrpc": "2.0", "id": name, "result": {}}


def cancellation(**params: Any) -> JsonObject:
    return {"jsonrpc": "2.0", "method": CANCELLED, "params": params}


@pytest.mark.parametrize("mcp", [{"LIMITS": dict.fromkeys(FEW, 6)}])
@pytest.mark.parametrize(
    ("version", "message", "status"),
    [
        (SESSIONS, answer("late"), 202),
        (SESSIONS, answer("made up"), 400),
        (SESSIONS, cancellation(), 202),
        (SESSIONS, cancellation(requestId=None), 202),
        (SESSIONS, cancellation(requestId=7), 202),
        (NEWEST, cancellation(requestId=7), 202),
        (SESSIONS, None, 404),
    ],
)
async def test_t20_what_belongs_to_nothing_counts(
    connect: Connect, version: str, message: JsonObject | None, status: int
) -> None:
    """It is not refused for that: it may belong to something at another process."""
    maria = await connect(version, path=CLOSED, headers=of("maria"))
    if version == SESSIONS:
        session = await reader.run(Session.objects.get)
        await writer.run(_asked_and_over, session)
    for _ in range(10):
        gone = {"mcp-session-id": "made-up"}
        sent = (
            maria.visit("DELETE", headers=gone) if not message else maria.post(message)
        )
        assert (await outcome(sent)).status == status
    assert (await maria.request("tools/list")).status == 429


def _asked_and_over(session: Session) -> None:
    Question.objects.ask(session.pk, "late")
    Question.objects.erase(session.pk, "late")


@pytest.mark.parametrize("mcp", [DOOR])
async def test_t20_rates_of_addresses(connect: Connect, process: Process) -> None:
    near = await connect(NEWEST, headers={"x-forwarded-for": "203.0.113.7"})
    far = await connect(NEWEST, headers={"x-forwarded-for": "203.0.113.8"})
    for _ in range(20):
        await near.call("drill_add", a=1, b=2)
    for bucket in process.rates._addresses._new.values():
        bucket.full += 3_600
    assert (await near.call("drill_add", a=1, b=2)).status == 429
    assert (await far.call("drill_add", a=1, b=2)).text == "3"
    # It may write into the header what it likes: the proxy's entry counts.
    forged = await connect(NEWEST, headers={"x-forwarded-for": "1.2.3.4, 203.0.113.7"})
    assert (await forged.call("drill_add", a=1, b=2)).status == 429


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tool_rate": 10, "tool_burst": 10}}])
@pytest.mark.parametrize("version", [SESSIONS, NEWEST])
async def test_t20_unknown_addresses_share_one(connect: Connect, version: str) -> None:
    """A header that no trusted proxy has written makes nobody somebody else."""
    clients = [
        await connect(version, headers=headers)
        for headers in ({}, *({"x-forwarded-for": f"203.0.113.{n}"} for n in "78"))
    ]
    for index in range(10):
        assert (await clients[index % 3].call("drill_add", a=1, b=2)).text == "3"
    for each in clients:
        assert "too often" in (await each.call("drill_add", a=1, b=2)).text
    maria = await connect(version, path=CLOSED, headers=of("maria"))
    assert (await maria.call("open_to_all")).text == "maria"
