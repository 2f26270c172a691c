"""What the stateful revisions demand of sessions, by the ids of their requirements."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from django.db.models import F

from mcp_app.interface.context import Client
from mcp_app.interface.principal import Principal
from mcp_app.models import Session
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.revisions import LATEST_STATEFUL
from mcp_app.streams.open_session import Opening, OpenSession
from mcp_app.streams.session_store import TOUCH_S, SessionStore

WEEK_S: Final = 7 * 86_400


@pytest.fixture
def here(process: Process) -> SessionStore:
    return process.sessions


@pytest.fixture
def there(process: Process) -> SessionStore:
    """The sessions of another process."""
    return SessionStore(
        process.limits, lambda _: None, process.settled, process.announced_number
    )


async def created(store: SessionStore) -> str:
    opening = Opening(Principal.ANONYMOUS, "", LATEST_STATEFUL, Client())
    return await store.create(opening)


async def found(store: SessionStore, session_id: str) -> OpenSession:
    return await store.find(session_id, Principal.ANONYMOUS, "")


async def refused(store: SessionStore, session_id: str) -> None:
    with pytest.raises(RequestRefused) as error:
        await found(store, session_id)
    assert error.value.http_status == 404


async def test_a_session_that_was_closed_elsewhere(
    here: SessionStore, there: SessionStore
) -> None:
    """S-HTTP-062."""
    session_id = await created(here)
    session = await found(here, session_id)
    await there.delete(await found(there, session_id))
    session.last_used -= TOUCH_S + 1
    await refused(here, session_id)
    await refused(here, session_id)


async def test_a_session_that_was_used_elsewhere(
    here: SessionStore, there: SessionStore
) -> None:
    """S-HTTP-061: it is idle only where no process has seen it."""
    session_id = await created(here)
    session = await found(here, session_id)
    session.last_used -= WEEK_S + 1
    assert await found(here, session_id) is session


async def test_an_idle_session(here: SessionStore) -> None:
    session_id = await created(here)
    session = await found(here, session_id)
    session.last_used -= WEEK_S + 60
    row = Session.objects.filter(pk=session.pk)
    await writer.run(row.update, seen_ms=F("seen_ms") - (WEEK_S + 60) * 1_000)
    await refused(here, session_id)


async def test_a_session_is_one_object(here: SessionStore, there: SessionStore) -> None:
    """S-CANCEL-005, S-HTTP-044: its calls and streams are known in one place."""
    session_id = await created(here)
    both = await asyncio.gather(found(there, session_id), found(there, session_id))
    assert both[0] is both[1]
