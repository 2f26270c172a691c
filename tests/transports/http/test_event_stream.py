"""The queue in front of a reader: slow, gone, or done with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest

from mcp_app.process.quotas import Queues
from mcp_app.transports.asgi_types import Message
from mcp_app.transports.http import replies
from mcp_app.transports.http.replies import SSE_HEADERS, EventStream

ROOM: Final = 2**30
MESSAGE: Final = b"event: message\ndata: {}\n\n"
BEAT: Final = b":\n\n"


class Reader:
    """Takes what is sent, as long as it is not told to wait."""

    def __init__(self) -> None:
        self.parts: list[Message] = []
        self.ready = asyncio.Event()
        self.ready.set()
        self.error: Exception | None = None

    async def send(self, message: Message) -> None:
        await self.ready.wait()
        if self.error is not None:
            raise self.error
        self.parts.append(message)

    @property
    def bodies(self) -> list[bytes]:
        return [part["body"] for part in self.parts if "body" in part]


def streaming(reader: Reader, queues: Queues | None = None) -> EventStream:
    return EventStream(reader.send, [], queues or Queues(ROOM))


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    yield Reader()
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nothing_is_sent_before_there_is_something(reader: Reader) -> None:
    streaming(reader)
    await settled()
    assert reader.parts == []


async def test_the_whole_of_a_stream(reader: Reader) -> None:
    stream = streaming(reader)
    stream.message(b"{}")
    await settled()
    stream.beat()
    await settled()
    stream.end(retry_ms=2000)
    stream.end()
    stream.message(b"{}")
    stream.beat()
    await stream.closed
    start, *_ = reader.parts
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    assert start["headers"] == SSE_HEADERS
    assert reader.bodies == [MESSAGE, BEAT, b"retry: 2000\n\n", b""]
    assert [part.get("more_body", False) for part in reader.parts[1:]] == [
        True,
        True,
        True,
        False,
    ]


async def test_an_empty_stream(reader: Reader) -> None:
    stream = streaming(reader)
    stream.end()
    await stream.closed
    assert reader.bodies == [b""]


async def test_what_waits_goes_together(reader: Reader) -> None:
    stream = streaming(reader)
    stream.message(b"{}")
    stream.message(b"{}")
    # Whoever gets a message needs no heartbeat.
    stream.beat()
    await settled()
    assert reader.bodies == [MESSAGE + MESSAGE]
    stream.abandon()


@pytest.mark.parametrize("began", [False, True])
async def test_a_reader_that_is_gone(reader: Reader, began: bool) -> None:
    stream = streaming(reader)
    reader.ready.clear()
    if began:
        stream.message(b"{}")
        await settled()
    stream.abandon()
    stream.abandon()
    stream.message(b"{}")
    stream.end()
    await settled()
    assert stream.closed.cancelled()
    assert reader.parts == []


async def test_t19_a_reader_for_whom_too_much_waits(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for the end of the stream is told, so that nothing stays open."""
    monkeypatch.setattr(replies, "MOST_QUEUED", 100)
    queues = Queues(ROOM)
    stream = streaming(reader, queues)
    reader.ready.clear()
    stream.message(b"x" * 1000)
    await settled()
    # One large message is no reason: only what waits behind it is counted.
    assert not stream.closed.done()
    stream.message(b"x")
    assert stream.closed.done()
    stream.message(b"{}")
    await settled()
    assert reader.parts == []
    # Nothing of it is left.
    assert (stream.waiting, queues._waiting, len(stream._queue)) == (0, 0, 0)


async def test_a_reader_that_keeps_up_with_much(reader: Reader) -> None:
    """What a tool writes at once waits until the reader has had its chance."""
    stream = streaming(reader)
    for _ in range(10):
        stream.message(b"x" * 2_000_000)
    stream.end()
    await asyncio.wait_for(stream.closed, 60)
    assert sum(map(len, reader.bodies)) > 20_000_000
    assert stream.waiting == 0


async def test_t19_a_server_gets_a_little_at_a_time(reader: Reader) -> None:
    """It keeps what it has taken until the client reads, or has gone."""
    stream = streaming(reader)
    sent = [b"%d" % number * size for number, size in enumerate((9, 10**6, 9, 50_000))]
    for each in sent:
        stream.message(each)
    stream.end()
    await asyncio.wait_for(stream.closed, 60)
    assert b"".join(reader.bodies) == b"".join(
        b"event: message\ndata: " + each + b"\n\n" for each in sent
    )
    assert max(map(len, reader.bodies)) == replies.PIECE


async def test_t19_the_fullest_of_all_queues_is_ended_first(reader: Reader) -> None:
    queues, slow = Queues(10_000), Reader()
    slow.ready.clear()
    full, small = streaming(slow, queues), streaming(slow, queues)
    full.message(b"x" * 6_000)
    small.message(b"x" * 3_000)
    quick = streaming(reader, queues)
    await settled()
    for _ in range(3):
        quick.message(b"x" * 900)
        await settled()
    # All that was sent to the quick one counts no more.
    assert not full.closed.done()
    small.message(b"x" * 1_500)
    assert full.closed.done()
    assert not small.closed.done()
    assert not quick.closed.done()
    for each in (small, quick):
        each.abandon()
    assert queues._waiting == 0


async def test_a_reader_that_takes_too_long(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "SEND_SECONDS", 0.01)
    stream = streaming(reader)
    stream.message(b"{}")
    await settled()
    reader.ready.clear()
    stream.message(b"{}")
    await asyncio.wait_for(stream.closed, 60)
    stream.message(b"{}")
    assert reader.bodies == [MESSAGE]
    assert stream.waiting == 0


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("after the end")])
async def test_a_server_that_says_so(reader: Reader, error: Exception) -> None:
    reader.error = error
    stream = streaming(reader)
    stream.message(b"{}")
    await asyncio.wait_for(stream.closed, 60)
    assert reader.parts == []
