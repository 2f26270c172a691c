"""What calls tell on the way: progress and log messages, in each revision."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mcp_app.interface.context import LEVELS
from mcp_app.protocol.revisions import REVISIONS
from tests.asgi_client import PREFIX, Client, JsonObject, Outcome
from tests.marks import NEWEST_FIRST
from tests.serving import Connect

NEWEST: Final = "2026-07-28"
STEPS: Final = [1, 2.5, 4]
SLOW: Final = {"LIMITS": {"progress_burst": 3, "progress_rate": 0.001}}
"""However slow the machine is, no more than the burst are sent."""


async def reported(
    client: Client, token: Any = 1, tool: str = "reports", **arguments: Any
) -> Outcome:
    params = {
        "name": tool,
        "arguments": arguments or {"steps": STEPS, "total": 4},
        "_meta": {} if token is None else {"progressToken": token},
    }
    return await client.request("tools/call", params)


def told(found: Outcome) -> list[JsonObject]:
    return found.notifications("notifications/progress")


# -- progress -------------------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
async def test_progress(connect: Connect, version: str) -> None:
    client = await connect(version)
    for token in ("t", "", 0, 7, -1):
        found = await reported(client, token)
        messages = told(found)
        assert [each["progressToken"] for each in messages] == [token] * 3
        assert [each["progress"] for each in messages] == STEPS
        assert [each["total"] for each in messages] == [4.0] * 3
        worded = [each.get("message") for each in messages]
        known = "message" in client.revision.fields["progress"]
        assert worded == (["at 1", "at 2.5", "at 4"] if known else [None] * 3)
        # What is told comes before the answer.
        assert found.messages[-1] == found.answer
        assert found.text == "done"


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_nobody_is_told_who_did_not_ask(connect: Connect, version: str) -> None:
    client = await connect(version)
    found = await reported(client, None)
    assert found.headers["content-type"] == "application/json"
    assert (told(found), found.text) == ([], "done")


@pytest.mark.parametrize("token", [1.5, True, [], {}])
@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_wrong_tokens(connect: Connect, version: str, token: Any) -> None:
    client = await connect(version)
    found = await reported(client, token)
    assert found.error["code"] == -32602


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_progress_increases(connect: Connect, version: str) -> None:
    client = await connect(version)
    found = await reported(client, steps=[1, 1, 0.5, 3, 2, 3.5])
    assert [each["progress"] for each in told(found)] == [1, 3, 3.5]
    assert all("total" not in each for each in told(found))


@pytest.mark.parametrize("mcp", [SLOW])
@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_the_last_is_always_told(connect: Connect, version: str) -> None:
    client = await connect(version)
    for end in ("done", "fail"):
        found = await reported(client, steps=list(range(1, 51)), end=end)
        assert [each["progress"] for each in told(found)] == [1, 2, 3, 50]
        assert found.messages[-1] == found.answer
    found = await reported(client, tool="reports_sync", count=50)
    assert [each["progress"] for each in told(found)] == [1, 2, 3, 50]


@pytest.mark.parametrize("mcp", [{"LIMITS": "off"}])
async def test_without_rates_everything_is_told(connect: Connect) -> None:
    client = await connect("2025-11-25")
    found = await reported(client, tool="reports_sync", count=300)
    assert [each["progress"] for each in told(found)] == list(range(1, 301))


# -- log messages ---------------------------------------------------------------


async def heard(client: Client, tool: str = "logs", level: Any = None) -> list[str]:
    meta = {} if level is None else {f"{PREFIX}logLevel": level}
    params = {"name": tool, "arguments": {}, "_meta": meta}
    found = await client.request("tools/call", params)
    assert "result" in found.answer
    return [each["level"] for each in found.notifications("notifications/message")]


@pytest.mark.parametrize("tool", ["logs", "logs_sync"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_levels(connect: Connect, version: str, tool: str) -> None:
    client = await connect(version)
    if client.revision.stateless:
        assert await heard(client, tool) == []
        for index, level in enumerate(LEVELS):
            assert await heard(client, tool, level) == list(LEVELS[index:])
    else:
        # A session's level is its own: that of a request says nothing there.
        assert await heard(client, tool) == list(LEVELS[1:])
        assert await heard(client, tool, "emergency") == list(LEVELS[1:])
        await client.request("logging/setLevel", {"level": "alert"})
        assert await heard(client, tool) == ["alert", "emergency"]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_a_message_says(connect: Connect, version: str) -> None:
    client = await connect(version)
    params = {
        "name": "logs",
        "arguments": {},
        "_meta": {f"{PREFIX}logLevel": "emergency"},
    }
    found = await client.request("tools/call", params)
    *_, last = found.notifications("notifications/message")
    assert last == {
        "level": "emergency",
        "logger": "drill",
        "data": {"at": "emergency"},
    }


@pytest.mark.parametrize("level", ["loud", "INFO", "", 7, None])
async def test_levels_that_do_not_exist(connect: Connect, level: Any) -> None:
    client = await connect(NEWEST)
    params = {
        "name": "logs",
        "arguments": {},
        "_meta": {f"{PREFIX}logLevel": level},
    }
    found = await client.request("tools/call", params)
    assert (found.status, found.error["code"]) == (400, -32602)


@pytest.mark.parametrize("mcp", [SLOW])
async def test_too_many_messages_are_dropped(connect: Connect) -> None:
    client = await connect(NEWEST)
    assert await heard(client, level="debug") == ["debug", "info", "notice"]


async def test_a_level_that_user_code_made_up(connect: Connect) -> None:
    client = await connect("2025-11-25")
    assert (await client.call("logs_wrongly")).result["isError"] is True


# -- who calls ----------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["whoami", "whoami_sync"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_a_context_knows(connect: Connect, version: str, tool: str) -> None:
    client = await connect(version)
    for request_id in (7, "seven"):
        found = await client.request("tools/call", {"name": tool}, id=request_id)
        assert json.loads(found.text) == {
            "key": "anonymous\x1f\x1f",
            "client": ["drill-client", "1.0", ""],
            "revision": version,
            "server": "default",
            "request": request_id,
            "cancelled": False,
            "deadline": True,
            "user": None,
            "same": True,
        }
