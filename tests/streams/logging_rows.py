"""Rows that tests of the log begin with."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from mcp_app.models import Event, LoggedMessage, Session, Stream
from mcp_app.models.appends import OPEN, NewStream
from mcp_app.streams.log_writer import Batch, Gain, write
from tests.asgi_client import JsonObject, Visit
from tests.models.test_sessions import session

OWNER = "worker-1"


def own_session() -> Session:
    return session(uuid4().hex)


def new(row: Session, **columns: Any) -> NewStream:
    return NewStream(
        public_id=secrets.token_urlsafe(18), session_id=row.pk, requests="1", **columns
    )


def opening(row: Session, *payloads: bytes, state: str = OPEN, **columns: Any) -> Gain:
    """Return what makes a new stream with these messages."""
    return Gain(new(row, **columns), None, 0, 0, payloads, state)


def further(key: int, *payloads: bytes, state: str = OPEN) -> Gain:
    """Return what adds messages to a stream of this owner."""
    stream = Stream.objects.get(pk=key)
    return Gain(None, key, stream.head_seq, stream.size, payloads, state)


def opened(row: Session, *payloads: bytes, **columns: Any) -> int:
    """Make a stream and return its key."""
    [key] = write(Batch([opening(row, *payloads, **columns)], OWNER))
    assert isinstance(key, int)
    return key


def events(key: int) -> list[tuple[int, str]]:
    rows = Event.objects.filter(stream_id=key).order_by("seq")
    return list(rows.values_list("seq", "payload"))


def erase() -> None:
    LoggedMessage.objects.all().delete()
    Event.objects.all().delete()
    Stream.objects.all().delete()
    Session.objects.all().delete()


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.001)


async def message_of(stream: Visit) -> JsonObject:
    """Return the next message of a stream that has one."""
    message = await stream.message()
    assert message is not None
    return message
