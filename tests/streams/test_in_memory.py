"""A session that lives as long as its connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest

from mcp_app.interface.context import Client
from mcp_app.interface.errors import ClientRefused
from mcp_app.interface.principal import Principal
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.streams import bound_sessions
from mcp_app.streams.bound_sessions import MemoryQuestions, MemorySessions
from mcp_app.streams.open_session import Opening, OpenSession


class Watched:
    def __init__(self) -> None:
        self.uris: list[str] = []
        self.fails = False

    @asynccontextmanager
    async def watching(self, uris: Collection[str]) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        if self.fails:
            raise OSError
        self.uris += uris
        yield
        for uri in uris:
            self.uris.remove(uri)


async def announced() -> int:
    return 0


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def sessions(watched: Watched) -> MemorySessions:
    return MemorySessions(announced, watched.watching)


async def opened(sessions: MemorySessions) -> OpenSession:
    revision = REVISIONS["2025-11-25"]
    opening = Opening(Principal.ANONYMOUS, "default", revision, Client())
    await sessions.create(opening)
    assert sessions.session is not None
    return sessions.session


async def test_what_it_watches_is_known_while_it_does(
    sessions: MemorySessions, watched: Watched
) -> None:
    session = await opened(sessions)
    assert await sessions.subscribe(session, "memo://1", 2)
    assert await sessions.subscribe(session, "memo://1", 2)
    assert await sessions.subscribe(session, "memo://2", 2)
    assert not await sessions.subscribe(session, "memo://3", 2)
    assert watched.uris == ["memo://1", "memo://2"]
    await sessions.unsubscribe(session, "memo://1")
    await sessions.unsubscribe(session, "memo://3")
    assert watched.uris == list(session.uris.values()) == ["memo://2"]


async def test_what_comes_together_is_done_in_its_order(
    sessions: MemorySessions, watched: Watched
) -> None:
    session = await opened(sessions)
    done: list[bool] = []

    async def subscribe() -> None:
        assert await sessions.subscribe(session, "memo://1", 2)
        done.append(watched.uris == ["memo://1"])

    await asyncio.gather(subscribe(), subscribe())
    assert done == [True, True], "Who is answered is told of changes."
    await asyncio.gather(
        sessions.subscribe(session, "memo://2", 2),
        sessions.unsubscribe(session, "memo://2"),
    )
    assert watched.uris == ["memo://1"]


async def test_what_could_not_be_written_is_not_watched(
    sessions: MemorySessions, watched: Watched
) -> None:
    session = await opened(sessions)
    watched.fails = True
    with pytest.raises(OSError):  # noqa: PT011 - it says nothing
        await sessions.subscribe(session, "memo://1", 2)
    assert session.uris == {}
    watched.fails = False
    assert await sessions.subscribe(session, "memo://1", 2)


async def test_a_question_waits_for_the_handshake(sessions: MemorySessions) -> None:
    session = await opened(sessions)
    waiting = asyncio.ensure_future(sessions.wait_for_handshake(session))
    await asyncio.sleep(0)
    assert not waiting.done()
    sessions.complete_handshake(session)
    await waiting
    await sessions.wait_for_handshake(session)


async def test_a_handshake_that_never_ends_is_not_waited_for(
    sessions: MemorySessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_sessions, "HANDSHAKE_S", 0.01)
    await sessions.wait_for_handshake(await opened(sessions))


async def test_answers_of_a_connection(sessions: MemorySessions) -> None:
    session, questions = await opened(sessions), MemoryQuestions()
    asked = {name: questions.expect_answer(session, name).answer for name in "abc"}
    assert questions.expect_answer(session, "d").beside.write("default") is None
    assert await questions.take(session, "a", {"x": 1}, None)
    assert await questions.take(session, "b", None, {"code": 1, "message": "No."})
    questions.forget_question("c")
    assert not await questions.take(session, "c", {}, None)
    assert not await questions.take(session, 7, {}, None)
    assert await asked["a"] == {"x": 1}
    with pytest.raises(ClientRefused, match="No"):
        await asked["b"]
    asked["c"].cancel()
