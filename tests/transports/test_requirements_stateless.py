"""What 2026-07-28 demands of HTTP, and of streams in both eras."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.protocol.revisions import LATEST, STATEFUL
from tests.asgi_client import PREFIX, Client, JsonObject, Visit, outcome
from tests.behaviours import Stage
from tests.marks import NEWEST_FIRST
from tests.serving import Connect
from tests.streams.logging_rows import message_of
from tests.wire.middleware import WireCheck

NEWEST: Final = LATEST.version
EVIL: Final = {"origin": "https://evil.example"}
LOGGED: Final[JsonObject] = {"_meta": {f"{PREFIX}logLevel": "debug"}}


@pytest.mark.parametrize("value", [None, 7, "x", [1], {"a": {}}])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_reserved_keys_that_mean_nothing_yet(
    connect: Connect, version: str, value: object
) -> None:
    client = await connect(version)
    meta = {f"{PREFIX}madeUp": value, "dev.mcp/made-up": value}
    params = {"name": "drill_add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
    assert (await client.request("tools/call", params)).text == "3"


async def test_headers_of_sessions_mean_nothing(connect: Connect) -> None:
    client = await connect(NEWEST)
    for name in ("mcp-session-id", "last-event-id"):
        headers = {name: "x.1"}
        found = await client.request("tools/list", headers=headers)
        assert found.status == 200
        assert "mcp-session-id" not in found.headers


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_large_headers_are_refused_before_the_body(
    outside: WireCheck, version: str
) -> None:
    client = Client(outside, version)
    headers = {"mcp-param-region": f"=?base64?{'A' * 70_000}?="}
    visit = client.visit("POST", [b"no", b"json"], headers=headers)
    found = await outcome(visit)
    assert (found.status, found.error["code"], visit.unread) == (431, -32600, 2)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_arguments_may_be_absent(connect: Connect, version: str) -> None:
    client = await connect(version)
    found = await client.request("tools/call", {"name": "test_simple_text"})
    assert found.text.startswith("This is a simple text")


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS", "PUT"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_no_method_takes_a_foreign_origin(
    connect: Connect, outside: WireCheck, version: str, method: str
) -> None:
    """Not even with the id of a session: who sends it is not looked at."""
    client = await connect(version)
    headers = {**EVIL, "mcp-session-id": client.session}
    page = Client(outside, version, headers=headers)
    assert (await outcome(page.visit(method, b"{}"))).status == 403
    assert (await client.request("tools/list")).status == 200


async def test_no_notification_cancels(connect: Connect, stage: Stage) -> None:
    client, other = await connect(NEWEST), await connect(NEWEST)
    running = client.begin("tools/call", {"name": "waits"}, id=7)
    await stage.begun()
    for each in (client, other):
        found = await each.notify("notifications/cancelled", {"requestId": 7})
        assert (found.status, found.raw) == (202, b"")
    stage.released.set()
    assert (await outcome(running)).text == "waited"


async def test_what_a_client_calls_itself_changes_nothing(connect: Connect) -> None:
    client = await connect(NEWEST, path="/mcp/private", headers={"x-user": "a"})
    answers = []
    for name in ("drill-client", "admin", "mcp-inspector"):
        info = {"name": name, "version": "1"}
        params = {"name": "secret", "_meta": {f"{PREFIX}clientInfo": info}}
        answers.append((await client.request("tools/call", params, id=7)).raw)
    assert len(set(answers)) == 1
    assert b"Unknown tool: secret" in answers[0]


async def standing(client: Client) -> Visit:
    """Open the stream on which the client is told of changed lists."""
    if client.revision.sessions:
        return await client.standing()
    wanted = {"notifications": {"toolsListChanged": True}}
    visit = client.begin("subscriptions/listen", wanted)
    assert await visit.message() is not None
    return visit


def talking(client: Client, word: str) -> Visit:
    params: dict[str, Any] = {"name": "talks", "arguments": {"after": word}}
    return client.begin("tools/call", params | LOGGED)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_stream_says_what_is_its_own(
    connect: Connect, stage: Stage, version: str
) -> None:
    client, other = await connect(version), await connect(version)
    streams = [await standing(each) for each in (client, other)]
    calls = {word: talking(client, word) for word in ("one", "two")}
    for visit in calls.values():
        assert await visit.message() is not None
    assert (await other.call("changes", what=["tools"])).text == "changed"
    for stream in streams:
        message = await message_of(stream)
        assert message["method"] == "notifications/tools/list_changed"
    stage.released.set()
    for word, visit in calls.items():
        said, answer = await visit.messages()
        assert said["params"]["data"] == word
        assert "result" in answer
    for stream in streams:
        await stream.quiet()
        await stream.leave()


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_progress_stays_with_its_request(connect: Connect, version: str) -> None:
    client = await connect(version)
    stream = await standing(client)
    params = {"name": "reports", "arguments": {"steps": [1, 2]}}
    token = {"_meta": {"progressToken": 1}}
    found = await client.request("tools/call", {**params, **token})
    assert len(found.notifications("notifications/progress")) == 2
    await stream.quiet()
    await stream.leave()


@pytest.mark.parametrize("tool", ["orders", "samples", "roots"])
@pytest.mark.parametrize("version", [each for each in STATEFUL if each > "2025-06"])
async def test_questions_stay_with_their_request(
    connect: Connect, version: str, tool: str
) -> None:
    client = await connect(version)
    stream = await standing(client)
    visit = client.begin("tools/call", {"name": tool})
    question = await message_of(visit)
    await stream.quiet()
    error = {"error": {"code": -1, "message": "no"}}
    assert (await client.reply(question["id"], error)).status == 202
    await visit.body()
    await stream.leave()
