"""One client on one channel: both eras, one table of ids, all of it without rows."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest

from mcp_app.interface.principal import Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.framing import Broken
from mcp_app.protocol.revisions import STATEFUL
from mcp_app.transports.stdio.connection import Connection, NotServed
from tests.behaviours import Stage
from tests.serving import PATIENCE_S, counted
from tests.streams.logging_rows import until
from tests.wire.validation import wire_validator

NEWEST: Final = "2026-07-28"
URI: Final = "memo://fixed"
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}

Message = dict[str, Any]


class Channel:
    """A client's end; what comes is checked by the revision of the exchange."""

    def __init__(self, process: Process, slug: str, principal: Principal) -> None:
        self.connection = Connection(process, slug, principal, self._came)
        self.version = "2025-11-25"
        self._came_in: asyncio.Queue[Message] = asyncio.Queue()
        self._kept: deque[Message] = deque()
        self._methods: dict[str | int, str] = {}

    def _came(self, data: bytes) -> None:
        value = json.loads(data)
        for message in value if isinstance(value, list) else [value]:
            method = self._methods.get(message.get("id"))
            found = wire_validator(self.version).check(message, method=method)
            assert found == []
        self._came_in.put_nowait(value)

    async def line(self, text: bytes | Broken) -> None:
        await self.connection.take_line(text, time.monotonic())

    async def send(self, *messages: Message, batch: bool = False) -> None:
        for each in messages:
            if "method" in each and "id" in each:
                self._methods[each["id"]] = each["method"]
        if batch:
            await self.line(json.dumps(messages).encode())
            return
        for each in messages:
            await self.line(json.dumps(each).encode())

    async def next(self) -> Message:
        async with asyncio.timeout(PATIENCE_S):
            return await self._came_in.get()

    async def answer(self, request_id: str | int) -> Message:
        """Return the answer to a request; what else comes is kept."""
        while (message := await self.next()).get("id") != request_id:
            self._kept.append(message)
        return message

    async def other(self) -> Message:
        """Return the next message that is no answer that was waited for."""
        return self._kept.popleft() if self._kept else await self.next()

    async def heard(self, method: str) -> Message:
        """Return the next notification or request of this method."""
        while (message := await self.other()).get("method") != method:
            continue
        return message

    async def initialize(self, version: str = "2025-11-25") -> Message:
        self.version = version
        params = {
            "protocolVersion": version,
            "capabilities": {"elicitation": {}, "roots": {}, "sampling": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }
        await self.send(request("initialize", params, "hello"))
        found = await self.answer("hello")
        await self.send(notification("notifications/initialized"))
        return found

    def silent(self) -> bool:
        return self._came_in.empty() and not self._kept


def request(method: str, params: Message | None = None, number: Any = 1) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


def stateless(method: str, number: Any = 1, **params: Any) -> Message:
    return request(method, {**params, "_meta": META}, number)


def notification(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def called(tool: str, number: Any = 1, token: Any = None, **arguments: Any) -> Message:
    params: Message = {"name": tool, "arguments": arguments}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return request("tools/call", params, number)


def text(answer: Message) -> str:
    [block] = answer["result"]["content"]
    assert not answer["result"].get("isError"), block
    return str(block["text"])


def code(answer: Message) -> int:
    return int(answer["error"]["code"])


Open = Callable[..., Channel]


@pytest.fixture
async def channel_of(process: Process) -> AsyncIterator[Open]:
    """Make a channel to a server, for a principal."""

    def opened(
        slug: str = "default", principal: Principal = Principal.ANONYMOUS
    ) -> Channel:
        return Channel(process, slug, principal)

    yield opened
    for listener in process.listeners:
        listener.end()


@pytest.fixture
def channel(channel_of: Open) -> Channel:
    return channel_of()


# -- the eras -----------------------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL)
async def test_a_session_of_each_revision(channel: Channel, version: str) -> None:
    before = await counted()
    found = await channel.initialize(version)
    assert found["result"]["protocolVersion"] == version
    await channel.send(called("orders", 2))
    asked = await channel.next()
    if asked.get("method") == "elicitation/create":
        result = {"action": "accept", "content": {"size": "large", "count": 2}}
        await channel.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        asked = await channel.answer(2)
    assert asked["id"] == 2
    await channel.send(request("tools/list", {}, 3), request("ping", {}, 4))
    assert (await channel.answer(3))["result"]["tools"]
    assert await counted() == before, "A session of a connection leaves no row."


async def test_both_eras_at_once(channel: Channel) -> None:
    await channel.initialize()
    channel.version = NEWEST
    await channel.send(stateless("server/discover", "a"))
    assert NEWEST in (await channel.answer("a"))["result"]["supportedVersions"]
    await channel.send(stateless("tools/call", "b", name="whoami"))
    said = (await channel.answer("b"))["result"]["structuredContent"]
    assert said["revision"] == NEWEST
    channel.version = "2025-11-25"
    await channel.send(called("whoami", "c"))
    said = (await channel.answer("c"))["result"]["structuredContent"]
    assert said["revision"] == "2025-11-25"


async def test_a_probe_comes_before_anything_else(channel: Channel) -> None:
    channel.version = NEWEST
    unknown = {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    await channel.send(request("server/discover", {"_meta": unknown}, "a"))
    refused = await channel.answer("a")
    assert code(refused) == -32022
    assert NEWEST in refused["error"]["data"]["supported"]
    await channel.send(stateless("server/discover", "b"))
    found = (await channel.answer("b"))["result"]
    assert found["supportedVersions"] == refused["error"]["data"]["supported"]


async def test_what_is_wrong_with_a_stateless_request(channel: Channel) -> None:
    channel.version = NEWEST
    unknown = {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    poor = {"io.modelcontextprotocol/protocolVersion": NEWEST}
    wrong = [
        (request("tools/list", {"_meta": unknown}), -32022),
        (request("tools/list", {"_meta": poor}), -32602),
        (stateless("initialize"), -32601),
        (stateless("ping"), -32601),
        (stateless("subscriptions/listen"), -32602),
    ]
    for message, expected in wrong:
        await channel.send(message)
        assert code(await channel.answer(1)) == expected


async def test_conversations_are_told_apart_by_what_they_bring_back(
    channel_of: Open,
) -> None:
    """Neither the channel nor anything that it remembers tells which is meant."""
    first, second = channel_of(), channel_of()
    first.version = second.version = NEWEST
    asked = {}
    for word in ("one", "two"):
        given = {"name": "steps_sync", "arguments": {"line": word}}
        await first.send(stateless("tools/call", word, **given))
        asked[word] = (await first.answer(word))["result"]
    for word in ("two", "one"):
        given = {"name": "steps_sync", "arguments": {"line": word}}
        answered = asked[word]
        while answered["resultType"] == "input_required":
            [key] = answered["inputRequests"]
            state = answered["requestState"]
            answers = {key: {"action": "decline"}}
            retry = {**given, "requestState": state, "inputResponses": answers}
            await second.send(stateless("tools/call", 1, **retry))
            answered = (await second.answer(1))["result"]
        assert answered["content"][0]["text"] == "line 1"
    assert (await counted())["Ledger"] == 2
    await second.send(stateless("tools/call", 2, **given))
    anew = (await second.answer(2))["result"]
    assert anew["resultType"] == "input_required", "It remembers nothing by itself."


async def test_calls_run_side_by_side_and_can_be_cancelled(
    channel: Channel, stage: Stage
) -> None:
    await channel.initialize()
    await channel.send(called("waits", 1))
    await stage.begun()
    await channel.send(called("waits", 1), called("typed", 2, count=1))
    assert code(await channel.answer(1)) == -32600
    assert "result" in await channel.answer(2)
    cancel = notification("notifications/cancelled", requestId=1, reason="Enough.")
    await channel.send(cancel, cancel, request("ping", {}, 3))
    await channel.answer(3)
    await channel.send(called("typed", 1, count=1))
    assert "result" in await channel.answer(1), "The id is free again."
    assert channel.silent()


async def test_a_stateless_call_is_cancelled_by_a_notification(
    channel: Channel, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    channel.version = NEWEST
    await channel.send(stateless("tools/call", 1, name="waits"))
    await stage.begun()
    cancel = notification("notifications/cancelled", requestId=1, reason="Enough.")
    with caplog.at_level(logging.INFO, "mcp_app.calls"):
        await channel.send(cancel)
    [record] = caplog.records
    assert record.__dict__["reason"] == "Enough."
    await channel.send(stateless("tools/call", 1, name="typed", arguments={"count": 1}))
    assert "result" in await channel.answer(1)
    assert stage.told == ["cancelled"]
    assert channel.silent()


async def test_a_call_that_ends_although_it_was_cancelled_has_no_answer(
    channel: Channel, stage: Stage
) -> None:
    channel.version = NEWEST
    await channel.send(stateless("tools/call", 1, name="stubborn"))
    await stage.begun()
    await channel.send(notification("notifications/cancelled", requestId=1))
    await channel.send(stateless("tools/call", 2, name="whoami"))
    await channel.answer(2)
    assert stage.told == ["caught"]
    assert channel.silent()


async def test_what_a_client_ends_itself_is_not_cancelled_by_the_server(
    channel: Channel,
) -> None:
    channel.version = NEWEST
    wanted = {"notifications": {"toolsListChanged": True}}
    await channel.send(stateless("subscriptions/listen", "a", **wanted))
    await channel.heard("notifications/subscriptions/acknowledged")
    await channel.send(notification("notifications/cancelled", requestId="a"))
    await channel.send(stateless("tools/call", 1, name="orders"))
    asked = (await channel.answer(1))["result"]
    assert asked["resultType"] == "input_required", "Nobody waits for the answer."
    await channel.send(stateless("tools/list", 2))
    await channel.answer(2)
    assert channel.silent()


async def test_what_cancels_nothing(channel: Channel) -> None:
    await channel.initialize()
    for named in ("nobody", 7, True, None, 1.0, [1]):
        await channel.send(notification("notifications/cancelled", requestId=named))
    await channel.send(notification("notifications/unknown"), request("ping", {}, 2))
    await channel.answer(2)
    assert channel.silent()


async def test_a_question_is_withdrawn_with_its_call(channel: Channel) -> None:
    await channel.initialize()
    await channel.send(called("orders", 1))
    asked = await channel.heard("elicitation/create")
    await channel.send(notification("notifications/cancelled", requestId=1))
    withdrawn = await channel.heard("notifications/cancelled")
    assert withdrawn["params"]["requestId"] == asked["id"]
    late = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}}
    await channel.send(late, request("ping", {}, 2))
    await channel.answer(2)
    assert channel.silent()


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_nothing_is_said_of_a_call_that_is_over(
    channel: Channel, stage: Stage, version: str
) -> None:
    if version == NEWEST:
        channel.version = NEWEST
        call = stateless("tools/call", 1, name="reports_late")
        call["params"]["_meta"] = {**META, "progressToken": "t"}
    else:
        await channel.initialize()
        call = called("reports_late", 1, token="t")
    await channel.send(call)
    await channel.answer(1)
    first = await channel.heard("notifications/progress")
    assert first["params"]["progress"] == 1
    stage.released_thread.set()
    await until(lambda: stage.told)
    await channel.send(stateless("tools/call", 2, name="whoami"))
    await channel.answer(2)
    assert channel.silent()


async def test_a_used_id_is_another_round_trip(
    channel: Channel, process: Process
) -> None:
    """What `ctx.once` did in one call is not done in the next with the same id."""
    await channel.initialize()
    said = []
    for line in ("one", "two"):
        await channel.send(called("steps_sync", 1, line=line))
        for _ in ("sure", "really"):
            asked = await channel.heard("elicitation/create")
            result = {"action": "decline"}
            await channel.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        said.append(text(await channel.answer(1)))
    assert said == ["line 1", "line 1"]
    assert (await counted())["Ledger"] == 2


async def test_a_session_is_told_of_lists_and_of_what_it_watches(
    channel: Channel,
) -> None:
    await channel.initialize()
    await channel.send(called("changes", 1, what=["tools"]))
    await channel.heard("notifications/tools/list_changed")
    await channel.send(request("resources/subscribe", {"uri": URI}, 2))
    assert (await channel.answer(2))["result"] == {}
    await channel.send(called("changes", 3, what=[URI]))
    found = await channel.heard("notifications/resources/updated")
    assert found["params"] == {"uri": URI}
    await channel.send(request("resources/unsubscribe", {"uri": URI}, 4))
    assert (await channel.answer(4))["result"] == {}
    async with asyncio.timeout(PATIENCE_S):
        # The row goes beside the answer.
        while (await counted())["Subscription"]:
            continue


async def test_two_subscriptions_on_one_channel(
    channel: Channel, process: Process
) -> None:
    channel.version = NEWEST
    wanted = {"toolsListChanged": True, "resourceSubscriptions": [URI]}
    for number in ("a", "b"):
        await channel.send(
            stateless("subscriptions/listen", number, notifications=wanted)
        )
        found = await channel.heard("notifications/subscriptions/acknowledged")
        assert subscription(found) == number
    change = {"name": "changes", "arguments": {"what": ["tools"]}}
    await channel.send(stateless("tools/call", 1, **change))
    told = [await channel.heard("notifications/tools/list_changed") for _ in "ab"]
    assert {subscription(each) for each in told} == {"a", "b"}
    await channel.send(notification("notifications/cancelled", requestId="a"))
    await channel.send(stateless("tools/call", 2, **change))
    found = await channel.heard("notifications/tools/list_changed")
    assert subscription(found) == "b"
    change["arguments"] = {"what": [URI]}
    await channel.send(stateless("tools/call", 3, **change))
    await channel.answer(3)
    # What is told of that comes after whatever else is told of the tools.
    while found["method"] != "notifications/resources/updated":
        found = await channel.other()
        assert subscription(found) == "b"
    for listener in process.listeners:
        listener.end()
    closed = await channel.answer("b")
    assert subscription(closed["result"]) == "b"
    torn = await channel.heard("notifications/cancelled")
    assert torn["params"]["requestId"] == "b"


async def test_a_subscription_that_is_cancelled_at_once(
    channel: Channel, process: Process
) -> None:
    """Both lines may come together, before anything has begun."""
    channel.version = NEWEST
    wanted = {"toolsListChanged": True}
    await channel.send(
        stateless("subscriptions/listen", "a", notifications=wanted),
        notification("notifications/cancelled", requestId="a"),
        stateless("server/discover", "b"),
    )
    await channel.answer("b")
    await until(lambda: not channel.connection.running)
    assert len(process.listeners) == 0


def subscription(message: Message) -> Any:
    meta = message.get("params", message)["_meta"]
    return meta["io.modelcontextprotocol/subscriptionId"]


@pytest.mark.parametrize(
    ("line", "expected", "number"),
    [
        (b"no json", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700, None),
        (b"[" * 70 + b"]" * 70, -32700, None),
        (Broken.TOO_LONG, -32600, None),
        (b'{"jsonrpc":"1.0","id":3,"method":"ping"}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":4}', -32600, 4),
        (b"7", -32600, None),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]', -32600, None),
    ],
)
async def test_the_connection_lives_on(
    channel: Channel, line: bytes | Broken, expected: int, number: int | None
) -> None:
    await channel.initialize()
    await channel.line(line)
    refused = await channel.next()
    assert (code(refused), refused.get("id")) == (expected, number)
    await channel.send(request("ping", {}, 9))
    assert (await channel.answer(9))["result"] == {}


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":7}',
        b'{"jsonrpc":"1.0","method":"ping"}',
        b'{"method":"tools/list"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
        b'{"jsonrpc":"2.0","id":{},"result":{}}',
        b'{"jsonrpc":"2.0","id":"nobody","result":{}}',
    ],
)
async def test_what_is_no_request_is_never_answered(
    channel: Channel, line: bytes
) -> None:
    await channel.initialize()
    await channel.line(line)
    await channel.send(request("ping", {}, 9))
    await channel.answer(9)
    assert channel.silent()


