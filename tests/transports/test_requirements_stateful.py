"""What the stateful revisions demand of HTTP, by the ids of their requirements."""

from __future__ import annotations

import logging
from typing import Final

import pytest

from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import STATEFUL
from tests.asgi_client import Client, JsonObject
from tests.behaviours import Stage, new_stage
from tests.marks import STATEFUL_NEWEST_FIRST
from tests.serving import Connect

NEWEST: Final = "2025-11-25"
CANCELLED: Final = "notifications/cancelled"


@pytest.fixture
def scene() -> Stage:
    return new_stage()


def waiting(client: Client, request_id: str | int) -> JsonObject:
    return client.message("tools/call", {"name": "waits"}, id=request_id)


# -- S-CANCEL-008, S-CANCEL-012: what names no running request is ignored ----------


@pytest.mark.parametrize("named", [{}, [1], True, 1.0, None, "1", 2, ""])
@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_cancelling_nothing(
    connect: Connect, scene: Stage, version: str, named: object
) -> None:
    client = await connect(version)
    visit = client.post(waiting(client, 1))
    await scene.entered.wait()
    found = await client.notify(CANCELLED, {"requestId": named})
    assert (found.status, found.raw) == (202, b"")
    scene.released.set()
    assert (await visit.messages())[-1]["result"]["content"][0]["text"] == "waited"


async def test_the_reason_of_a_cancellation_is_logged(
    connect: Connect, scene: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """S-CANCEL-011."""
    caplog.set_level(logging.INFO, "mcp_app.calls")
    client = await connect(NEWEST)
    visit = client.post(waiting(client, 1))
    await scene.entered.wait()
    await client.notify(CANCELLED, {"requestId": 1, "reason": "bored\n" * 100})
    assert await visit.messages() == []
    (record,) = (each for each in caplog.records if each.name == "mcp_app.calls")
    assert record.__dict__["reason"] == ("bored\n" * 100)[:200]


# -- S-BASE-031: a batch of which nothing is left has no answer --------------------


async def test_a_batch_that_is_cancelled_as_a_whole(
    connect: Connect, scene: Stage
) -> None:
    client = await connect("2025-03-26")
    visit = client.post([waiting(client, 1), waiting(client, 2)])
    await scene.entered.wait()
    for request_id in (1, 2):
        await client.notify(CANCELLED, {"requestId": request_id})
    assert await visit.body() == b""
    assert visit.headers["content-type"] == "text/event-stream"


# -- S-HTTP-068: a version that nobody speaks is 400, whatever it comes with -------


@pytest.mark.parametrize("header", ["nonsense", "1999-01-01", ""])
@pytest.mark.parametrize("version", STATEFUL)
async def test_unknown_version(connect: Connect, version: str, header: str) -> None:
    client = await connect(version)
    headers = {"mcp-protocol-version": header}
    posted: list[JsonObject] = [
        client.message("ping"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "question-1", "result": {}},
    ]
    visits = [client.post(each, headers) for each in posted]
    visits += [client.visit(method, headers=headers) for method in ("GET", "DELETE")]
    for visit in visits:
        assert "error" in await visit.json()
        assert visit.status == 400


# -- S-PROG-002: a progress token is a string or an integer ------------------------


async def reported(client: Client, token: object) -> list[JsonObject]:
    params = {"name": "reports", "arguments": {"steps": [1]}}
    params["_meta"] = {"progressToken": token}
    return (await client.request("tools/call", params)).messages


@pytest.mark.parametrize("token", ["1", 1, "", -5])
@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_progress_tokens_come_back(
    connect: Connect, version: str, token: object
) -> None:
    progress, _ = await reported(await connect(version), token)
    assert progress["params"]["progressToken"] == token
    assert type(progress["params"]["progressToken"]) is type(token)


@pytest.mark.parametrize("token", [1.5, True, {}, [1]])
@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_other_progress_tokens_are_refused(
    connect: Connect, version: str, token: object
) -> None:
    (answer,) = await reported(await connect(version), token)
    assert answer["error"]["code"] == -32602


# -- S-HTTP-014: what cannot be accepted is an HTTP error --------------------------


async def test_a_failure_of_ours_is_an_http_error(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret of the inside")

    client = await connect(NEWEST)
    monkeypatch.setattr(process.questions, "take", fail)
    found = await client.reply("question-1", {})
    assert (found.status, found.error["code"]) == (500, -32603)
    assert b"secret" not in found.raw


# -- S-HTTP-019: a stream holds its response, however large it is ------------------
