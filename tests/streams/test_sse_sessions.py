"""Sessions of HTTP+SSE end with their stream, whatever becomes of its process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from django.db import OperationalError
from django.db.models import Model
from pytest_django import Settings

from mcp_app.interface.context import Client
from mcp_app.interface.principal import Principal
from mcp_app.models import Session, Worker
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.pools.database import reader, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import InvalidRequest, RequestRefused
from mcp_app.protocol.revisions import LATEST_STATEFUL, V2025_06_18
from mcp_app.streams import bound_sessions, claims
from mcp_app.streams.bound_sessions import Negotiation, SseSessions
from mcp_app.streams.open_session import Opening, OpenSession, delete_sessions

pytestmark = pytest.mark.databases

NOBODY: Final = Principal.ANONYMOUS
ELSEWHERE: Final = "worker-elsewhere"


async def keys() -> list[int]:
    rows = Session.objects.order_by("pk").values_list("pk", flat=True)
    return await reader.run(list, rows)


@pytest.fixture
def elsewhere(process: Process) -> SseSessions:
    """The sessions of another process, as far as the rows say."""
    return SseSessions(process.sessions, ELSEWHERE)


Store = Callable[[SseSessions], Awaitable[OpenSession]]


@pytest.fixture
def store(process: Process) -> Store:
    async def stored(sessions: SseSessions) -> OpenSession:
        session = sessions.new_session(NOBODY, "default")
        await process.sessions.store_session(session, NOBODY)
        return session

    return stored


async def beaten(seen_ms: int) -> None:
    """Let the other process have said then that it lives."""
    columns: Any = {"pid": 1, "started_ms": 1, "seen_ms": seen_ms}
    await writer.run(
        lambda: Worker.objects.update_or_create(pk=ELSEWHERE, defaults=columns)
    )


async def test_a_session_is_initialized_once(process: Process, store: Store) -> None:
    session = await store(process.sse_sessions)
    asked = Opening(NOBODY, "default", V2025_06_18, Client(name="first"))
    assert await Negotiation(session).create(asked) == session.session_id
    assert (session.negotiated, session.revision) == (True, V2025_06_18)
    session.negotiated = False
    with pytest.raises(InvalidRequest):
        await Negotiation(session).create(asked)
    session.revision, session.client = LATEST_STATEFUL, Client()
    found = await process.sse_sessions.find(session.session_id, NOBODY, "default")
    assert (found.revision, found.client.name) == (V2025_06_18, "first")
    await process.sse_sessions.end_session(session)


class Replicated:
    """Rows of sessions are read from a database that has none of them."""

    def db_for_read(self, model: type[Model], **_: object) -> str | None:
        return "replica" if model is Session else None


async def test_rows_are_read_where_they_are_written(
    process: Process, elsewhere: SseSessions, store: Store, settings: Settings
) -> None:
    """A message comes a moment after the session's row."""
    session, lost = await store(process.sse_sessions), await store(elsewhere)
    settings.DATABASE_ROUTERS = [f"{__name__}.{Replicated.__qualname__}"]
    found = await process.sse_sessions.find(session.session_id, NOBODY, "default")
    assert not found.negotiated
    process.sessions._uncache_session(lost.digest)
    assert (
        await process.sse_sessions.find(lost.session_id, NOBODY, "default")
    ).pk == lost.pk
    await process.sse_sessions.delete_streamless()
    await process.sse_sessions.end_of_dead({ELSEWHERE: None})
    settings.DATABASE_ROUTERS = []
    assert await keys() == [session.pk]


async def test_what_was_left_is_swept(
    process: Process, elsewhere: SseSessions, store: Store, monkeypatch: Any
) -> None:
    left, kept = await store(process.sse_sessions), await store(process.sse_sessions)
    other = await store(elsewhere)

    async def fail(_: object) -> None:
        raise OperationalError("away")

    with monkeypatch.context() as patched:
        patched.setattr(bound_sessions, "delete_session", fail)
        with pytest.raises(OperationalError):
            await process.sse_sessions.end_session(left)
    # Nobody is served any more, whatever the row says.
    with pytest.raises(RequestRefused):
        await process.sse_sessions.find(left.session_id, NOBODY, "default")
    await process.sse_sessions.delete_streamless()
    assert await keys() == [kept.pk, other.pk]


async def test_what_was_left_is_swept_by_portions(
    process: Process, elsewhere: SseSessions, store: Store, monkeypatch: Any
) -> None:
    """All in one would keep the heartbeat from the writer's thread."""
    portions: list[int] = []

    async def delete(rows: SessionQuerySet) -> None:
        portions.append(await reader.run(rows.count))
        await delete_sessions(rows)

    monkeypatch.setattr(bound_sessions, "AT_ONCE", 2)
    monkeypatch.setattr(bound_sessions, "delete_sessions", delete)
    kept = await store(process.sse_sessions)
    for _ in range(5):
        await store(elsewhere)
    await SseSessions(process.sessions, ELSEWHERE).delete_streamless()
    assert portions == [2, 2, 1]
    assert await keys() == [kept.pk]


async def test_sessions_of_the_dead_end(
    process: Process, elsewhere: SseSessions, store: Store
) -> None:
    own, lost = await store(process.sse_sessions), await store(elsewhere)
    await beaten(7)
    owners = await reader.run(claims.stream_owners)
    assert (ELSEWHERE, 7, True) in owners
    # It has beaten since it was watched.
    await process.sse_sessions.end_of_dead({ELSEWHERE: 6})
    assert await keys() == [own.pk, lost.pk]
    await process.sse_sessions.end_of_dead({ELSEWHERE: 7})
    assert await keys() == [own.pk]


async def test_all_sessions_of_the_dead_end_at_once(
    process: Process, elsewhere: SseSessions, store: Store, monkeypatch: Any
) -> None:
    """However many one process has held: their clients' calls run on until then."""
    monkeypatch.setattr(bound_sessions, "AT_ONCE", 2)
    own = await store(process.sse_sessions)
    for _ in range(5):
        await store(elsewhere)
    await beaten(7)
    await process.sse_sessions.end_of_dead({ELSEWHERE: 7})
    assert await keys() == [own.pk]


async def test_sessions_of_those_without_a_row_end(
    process: Process, elsewhere: SseSessions, store: Store
) -> None:
    lost = await store(elsewhere)
    assert (ELSEWHERE, None, True) in await reader.run(claims.stream_owners)
    await beaten(7)
    await process.sse_sessions.end_of_dead({ELSEWHERE: None})
    assert await keys() == [lost.pk]
    await writer.run(Worker.objects.filter(pk=ELSEWHERE).delete)
    await process.sse_sessions.end_of_dead({ELSEWHERE: None})
    assert await keys() == []