async def test_a_line_that_is_read_in_a_thread(channel: Channel) -> None:
    await channel.initialize()
    await channel.send(called("typed", 1, count=1, text="x" * 100_000))
    assert "result" in await channel.answer(1)


async def test_a_batch_is_answered_on_one_line(channel: Channel, stage: Stage) -> None:
    await channel.initialize("2025-03-26")
    bad = request("tools/call", {"name": "typed", "_meta": 7}, 3)
    await channel.send(
        called("waits", 1),
        called("typed", 2, count=1),
        bad,
        notification("notifications/unknown"),
        batch=True,
    )
    await stage.begun()
    await channel.send(notification("notifications/cancelled", requestId=1))
    answers: Any = await channel.next()
    assert {each["id"] for each in answers} == {2, 3}
    await channel.send(bad, batch=True)
    answers = await channel.next()
    assert [code(each) for each in answers] == [-32602]


async def test_a_server_that_is_not_public_needs_a_user(channel_of: Open) -> None:
    channel = channel_of("private")
    await channel.connection.current.gate.wait_until_fresh(time.monotonic())
    with pytest.raises(NotServed, match="MCP_USER"):
        await channel.connection.find_caller()
    await channel.send(request("ping"))
    assert code(await channel.next()) == -32600
    user = Principal(kind="user", user_id="7", user_name="eve", permissions=frozenset())
    channel = channel_of("private", user)
    await channel.initialize()
    await channel.send(called("open_to_all", 1), called("secret", 2))
    assert "result" in await channel.answer(1)
    assert code(await channel.answer(2)) == -32602


