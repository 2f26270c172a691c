"""What is written to the stream of HTTP+SSE, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcp_app.process.quotas import Queues
from mcp_app.transports.http.replies import EventStream
from mcp_app.transports.http_sse import stream
from mcp_app.transports.http_sse.stream import OneChannel
from tests.streams.logging_rows import until


class Client:
    """Notes the pieces that are sent, once it is there."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.pieces: list[bytes] = []
        self.there = asyncio.Event()
        self.there.set()

    async def send(self, message: Any) -> None:
        await self.there.wait()
        if "status" in message:
            self.started.append(message["status"])
        if message.get("body"):
            self.pieces.append(message["body"])

    async def got(self, count: int) -> list[bytes]:
        await until(lambda: len(self.pieces) >= count)
        return self.pieces


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
async def closed_channel(client: Client) -> OneChannel:
    """One whose first event was not sent yet."""
    return OneChannel(EventStream(client.send, [], Queues(2**30)))


@pytest.fixture
async def channel(client: Client, closed_channel: OneChannel) -> OneChannel:
    closed_channel.open_channel("/mcp/messages")
    await client.got(1)
    client.pieces.clear()
    return closed_channel


def event(data: str) -> bytes:
    return f"event: message\ndata: {data}\n\n".encode()


async def test_no_event_has_an_id(client: Client, channel: OneChannel) -> None:
    channel.queue_priming_event("a.0")
    channel.queue_message(b"1", "a.1")
    assert await client.got(1) == [event("1")]


async def test_an_answer_is_apart_from_what_came_before(
    client: Client, channel: OneChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A widespread client loses progress that it reads together with the answer."""
    # The machine may stand still between one line and the next.
    monkeypatch.setattr(stream, "APART_S", 0.5)
    channel.queue_message(b"progress")
    channel.queue_answer(b"answer")
    channel.queue_answer(b"another")
    answers = event("answer") + event("another")
    assert await client.got(2) == [event("progress"), answers]


async def test_each_answer_is_apart_from_what_came_before_it(
    client: Client, channel: OneChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of other requests, which wait already, do not take it along."""
    monkeypatch.setattr(stream, "APART_S", 0.5)
    channel.queue_message(b"progress 1")
    channel.queue_answer(b"answer 1")
    monkeypatch.setattr(stream, "APART_S", 1.0)
    channel.queue_message(b"progress 2")
    channel.queue_answer(b"answer 2")
    progress = event("progress 1") + event("progress 2")
    apart = [progress, event("answer 1"), event("answer 2")]
    assert await client.got(3) == apart


async def test_answers_alone_wait_for_nothing(
    client: Client, channel: OneChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "APART_S", 3600)
    channel._message_at = -7200
    channel.queue_answer(b"1")
    channel.queue_answer(b"2")
    assert await client.got(1) == [event("1") + event("2")]
    assert channel._timer is None


async def test_the_end_leaves_nothing_out(
    client: Client, channel: OneChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "APART_S", 3600)
    channel.queue_message(b"1")
    channel.queue_answer(b"2")
    channel.end_output(retry_ms=5)
    await channel.closed
    assert b"".join(client.pieces) == event("1") + event("2") + b"retry: 5\n\n"


async def test_who_is_gone_is_sent_nothing(client: Client, channel: OneChannel) -> None:
    channel.queue_message(b"1")
    channel.queue_answer(b"2")
    channel.abandon_output()
    channel._send_due_answers()
    assert channel.closed.cancelled()
    await asyncio.sleep(0)
    assert client.pieces == []


async def test_what_waits_is_counted(
    client: Client, channel: OneChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MAX_WAITING_BYTES", 100)
    client.there.clear()
    full = []
    for size in (1, 200):
        channel.queue_message(b"x" * size)
        full.append(channel.has_backlog)
    client.there.set()
    await client.got(1)
    assert [*full, channel.has_backlog] == [False, True, False]


async def test_answers_that_wait_are_counted(
    channel: OneChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "APART_S", 3600)
    monkeypatch.setattr(stream, "MAX_WAITING_BYTES", 100)
    channel.queue_message(b"x")
    channel.queue_answer(b"x" * 200)
    assert channel.has_backlog
    channel.abandon_output()
    assert not channel.has_backlog


async def test_no_heartbeat_comes_before_the_address(
    client: Client, closed_channel: OneChannel
) -> None:
    """It would begin a response that may still become an error."""
    closed_channel.queue_heartbeat()
    await asyncio.sleep(0)
    assert client.pieces == []
    closed_channel.open_channel("/mcp/messages?session_id=a")
    endpoint = b"event: endpoint\ndata: /mcp/messages?session_id=a\n\n"
    assert await client.got(1) == [endpoint]
    closed_channel.queue_heartbeat()
    assert await client.got(2) == [endpoint, b":\n\n"]


async def test_what_ends_before_the_address_sends_nothing_until_then(
    client: Client, closed_channel: OneChannel
) -> None:
    closed_channel.end_output()
    await asyncio.sleep(0)
    assert client.started == []
    closed_channel.open_channel("/mcp/messages?session_id=a")
    await closed_channel.closed
    assert (client.started, client.pieces) == ([200], [])
