"""Streams that come back, at either of two processes on one database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from django.db import OperationalError

from mcp_app import changed, changed_model, notify
from mcp_app.catalog.bindings import Binding
from mcp_app.invalidation import compaction
from mcp_app.invalidation.change_reader import MissedTopics, missed_since
from mcp_app.models import Counter, Session, Subscription, Topic
from mcp_app.pools.database import reader, writer
from mcp_app.process import announcements as announcing
from mcp_app.process import current as current_process
from mcp_app.process import runtime, stream_opening
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import STATEFUL
from mcp_app.streams.event_ids import new_public_id
from mcp_app.streams.listeners import Announcement
from tests.asgi_client import Client, Visit
from tests.serving import Connect, _nothing_left

URI: Final = "test://static-text"
OTHER: Final = "test://static-binary"
PRIMED: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
TOOLS: Final = "notifications/tools/list_changed"
PROMPTS: Final = "notifications/prompts/list_changed"
RESOURCES: Final = "notifications/resources/list_changed"
EVERYTHING: Final = [TOOLS, PROMPTS, RESOURCES]

pytestmark = pytest.mark.databases


@pytest.fixture
async def elsewhere(process: Process) -> AsyncIterator[Process]:
    """Another process that serves from the same rows."""
    made = runtime.Process(process.registry)
    yield made
    await _nothing_left(made)
    made.threads.close()


class Site:
    def __init__(self, a: Process, b: Process, connect: Connect) -> None:
        self.a, self.b = a, b
        self.connect = connect
        self.client: Client

    def visit(self, at: Process, last: str | None = None) -> Visit:
        current_process._current = at
        return self.client.visit("GET", headers={"last-event-id": last})

    async def standing(self, at: Process, last: str | None = None) -> Visit:
        visit = await self.visit(at, last).opened()
        assert visit.status == 200
        return visit

    async def pass_by(self, at: Process, last: str | None = None) -> Visit:
        """Open a standing stream that is told nothing, and leave it."""
        visit = await self.standing(at, last)
        await left(visit)
        return visit

    async def notify(self, what: str) -> None:
        await writer.run(notify, what)
        await settled(self.a, self.b)

    async def watch(self, uri: str, at: Process | None = None) -> None:
        current_process._current = at or self.a
        params = {"uri": uri}
        subscribed = await self.client.request("resources/subscribe", params)
        assert subscribed.result == {}


@pytest.fixture
async def site(process: Process, elsewhere: Process, connect: Connect) -> Site:
    """Both have begun to serve, and a client has a session."""
    for each in (elsewhere, process):
        await each.gate.wait_for_check()
        await each.announced_number()
    made = Site(process, elsewhere, connect)
    made.client = await connect(PRIMED)
    return made


async def told(visit: Visit, count: int = 1) -> list[str]:
    messages = [await visit.message() for _ in range(count)]
    found = [each for each in messages if each is not None]
    return [each.get("params", {}).get("uri", each["method"]) for each in found]


async def settled(*processes: Process) -> None:
    for each in processes:
        await each.gate.wait_for_check()
        async with asyncio.timeout(60):
            while each.announcements._pending or each.announcements._tasks:
                await asyncio.sleep(0.005)
        await each.gate.wait_for_check()


async def left(*visits: Visit) -> None:
    for each in visits:
        await each.quiet()
        await each.leave()


def number(event_id: str) -> int:
    return int(event_id.split(".")[2])


# -- what was missed ------------------------------------------------------------------


async def test_what_was_missed_is_told_at_another_process_once(site: Site) -> None:
    await site.watch(URI)
    first = await site.standing(site.a)
    await writer.run(notify, "tools")
    assert await told(first) == [TOOLS]
    await first.leave()
    await writer.run(notify, "prompts")
    await writer.run(changed, URI)
    await writer.run(changed, OTHER)
    await settled(site.a, site.b)
    second = await site.standing(site.b, first.ids[-1])
    assert sorted(await told(second, 2)) == sorted([PROMPTS, URI])
    await settled(site.b)
    await second.quiet()
    third = await site.standing(site.a, second.ids[-1])
    await settled(site.a)
    await left(second, third)


async def test_ids(site: Site) -> None:
    """S-HTTP-048: none comes twice; S-HTTP-053: they are in the stream's order."""
    stream = await site.standing(site.a)
    await writer.run(notify, "tools")
    await told(stream)
    await site.a.announcements.announce_to_streams(announced_everything())
    await told(stream, 3)
    again = await site.standing(site.a, stream.ids[0])
    await told(again)
    public_ids = {each.split(".")[0] for each in (*stream.ids, *again.ids)}
    assert len(public_ids) == 2
    assert len({*stream.ids, *again.ids}) == len(stream.ids) + len(again.ids) == 7
    numbers = [number(each) for each in stream.ids]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[1]
    # The stream is primed with what its client had seen, not with what follows.
    assert [number(each) for each in again.ids] == numbers[:2]
    await left(stream, again)


