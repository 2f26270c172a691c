"""From change rows to the streams, and what runs beside the requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

import pytest
from django.db import DatabaseError

from mcp_app.catalog.bindings import Binding
from mcp_app.models import Change
from mcp_app.pools.database import writer
from mcp_app.process import announcements as module
from mcp_app.process.announcements import Announcements
from mcp_app.protocol.uri_templates import UriTemplate
from mcp_app.streams.listeners import Listeners, digest_of
from mcp_app.wakeup.news import News
from mcp_app.wakeup.workers import WorkerRow
from tests.streams.test_listeners import Stream

pytestmark = pytest.mark.usefixtures("served_rows")

URI: Final = "shop://orders/1"


class Looks:
    """Counts how often it is looked for changes."""

    def __init__(self) -> None:
        self.count = 0

    async def look(self) -> None:
        self.count += 1


@pytest.fixture
async def looks() -> Looks:
    return Looks()


@pytest.fixture
async def announcements(looks: Looks) -> AsyncIterator[Announcements]:
    yield Announcements(Listeners(), looks.look, WorkerRow(), {})
    await writer.run(Change.objects.filter(ref="tools:default").delete)


def stream(announcements: Announcements) -> Stream:
    made = Stream("default", "tools", uri=URI)
    announcements._listeners.add(made)
    return made


@pytest.mark.parametrize(
    ("news", "told"),
    [
        (News(), []),
        (News(rows=(("tool", "1"), ("tool", "2"))), ["tools"]),
        (News(rows=(("uri", digest_of(URI)), ("prompt", "1"))), [URI]),
        (News(rows=(("list", "tools:staff"),)), []),
        (News(everything=True), ["tools", URI]),
    ],
)
async def test_streams_are_told(
    announcements: Announcements, news: News, told: list[str]
) -> None:
    listening = stream(announcements)
    announcements.announce(news)
    assert listening.told == told


async def test_what_was_announced_is_not_read_again(
    announcements: Announcements,
) -> None:
    first = await writer.run(announcements.read)
    assert first.everything
    announcements.seen(first)
    assert not (await writer.run(announcements.read)).everything


class Others(WorkerRow):
    """The row of a process beside which others live, or perhaps do."""

    def __init__(self, live: bool | Exception) -> None:
        super().__init__()
        self._live = live

    def others_live(self) -> bool:
        if isinstance(self._live, Exception):
            raise self._live
        return self._live


FIRST: Final = News(everything=True, first=True)
TOOL: Final = News(rows=(("tool", "1"),))


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
    looks: Looks,
    monkeypatch: pytest.MonkeyPatch,
    live: bool | Exception,
    news: News,
    at_once: bool,
    told: list[str],
) -> None:
    monkeypatch.setattr(module, "FRESHNESS", 0.2)
    announcements = Announcements(Listeners(), looks.look, Others(live), {})
    loop = asyncio.get_running_loop()
    began = loop.time()
    announcements.seen(news)
    # Streams that are opened meanwhile are told, too.
    listening = stream(announcements)
    async with asyncio.timeout(5):
        await asyncio.gather(*announcements._tasks)
    assert listening.told == told
    assert (loop.time() - began < 0.2) is at_once


async def test_streams_that_watch_an_instance_of_a_model_are_told(
    looks: Looks,
) -> None:
    class Order:
        """As much of a model as is looked at."""

        class _meta:  # noqa: N801
            label_lower = "shop.order"

    template = UriTemplate.parse("shop://orders/{number}")
    binding = Binding("shop://orders/{number}", Order, template)  # type: ignore[arg-type]
    announcements = Announcements(
        Listeners(), looks.look, Others(live=False), {binding.uri: binding}
    )
    listening = stream(announcements)
    for model in ("shop.customer", "shop.order"):
        announcements.seen(News(rows=(("model", model),)))
        async with asyncio.timeout(5):
            await asyncio.gather(*announcements._tasks)
    assert listening.told == [URI]


async def test_what_changes_no_list_is_told_to_nobody(
    announcements: Announcements,
) -> None:
    announcements.seen(News(rows=(("session", "1"), ("rights", "*"))))
    assert announcements._tasks == set()


async def test_change_rows_are_folded(announcements: Announcements) -> None:
    await writer.run(Change.objects.record, "list", "tools:default")
    announcements.seen(await writer.run(announcements.read))
    async with asyncio.timeout(5):
        await asyncio.gather(*announcements._tasks)
    rows = Change.objects.filter(ref="tools:default")
    assert await writer.run(rows.count) == 0


async def test_a_change_that_a_call_made_is_written_before_it_is_looked_for(
    announcements: Announcements, looks: Looks
) -> None:
    announcements.tell("tools", "default")
    assert looks.count == 0
    async with asyncio.timeout(5):
        while not looks.count:
            await asyncio.sleep(0.001)
    rows = Change.objects.filter(kind="list", ref="tools:default")
    assert await writer.run(rows.count) == 1


async def test_work_beside_the_requests_is_held_until_it_is_done(
    announcements: Announcements, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> None:
        raise LookupError("no such thing")

    leaves = asyncio.ensure_future(asyncio.sleep(60))
    announcements.keep(leaves)
    leaves.cancel()
    failing = asyncio.ensure_future(fails())
    announcements.keep(failing)
    assert announcements._tasks == {leaves, failing}
    with caplog.at_level(logging.WARNING, "mcp_app.process"):
        await asyncio.wait([leaves, failing])
        await asyncio.sleep(0)
    assert announcements._tasks == set()
    assert "Something beside the requests failed: no such thing" in caplog.text
