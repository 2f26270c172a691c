"""What has waited is judged by what holds when it goes on, not when it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_app.interface.principal import Rule
from mcp_app.models import Server, Tool
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.transports.http import call_handler
from tests.asgi_client import Client, Outcome, Visit, outcome
from tests.auth.test_ruled import RULED, header, people, tools
from tests.behaviours import registry
from tests.old_client import OldClient
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect
from tests.wire.middleware import WireCheck

__all__ = ["people"]

BY_NAME: Final = {"AUTHENTICATION": {"header": "tests.auth.callables.by_name"}}

pytestmark = [
    pytest.mark.usefixtures("served_rows"),
    pytest.mark.parametrize("mcp", [BY_NAME]),
]

BATCHES: Final = "2025-03-26"
TEXT: Final = '{"content": [{"type": "text", "text": "from a row"}]}'


class Hold:
    """Lets a function of ours wait, as a database that is busy would."""

    def __init__(self, place: Any, name: str, patch: pytest.MonkeyPatch) -> None:
        self.entered, self.go = asyncio.Event(), asyncio.Event()
        real = getattr(place, name)

        async def held(*given: Any, **named: Any) -> Any:
            found = await real(*given, **named)
            self.entered.set()
            await self.go.wait()
            return found

        patch.setattr(place, name, held)

    async def while_waiting(
        self, visit: Visit, process: Process, change: Callable[[], object]
    ) -> Outcome:
        """Change something while a request waits; return its answer."""
        await self.entered.wait()
        await writer.run(change)
        await process.gate.wait_for_check()
        self.go.set()
        return await outcome(visit)


@pytest.mark.parametrize("version", [STATEFUL, BATCHES])
@pytest.mark.parametrize("place", ["row", "session"])
async def test_a_right_that_goes_while_a_call_waits(
    people: dict[str, Any],
    connect: Connect,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    place: str,
) -> None:
    """For its row, or for its session; in a batch, too."""
    guard = people["guard"]
    client = await connect(version, path=RULED, headers=header(guard))
    if place == "row":
        hold = Hold(call_handler, "begin", monkeypatch)
    else:
        monkeypatch.setattr(process.sessions, "cached", lambda *_: None)
        hold = Hold(process.sessions, "find", monkeypatch)
    call = client.message("tools/call", {"name": "for_groups", "arguments": {}})
    sent: Any = [call] if version == BATCHES else call
    found = await hold.while_waiting(client.post(sent), process, guard.groups.clear)
    (answer,) = found.messages
    assert answer["error"]["message"] == "Unknown tool: for_groups"


async def test_a_server_that_is_closed_while_a_call_waits(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was public: nobody gets what it has from then on."""
    row = await writer.run(published, Server(slug="was-public", access="public"))
    tool = Tool(name="of_a_closed_server", config=TEXT)
    client = await Client(application, STATEFUL, path="/mcp/was-public").open()
    monkeypatch.setattr(process.sessions, "cached", lambda *_: None)
    hold = Hold(process.sessions, "find", monkeypatch)

    def close() -> None:
        row.access = "header"
        row.save()
        published(tool)

    called = {"name": "of_a_closed_server", "arguments": {}}
    visit = client.begin("tools/call", called)
    found = await hold.while_waiting(visit, process, close)
    assert found.status == 401
    await writer.run(row.delete)
    await writer.run(tool.delete)


async def test_a_slow_body_over_http_sse(
    people: dict[str, Any], application: WireCheck, process: Process
) -> None:
    guard = people["guard"]
    headers = header(guard)
    client = await OldClient(
        application, "2025-11-25", path=f"{RULED}/sse", headers=headers
    ).open()
    message = client.message("tools/call", {"name": "for_groups", "arguments": {}})
    body = json.dumps(message).encode()
    sent = [("host", "localhost"), ("content-type", "application/json")]
    visit = Visit(
        application,
        "POST",
        client.messages,
        [*sent, *headers.items()],
        [body[:20]],
        complete=False,
    )
    while visit.unread:
        await asyncio.sleep(0.001)
    await writer.run(guard.groups.clear)
    await process.gate.wait_for_check()
    visit.goes_on(body[20:])
    await outcome(visit)
    assert "error" in (await client.answered(message["id"])).answer
    await client.stream.leave()


async def test_rights_for_less_are_no_rights_for_more(
    people: dict[str, Any],
    connect: Connect,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is published while somebody's rights are read is seen at once."""
    client = await connect(STATELESS, path=RULED, headers=header(people["boss"]))
    hold = Hold(process.rights, "find", monkeypatch)
    row = Tool(name="fresh", config=TEXT, permission="auth.view_user", tags="ruled")
    asking = client.begin("tools/list")
    await hold.while_waiting(asking, process, lambda: published(row))
    assert "fresh" in await tools(client)
    await writer.run(row.delete)


async def test_a_servers_rule_looks_at_arguments(
    people: dict[str, Any], connect: Connect, process: Process
) -> None:
    row = Server(slug="modestly", access="header", rule="small")
    await writer.run(published, row)
    registry.rules["small"] = Rule(
        "small", lambda asked: (asked.arguments or {}).get("a", 0) != 7, True
    )
    await process.gate.wait_for_check()
    path = "/mcp/modestly"
    client = await connect(STATELESS, path=path, headers=header(people["plain"]))
    try:
        assert (await client.call("drill_add", a=1, b=2)).text == "3"
        assert (await client.call("drill_add", a=7, b=2)).result["isError"]
    finally:
        del registry.rules["small"]
        await writer.run(row.delete)


@pytest.mark.parametrize("how", ["groups", "permission", "access"])
async def test_a_stream_ends_with_the_way_to_its_server(
    people: dict[str, Any], connect: Connect, process: Process, how: str
) -> None:
    row = Server(slug="guarding", access="header", groups="guards")
    await writer.run(published, row)
    await process.gate.wait_for_check()
    path, headers = "/mcp/guarding", header(people["guard"])
    client = await connect(STATELESS, path=path, headers=headers)
    wanted = {"notifications": {"resourceSubscriptions": ["test://static-text"]}}
    stream = client.begin("subscriptions/listen", wanted)
    assert await stream.message() is not None

    def close() -> None:
        if how == "groups":
            people["guard"].groups.clear()
            return
        setattr(row, how, "" if how == "access" else "auth.view_user")
        row.save()

    await writer.run(close)
    await process.gate.wait_for_check()
    await stream.done()
    assert (await client.request("tools/list")).status in (401, 403)
    await writer.run(row.delete)