def announced_everything() -> Any:
    return Announcement(
        {}, everything=True, shows=lambda *_: False, personal=lambda _: ()
    )


async def test_a_stream_that_is_cut_between_two_announcements(site: Site) -> None:
    """What comes together is complete with the last of it only."""
    await site.watch(URI)
    stream = await site.standing(site.a)
    await stream.leave()
    for what in ("tools", "prompts"):
        await writer.run(notify, what)
    await writer.run(changed, URI)
    await settled(site.a, site.b)
    expected = sorted([TOOLS, PROMPTS, URI])
    last = stream.ids[-1]
    for at in (site.a, site.b):
        stream = await site.standing(at, last)
        assert sorted(await told(stream, 3)) == expected
        await left(stream)
        # The ids of what came before the last bring all of it again.
        assert [number(each) for each in stream.ids[:-1]] == [number(last)] * 3
        assert number(stream.ids[-1]) > number(last)
        last = stream.ids[-2]
    stream = await site.pass_by(site.b, stream.ids[-1])


async def test_a_stream_without_an_id_gets_what_its_client_lacks(site: Site) -> None:
    await site.notify("tools")
    for at in (site.a, site.b):
        stream = await site.standing(at)
        assert await told(stream) == [TOOLS]
        await left(stream)
    # With an id it has received that.
    stream = await site.pass_by(site.a, stream.ids[-1])
    stream = await site.pass_by(site.b)
    # A session that began later is not told.
    site.client = await site.connect(PRIMED)
    for at in (site.a, site.b):
        await site.pass_by(at)


async def test_a_revision_without_ids(site: Site) -> None:
    """What was written to the stream is not told again: nobody could say otherwise."""
    site.client = await site.connect("2024-11-05")
    await site.notify("tools")
    stream = await site.standing(site.b)
    assert await told(stream) == [TOOLS]
    await left(stream)
    assert stream.ids == []
    stream = await site.pass_by(site.a)
    refused = site.visit(site.a, "1")
    await refused.body()
    assert refused.status == 400


@pytest.mark.parametrize("version", [each for each in STATEFUL if each > "2025"])
async def test_who_is_primed(site: Site, version: str) -> None:
    site.client = await site.connect(version)
    stream = await site.standing(site.a)
    assert len(stream.ids) == (version == PRIMED)
    await writer.run(notify, "tools")
    assert await told(stream) == [TOOLS]
    assert len(stream.ids) == 1 + (version == PRIMED)
    await left(stream)


async def test_everything_is_told_where_less_was_kept(site: Site) -> None:
    await site.watch(URI)
    stream = await site.pass_by(site.a)
    await site.notify("tools")
    await writer.run(_forget)
    for at in (site.a, site.b):
        again = await site.standing(at, stream.ids[-1])
        assert sorted(await told(again, 4)) == sorted([*EVERYTHING, URI])
        await left(again)


