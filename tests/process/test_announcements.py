"""From change rows to the streams, and what runs beside the requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

import pytest
from django.db import DatabaseError

from mcp_app.invalidation.change_reader import (
    ChangedTopics,
    ChangeSet,
    MissedTopics,
    Name,
)
from mcp_app.invalidation.workers import WorkerRow
from mcp_app.models import Change, Topic
from mcp_app.models.fields import digest
from mcp_app.pools.database import writer
from mcp_app.process import announcements as module
from mcp_app.process.announcements import Announcements, MayRead
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import LISTS, Listener, Listeners
from tests.streams.test_listeners import Stream

pytestmark = pytest.mark.usefixtures("served_rows")

URI: Final = "shop://orders/1"


def nobody(slug: str) -> tuple[str, ...]:
    return ()


async def anybody(listener: Listener, uri: str) -> bool:
    return True


class Others(WorkerRow):
    """The row of a process beside which others live, or perhaps do."""

    def __init__(self, live: bool | Exception) -> None:
        super().__init__()
        self._live = live

    def others_live(self) -> bool:
        if isinstance(self._live, Exception):
            raise self._live
        return self._live


async def look() -> None:
    """There is nothing new."""


def announcing(
    live: bool | Exception = False, may_read: MayRead = anybody
) -> Announcements:
    return Announcements(Listeners(), look, Others(live), {}, nobody, may_read)


@pytest.fixture
async def announcements() -> Announcements:
    return announcing()


def stream(announcements: Announcements, seen: int = 0) -> Stream:
    made = Stream("default", "tools", uri=URI)
    made.seen = seen
    announcements._listeners.add(made)
    return made


async def done(announcements: Announcements) -> None:
    async with asyncio.timeout(60):
        while announcements._tasks:
            await asyncio.gather(*announcements._tasks, return_exceptions=True)
            # From Python 3.12 on, what has ended is not waited for at all.
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("news", "told"),
    [
        (ChangeSet(), []),
        (ChangeSet(rows=(("tool", "1"), ("tool", "2"))), ["tools"]),
        (ChangeSet(rows=(("uri", digest(URI)), ("prompt", "1"))), [URI]),
        (ChangeSet(rows=(("list", "tools:staff"),)), []),
        (ChangeSet(everything=True), ["tools", URI]),
    ],
)
async def test_streams_are_told(
    announcements: Announcements, news: ChangeSet, told: list[str]
) -> None:
    listening = stream(announcements)
    announcements.take_in(news)
    await done(announcements)
    assert listening.told == told


FIRST: Final = ChangeSet(everything=True, first=True)
TOOL: Final = ChangeSet(rows=(("tool", "1"),))


@pytest.mark.parametrize(
    ("live", "news", "at_once", "told"),
    [
        (False, TOOL, True, ["tools"]),
        (True, TOOL, False, ["tools"]),
        # Whether others live is not known: they may.
        (DatabaseError("gone"), TOOL, False, ["tools"]),
        (True, FIRST, False, ["tools", URI]),
        # Nobody can have been answered from anything older.
        (False, FIRST, True, []),
    ],
)
async def test_streams_are_told_when_all_processes_know(
    monkeypatch: pytest.MonkeyPatch,
    live: bool | Exception,
    news: ChangeSet,
    at_once: bool,
    told: list[str],
) -> None:
    lasts = 60.0 if at_once else 0.2
    monkeypatch.setattr(module, "FRESHNESS", lasts)
    announcements = announcing(live)
    loop = asyncio.get_running_loop()
    began = loop.time()
    announcements.take_in(news)
    # Streams that are opened meanwhile are told, too.
    listening = stream(announcements)
    await done(announcements)
    assert listening.told == told
    assert (loop.time() - began < lasts) is at_once


# -- numbers --------------------------------------------------------------------------


def changed(number: int, *names: Name, numbered: bool = True) -> ChangeSet:
    numbers = dict.fromkeys(names, number) if numbered else {}
    return ChangeSet(rows=names, number=number, numbers=numbers)


TOOLS: Final = ("list", "tools:default")
PROMPTS: Final = ("list", "prompts:default")


async def test_the_number_follows_announcements(announcements: Announcements) -> None:
    listening = stream(announcements)
    announcements.take_in(ChangeSet(number=4))
    assert await announcements.wait_for_first_batch() == 4
    announcements.take_in(changed(5, TOOLS))
    announcements.take_in(ChangeSet(number=6))
    # What was seen is not announced yet.
    assert announcements.announced_number == 4
    await done(announcements)
    assert (listening.told, listening.numbers) == (["tools"], [6])
    assert announcements.announced_number == 6


async def test_news_are_announced_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESHNESS", 0.02)
    announcements = announcing(live=True)
    listening = stream(announcements)
    announcements.take_in(changed(1, TOOLS))
    announcements.take_in(changed(2, ("uri", digest(URI)), TOOLS))
    announcements.take_in(changed(3, PROMPTS, TOOLS))
    # However slow the machine: two are due together, the last only after them.
    first, second, last = announcements._pending
    second.due = first.due
    last.due += 3600.0

    def tell(what: Sequence[str], number: int) -> None:
        Stream.tell(listening, what, number)
        last.due = first.due

    monkeypatch.setattr(listening, "tell", tell)
    assert announcements.announced_number == 0
    await done(announcements)
    assert listening.told[:-1] in (["tools", URI], [URI, "tools"])
    assert (listening.told[-1], listening.numbers) == ("tools", [2, 3])


async def test_what_was_seen_elsewhere_is_not_told(
    announcements: Announcements,
) -> None:
    streams = [stream(announcements, seen) for seen in (6, 7)]
    announcements.take_in(changed(6, TOOLS, numbered=False))
    announcements.take_in(ChangeSet(number=7, numbers={TOOLS: 7}))
    await done(announcements)
    assert [each.told for each in streams] == [["tools"], []]


async def test_no_later_change_raises_a_number(announcements: Announcements) -> None:
    listening = stream(announcements, seen=6)
    announcements.take_in(changed(6, TOOLS))
    announcements.take_in(changed(7, TOOLS))
    await done(announcements)
    assert listening.told == ["tools"]


class Process:
    """As much of a process as looks for changes."""

    def __init__(self, fails: bool = False) -> None:
        self._fails = fails
        self.announcements = Announcements(
            Listeners(), self.look, Others(live=False), {}, nobody, anybody
        )

    async def look(self) -> None:
        if self._fails:
            raise LookupError("no such database")
        self.announcements.take_in(await writer.run(self.announcements.read))


async def test_what_is_announced_has_its_number() -> None:
    current = Process()
    await current.look()
    before = await current.announcements.wait_for_first_batch()
    listening = stream(current.announcements)
    await writer.run(Change.objects.record, *TOOLS)
    await current.look()
    await done(current.announcements)
    topic = await writer.run(Topic.objects.get, kind="list", ref="tools:default")
    assert topic.version > before
    assert (listening.told, listening.numbers) == (["tools"], [topic.version])
    await writer.run(Topic.objects.filter(ref="tools:default").delete)


async def test_what_gets_no_number_is_announced_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise DatabaseError("no compaction")

    monkeypatch.setattr(module, "compact", fails)
    current = Process(fails=True)
    listening = stream(current.announcements)
    with caplog.at_level(logging.WARNING, "mcp_app.process"):
        current.announcements.take_in(
            ChangeSet(rows=(TOOLS,), number=3, uncompacted_ids=frozenset({1}))
        )
        await done(current.announcements)
    assert (listening.told, listening.numbers) == (["tools"], [3])
    assert "no compaction" in caplog.text
    assert "no such database" in caplog.text


async def test_a_mark_knows_what_was_announced(announcements: Announcements) -> None:
    announcements.take_in(ChangeSet(number=5, uncompacted_ids=frozenset({11, 12})))
    announcements.take_in(
        ChangeSet(
            rows=(TOOLS,),
            number=6,
            uncompacted_ids=frozenset({12, 13}),
            numbers={TOOLS: 6},
        )
    )
    mark = announcements.current_mark()
    expected = {
        # Seen and announced before: by its number, or by the rows that became it.
        ChangedTopics(("tool", "1"), 6, frozenset()): True,
        ChangedTopics(("tool", "1"), 7, frozenset({12, 13})): True,
        ChangedTopics(("tool", "1"), None, frozenset({12})): True,
        # It waits, and will be announced to all who are there then.
        ChangedTopics(TOOLS, 6, frozenset()): False,
        # It was not seen yet.
        ChangedTopics(("tool", "1"), 7, frozenset({12, 14})): False,
        ChangedTopics(("tool", "1"), 7, frozenset()): False,
        ChangedTopics(("tool", "1"), None, frozenset({14})): False,
    }
    assert {each: mark.was_announced(each) for each in expected} == expected
    await done(announcements)


async def test_a_stream_that_comes_back_is_told(announcements: Announcements) -> None:
    announcements.take_in(ChangeSet(number=5, uncompacted_ids=frozenset({11})))
    announcements.take_in(ChangeSet(rows=(TOOLS,), number=6, numbers={TOOLS: 6}))
    mark, listening = announcements.current_mark(), Stream("default", *LISTS)

    def told(
        *changes: ChangedTopics, everything: bool = False
    ) -> tuple[list[str], int]:
        missed = MissedTopics(7, everything, changes)
        return announcements.topics_since(mark, missed, listening)

    tool, prompt = ("tool", "1"), ("prompt", "1")
    announced = ChangedTopics(prompt, 5, frozenset())
    assert told() == ([], 7)
    assert told(announced) == (["prompts"], 7)
    assert told(announced, ChangedTopics(TOOLS, 6, frozenset())) == (["prompts"], 5)
    # What has no number yet has a greater one than all that was announced.
    for other in (
        ChangedTopics(tool, None, frozenset({14})),
        ChangedTopics(("session", "1"), 7, frozenset()),
    ):
        assert told(announced, other) == (["prompts"], 7)
    # The list has changed again since, which is announced later.
    for number, row in ((None, 14), (7, 15)):
        again = ChangedTopics(("prompt", "2"), number, frozenset({row}))
        assert told(announced, again)[0] == []
    assert told(everything=True) == ([*LISTS], 5)
    await done(announcements)


async def test_everything_waits(announcements: Announcements) -> None:
    announcements.take_in(ChangeSet(everything=True, number=7))
    change = ChangedTopics(TOOLS, 6, frozenset())
    assert not announcements.current_mark().was_announced(change)
    await done(announcements)
    assert announcements.current_mark().was_announced(change)


async def test_work_beside_the_requests_is_held_until_it_is_done(
    announcements: Announcements, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> None:
        raise LookupError("no such thing")

    leaves = announcements.spawn_task(asyncio.sleep(60))
    leaves.cancel()
    failing = announcements.spawn_task(fails())
    assert announcements._tasks == {leaves, failing}
    with caplog.at_level(logging.WARNING, "mcp_app.process"):
        await asyncio.wait([leaves, failing])
        await asyncio.sleep(0)
    assert announcements._tasks == set()
    assert "A background task failed: no such thing" in caplog.text


async def test_only_what_its_client_may_read_is_told() -> None:
    away = False

    async def may_read(listener: Listener, uri: str) -> bool:
        if away:
            raise Unavailable("The database is away.")
        return uri != URI

    announcements = announcing(may_read=may_read)
    listening = stream(announcements)
    both = (*LISTS, URI)
    assert await announcements.permitted_topics(listening, both) == list(LISTS)
    away = True
    assert await announcements.permitted_topics(listening, both) == list(both)