@pytest.mark.parametrize(("slug", "number"), [("nowhere", -32600), ("off", -32603)])
async def test_a_server_that_is_not_there(
    channel_of: Open, slug: str, number: int
) -> None:
    channel = channel_of(slug)
    await channel.send(request("ping"))
    assert code(await channel.next()) == number


async def test_a_user_who_is_gone(channel_of: Open) -> None:
    gone = Principal(kind="user", user_id="4711", user_name="eve", client="stdio")
    channel = channel_of("default", gone)
    await channel.send(request("ping"))
    refused = await channel.next()
    assert "'eve' is no longer active" in refused["error"]["message"]


async def test_a_process_that_stops(channel: Channel, process: Process) -> None:
    await channel.initialize()
    process.stopping = True
    await channel.send(called("typed", 1, count=1))
    assert code(await channel.answer(1)) == -32603
    process.stopping = False


async def test_a_batch_of_what_has_no_answer_is_one_line_of_the_log(
    channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    await channel.initialize("2025-03-26")
    caplog.set_level(logging.INFO)
    cancellations = [
        notification("notifications/cancelled", requestId=number, reason="Enough.")
        for number in range(100)
    ]
    await channel.send(*cancellations, batch=True)
    await channel.send(
        *({"jsonrpc": "2.0", "id": f"q{n}", "result": {}} for n in range(100)),
        batch=True,
    )
    assert [each.getMessage() for each in caplog.records] == [
        "A client cancelled 100 requests.",
        "No question waits for an answer with the id 'q0'. Such answers: 100.",
    ]
    assert channel.silent()