def _forget() -> None:
    Topic.objects.update(changed_ms=1)
    compaction.prune_topics()


async def test_everything_is_told_where_the_counter_was_emptied(site: Site) -> None:
    await site.notify("tools")
    await writer.run(Session.objects.update, seen=10**9)
    await settled(site.a, site.b)
    stream = await site.standing(site.b)
    assert sorted(await told(stream, 3)) == sorted(EVERYTHING)
    await writer.run(notify, "tools")
    assert await told(stream) == [TOOLS]
    await left(stream)


async def test_a_model_whose_instances_are_watched(site: Site) -> None:
    binding = Binding(URI, Session, None)
    for each in (site.a, site.b):
        each.announcements._bindings = {URI: binding}
    await site.watch(URI)
    await site.watch(OTHER)
    stream = await site.standing(site.a)
    await stream.leave()
    await writer.run(changed_model, Session)
    await settled(site.a, site.b)
    stream = await site.standing(site.b, stream.ids[-1])
    assert await told(stream) == [URI]
    await left(stream)


# -- while others announce ------------------------------------------------------------


async def test_what_was_told_at_one_process_is_not_told_at_the_next(site: Site) -> None:
    first = await site.standing(site.a)
    await writer.run(notify, "tools")
    assert await told(first) == [TOOLS]
    # The change still waits at the next process, unless this one was slow.
    second = await site.standing(site.b, first.ids[-1])
    await settled(site.b)
    await left(first, second)


def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "FRESHNESS", 2.0)


async def test_what_waits_is_told_when_it_is_due_and_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lists on it may be answered by a process that has not seen it."""
    first = await site.standing(site.a)
    await left(first)
    await settled(site.b)
    slowly(monkeypatch)
    await writer.run(notify, "tools")
    await site.b.gate.wait_for_check()
    (batch,) = site.b.announcements._pending
    loop = asyncio.get_running_loop()
    assert batch.due > loop.time()
    second = await site.standing(site.b, first.ids[-1])
    await second.quiet()
    assert await told(second) == [TOOLS]
    assert loop.time() >= batch.due
    await settled(site.b)
    assert number(second.ids[-1]) > number(first.ids[-1])
    await left(second)


async def test_a_session_that_is_opened_while_something_waits(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client may be shown an old list, and is told whenever it comes."""
    slowly(monkeypatch)
    await writer.run(notify, "tools")
    await site.a.gate.wait_for_check()
    await writer.run(compaction.compact)
    await site.a.gate.wait_for_check()
    assert site.a.announcements._pending
    site.client = await site.connect(PRIMED)
    await settled(site.a, site.b)
    stream = await site.standing(site.b)
    assert await told(stream) == [TOOLS]
    await left(stream)


async def test_a_listen_stream_that_is_opened_while_something_waits(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch)
    await writer.run(notify, "tools")
    await site.a.gate.wait_for_check()
    (batch,) = site.a.announcements._pending
    current_process._current = site.a
    client = await site.connect(STATELESS)
    wanted = {"notifications": {"toolsListChanged": True}}
    stream = client.begin("subscriptions/listen", wanted)
    await told(stream)
    await stream.quiet()
    assert await told(stream) == [TOOLS]
    assert asyncio.get_running_loop().time() >= batch.due
    await settled(site.a)
    await left(stream)


