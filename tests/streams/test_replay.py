"""Reading on in a stream: every message after a place once, in order, to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcp_app.invalidation.workers import PeerMonitor
from mcp_app.models import Session, Stream
from mcp_app.pools.database import reader, writer
from mcp_app.streams import replay
from mcp_app.streams.log_writer import Batch, write
from mcp_app.streams.replay import Followers, LastMessage, Place
from tests.streams.logging_rows import (
    OWNER,
    erase,
    further,
    opened,
    opening,
    own_session,
)

pytestmark = pytest.mark.usefixtures("served_rows")


@dataclass
class Told:
    messages: list[tuple[bytes, str]] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def began(self) -> None:
        """The stream was there before."""

    def message(self, payload: bytes, event_id: str) -> None:
        self.messages.append((payload, event_id))

    def ended(self) -> None:
        self.over.set()

    async def end(self) -> None:
        async with asyncio.timeout(60):
            await self.over.wait()


async def nobody() -> None:
    """Nothing is done about the dead."""


def followers(orphaned: Callable[[], Awaitable[object]] = nobody) -> Followers:
    return Followers(PeerMonitor("me"), orphaned)


@pytest.fixture
async def own(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session; looks follow upon each other at once."""
    monkeypatch.setattr(replay, "LOOK_S", 0)
    yield await writer.run(own_session)
    await writer.run(erase)


async def stream(own: Session, *payloads: bytes, **columns: Any) -> Stream:
    key = await writer.run(lambda: opened(own, *payloads, **columns))
    return await reader.run(lambda: Stream.objects.get(pk=key))


async def more(row: Stream, *payloads: bytes, **columns: Any) -> None:
    def written() -> None:
        write(Batch([further(row.pk, *payloads, **columns)], OWNER))

    await writer.run(written)


async def place(own: Session, row: Stream, seq: int) -> Place:
    found = await followers().find_place(own.pk, row.public_id, seq)
    assert found is not None
    return found


async def test_a_stream_of_another_session_is_none(own: Session) -> None:
    row = await stream(own, b"1")
    other = await writer.run(own_session)
    assert await followers().find_place(other.pk, row.public_id, 0) is None
    assert await followers().find_place(own.pk, "no such stream", 0) is None


@pytest.mark.parametrize(
    ("payloads", "state", "whole"),
    [
        ([b"1"], "completed", True),
        ([b"1", b"2"], "completed", False),
        ([b"1"], "aborted", False),
        ([], "completed", False),
    ],
)
async def test_an_earlier_request(
    own: Session, payloads: list[bytes], state: str, whole: bool
) -> None:
    named = {"request_key": "k" * 64, "request_digest": "d" * 64, "tool": "add"}

    def written() -> None:
        write(Batch([opening(own, *payloads, state=state, **named)], OWNER))

    await writer.run(written)
    found = await followers().earlier_request(own.pk, "k" * 64)
    assert found is not None
    assert (found.digest, found.tool, found.whole) == ("d" * 64, "add", whole)
    assert found.place.seq == 0
    assert await followers().earlier_request(own.pk, "K" * 64) is None


@pytest.mark.parametrize(("seq", "payload"), [(0, b"2"), (2, None)])
async def test_the_last_message_after_a_place(
    own: Session, seq: int, payload: bytes | None
) -> None:
    row = await stream(own, b"1", b"2")
    await more(row, state="completed")
    assert await followers().wait_for_last(await place(own, row, seq)) == payload


async def test_who_needs_the_last_message_hears_of_one_end() -> None:
    last = LastMessage()
    last.message(b"1", "p.1")
    last.message(b"2", "p.2")
    last.ended()
    last.ended()
    assert await last.over == b"2"


async def test_an_owner_without_a_row_is_dead(own: Session) -> None:
    row = await stream(own, b"1")
    looked = asyncio.Event()

    async def orphaned() -> None:
        looked.set()

    told = Told()
    with followers(orphaned).following(await place(own, row, 1), told):
        await looked.wait()
    assert not told.over.is_set()


async def test_nobody_looks_after_the_last_has_gone(own: Session) -> None:
    row = await stream(own, b"1")
    read, told = followers(), Told()
    with read.following(await place(own, row, 0), told):
        while not told.messages:
            await asyncio.sleep(0)
    while read._task is not None:
        await asyncio.sleep(0)
    await more(row, b"2", state="completed")
    assert [payload for payload, _ in told.messages] == [b"1"]
    assert not told.over.is_set()
