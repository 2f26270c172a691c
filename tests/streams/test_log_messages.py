"""Log messages on their way to the streams of sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from threading import Event
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.models import LoggedMessage, Session
from mcp_app.models.streams import LOG_BATCH_SIZE, NumberedText
from mcp_app.pools.database import reader, writer
from mcp_app.streams import listeners
from mcp_app.streams.listeners import Deliveries
from tests.streams.logging_rows import erase, own_session

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

PATIENCE_S: Final = 60
COUNT: Final = 20


class Stream:
    newest = True

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.logged = 0

    def log(self, messages: Iterable[NumberedText]) -> None:
        for self.logged, payload in messages:
            self.sent.append(payload)


def standing(row: Session, stream: Stream) -> Any:
    """Return a session that has that stream open."""
    return SimpleNamespace(pk=row.pk, streams=[stream])


def say(row: Session, *payloads: str) -> None:
    for payload in payloads:
        LoggedMessage.objects.log([row.pk], payload)


@pytest.fixture
def rows() -> Iterable[list[Session]]:
    yield [own_session() for _ in range(COUNT)]
    erase()


async def test_all_that_was_said_is_sent_in_order(rows: list[Session]) -> None:
    stream = Stream()
    said = [str(number) for number in range(LOG_BATCH_SIZE + 1)]
    await writer.run(say, rows[0], *said)
    await Deliveries().deliver_messages(standing(rows[0], stream))
    assert stream.sent == said


async def test_what_is_said_meanwhile_is_sent_once(
    rows: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, deliveries = Stream(), Deliveries()
    session, (begun, go_on) = standing(rows[0], stream), held(monkeypatch)
    await writer.run(say, rows[0], "first")
    first = asyncio.create_task(deliveries.deliver_messages(session))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    # The thread of the writer is held.
    await reader.run(say, rows[0], "second")
    for _ in range(5):
        await deliveries.deliver_messages(session)
    go_on.set()
    await first
    assert stream.sent == ["first", "second"]


async def test_the_thread_is_free_for_others_between_two_sessions(
    rows: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heartbeat waits for one session, not for all of them."""
    deliveries, streams = Deliveries(), [Stream() for _ in rows]
    begun, go_on = held(monkeypatch)
    tasks = [
        asyncio.create_task(deliveries.deliver_messages(standing(*each)))
        for each in zip(rows, streams, strict=True)
    ]
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    beat = asyncio.create_task(writer.run(lambda: sum(seen)))
    seen = [0]
    monkeypatch.setattr(listeners, "_numbered", counted(seen))
    await asyncio.sleep(0)
    go_on.set()
    assert await beat == 0
    await asyncio.gather(*tasks)
    assert len(seen) == COUNT


def held(monkeypatch: pytest.MonkeyPatch) -> tuple[Event, Event]:
    """Hold the first read until the second event; the first one says that it began."""
    begun, go_on, read = Event(), Event(), listeners._numbered

    def held(session: int, after: int) -> list[NumberedText]:
        found = read(session, after)
        begun.set()
        go_on.wait(PATIENCE_S)
        return found

    monkeypatch.setattr(listeners, "_numbered", held)
    return begun, go_on


def counted(seen: list[int]) -> Any:
    def read(session: int, after: int) -> list[NumberedText]:
        seen.append(1)
        return []

    return read


async def test_a_session_without_a_stream_is_sent_nothing(rows: list[Session]) -> None:
    await writer.run(say, rows[0], "unheard")
    session: Any = SimpleNamespace(pk=rows[0].pk, streams=[])
    await Deliveries().deliver_messages(session)
    unsent = await writer.run(LoggedMessage.objects.get)
    assert unsent.seq is None