async def test_what_has_no_number_yet_is_told_all_the_same(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(announcing, "compact", lambda: None)
        stream = await site.standing(site.a)
        await stream.leave()
        await writer.run(notify, "tools")
        await settled(site.a, site.b)
        for at in (site.a, site.b):
            stream = await site.standing(at, stream.ids[-1])
            assert await told(stream) == [TOOLS]
            await left(stream)
    # It was folded since, which the process has not seen.
    await writer.run(compaction.compact)
    stream = await site.standing(site.b, stream.ids[-1])
    assert await told(stream) == [TOOLS]
    await left(stream)
    await settled(site.b)
    stream = await site.pass_by(site.b, stream.ids[-1])


@pytest.mark.parametrize("announced", [True, False])
async def test_a_change_while_the_stream_is_opened(
    site: Site, monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    stream = await site.pass_by(site.a)
    monkeypatch.setattr(stream_opening, "missed_since", _then(notify, "tools"))
    opened = site.b.sessions.stream_opened

    async def late(*arguments: Any) -> int:
        if announced:
            await settled(site.b)
        return await opened(*arguments)

    monkeypatch.setattr(site.b.sessions, "stream_opened", late)
    second = await site.standing(site.b, stream.ids[-1])
    assert await told(second) == [TOOLS]
    await settled(site.b)
    await left(second)


def _then(
    function: Callable[..., object], *arguments: Any
) -> Callable[[int], MissedTopics]:
    def read(seen: int) -> MissedTopics:
        missed = missed_since(seen)
        function(*arguments)
        return missed

    return read


async def test_a_process_begins(site: Site, process: Process) -> None:
    stream = await site.pass_by(site.a)
    await writer.run(notify, "tools")
    await settled(site.a)
    begins = runtime.Process(process.registry)
    stream = await site.standing(begins, stream.ids[-1])
    assert await told(stream) == [TOOLS]
    await settled(begins)
    await left(stream)
    begins.threads.close()


# -- several streams ------------------------------------------------------------------


async def test_only_the_newest_stream_of_all_processes_is_told(site: Site) -> None:
    older = await site.standing(site.a)
    newer = await site.standing(site.b, older.ids[-1])
    await settled(site.a, site.b)
    await writer.run(notify, "tools")
    assert await told(newer) == [TOOLS]
    await settled(site.a, site.b)
    await older.quiet()
    before = older.comments
    for each in site.a.listeners:
        each.beat()
    await older.comment()
    assert older.comments > before
    newest = await site.standing(site.a, newer.ids[-1])
    await settled(site.a, site.b)
    await writer.run(notify, "prompts")
    assert await told(newest) == [PROMPTS]
    await settled(site.a, site.b)
    await left(older, newer, newest)


async def test_a_stream_that_is_the_newest_no_more_when_it_is_open(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = await site.pass_by(site.a)
    await site.notify("tools")
    opened, newer = site.b.sessions.stream_opened, asyncio.Event()

    async def overtaken(session: Any, *arguments: Any) -> int:
        found = await opened(session, *arguments)
        session.newest += 1
        newer.set()
        return found

    monkeypatch.setattr(site.b.sessions, "stream_opened", overtaken)
    again = await site.standing(site.b, stream.ids[-1])
    assert newer.is_set()
    await left(again)
    assert [number(each) for each in again.ids] == [number(stream.ids[-1])]


async def test_the_place_of_the_newest_is_taken_by_another_one_here(site: Site) -> None:
    streams = [await site.standing(site.a) for _ in range(3)]
    await writer.run(notify, "tools")
    assert await told(streams[2]) == [TOOLS]
    await left(streams.pop())
    await writer.run(notify, "prompts")
    assert await told(streams[1]) == [PROMPTS]
    await settled(site.a)
    await left(streams.pop(0))
    await writer.run(notify, "tools")
    assert await told(streams[0]) == [TOOLS]
    await left(*streams)


# -- refused --------------------------------------------------------------------------


async def test_wrong_ids_have_one_answer(site: Site) -> None:
    """S-HTTP-051: nothing of another session is told, and no session is lost."""
    stream = await site.standing(site.a)
    await stream.leave()
    public_id, seq, seen = stream.ids[0].split(".")
    session = site.client
    site.client = await site.connect(PRIMED)
    foreign = await site.standing(site.b)
    await foreign.leave()
    counter = await reader.run(Counter.objects.get)
    site.client = session
    bodies = set()
    for wrong in (
        "",
        "1",
        foreign.ids[0],
        f"{new_public_id('0' * 64)}.{seq}.{seen}",
        f"{public_id}.{seq}.{counter.value + 1_000}",
        f"{public_id}.1.{seen}",
        f"{public_id}.{seq}.{seen}_0",
    ):
        refused = site.visit(site.b, wrong)
        bodies.add(await refused.body())
        assert (wrong, refused.status) == (wrong, 400)
    assert len(bodies) == 1
    assert (await session.request("ping")).result == {}
    assert len(site.b.listeners) == 0
    last = await site.standing(site.b, stream.ids[0])
    await left(last)


async def test_a_session_that_is_closed_while_its_stream_is_opened(site: Site) -> None:
    stream = await site.pass_by(site.a)
    await writer.run(Session.objects.all().delete)
    refused = site.visit(site.a, stream.ids[-1])
    await refused.body()
    assert refused.status == 404
    assert len(site.a.listeners) == 0


@pytest.mark.parametrize("ending", ["delete", "drain"])
async def test_a_stream_that_ends_before_it_is_open(
    site: Site, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    opened = site.a.sessions.stream_opened

    async def late(session: Any, *arguments: Any) -> int:
        found = await opened(session, *arguments)
        for each in site.a.listeners:
            each.beat()
        if ending == "delete":
            site.a._session_closed(session)
        else:
            for each in site.a.listeners:
                each.end(retry_ms=2_000)
        return found

    monkeypatch.setattr(site.a.sessions, "stream_opened", late)
    stream = await site.standing(site.a)
    assert await stream.messages() == []
    assert (b"retry: 2000\n" in stream.raw) is (ending == "drain")
    assert stream.comments == 0


async def test_an_outage_at_opening(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(seen: int) -> MissedTopics:
        raise OperationalError("gone")

    monkeypatch.setattr(stream_opening, "missed_since", gone)
    refused = site.visit(site.a)
    await refused.body()
    assert refused.status == 503
    assert len(site.a.listeners) == 0


# -- what listen streams watch --------------------------------------------------------


def _watched() -> list[str]:
    return sorted(Subscription.objects.values_list("uri", flat=True))


async def watched_until(expected: list[str]) -> None:
    async with asyncio.timeout(60):
        while await reader.run(_watched) != expected:
            await asyncio.sleep(0.005)


async def listening(client: Client, *uris: str) -> Visit:
    wanted = {"notifications": {"resourceSubscriptions": list(uris)}}
    stream = client.begin("subscriptions/listen", wanted)
    assert await told(stream) == ["notifications/subscriptions/acknowledged"]
    return stream


async def test_a_listen_stream_says_it(process: Process, connect: Connect) -> None:
    client = await connect(STATELESS)
    first = await listening(client, URI, OTHER)
    assert await reader.run(_watched) == sorted([URI, OTHER])
    second = await listening(client, URI)
    third = await listening(client)
    await left(first)
    await watched_until([URI])
    await left(second, third)
    await watched_until([])


async def test_a_listen_stream_is_told_after_its_acknowledgement(
    process: Process, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(STATELESS)
    resources = process._row.resources
    begin = resources.begin

    def begun(uris: Any) -> None:
        begin(uris)
        for each in process.listeners:
            each.beat()
            each.tell([URI], 1)

    monkeypatch.setattr(resources, "begin", begun)
    stream = await listening(client, URI)
    assert stream.comments == 0
    assert await told(stream) == [URI]
    await left(stream)


async def test_a_listen_stream_that_cannot_say_what_it_watches(
    process: Process, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(uris: Any) -> None:
        raise OperationalError("gone")

    client = await connect(STATELESS)
    monkeypatch.setattr(process._row, "watch", gone)
    wanted = {"notifications": {"resourceSubscriptions": [URI]}}
    refused = await client.request("subscriptions/listen", wanted)
    assert refused.status == 503
    assert len(process.listeners) == 0
    await watched_until([])
