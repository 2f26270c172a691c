"""events/list and events/poll as clients of both eras meet them (SEP-3415)."""

from __future__ import annotations

from datetime import datetime
from json import loads
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils.functional import lazystr
from pydantic import BaseModel, ConfigDict, Field

from mcp_app.catalog.event_types import declared_event
from mcp_app.models import Occurrence, Server
from mcp_app.process.runtime import Process
from mcp_app.protocol.events import EXTENSION, Occurred
from mcp_app.protocol.revisions import REVISIONS
from tests.events.conftest import (
    EventClient,
    Hear,
    OrderPaid,
    StockLow,
    capabilities_of,
    emit,
    registry,
)

SECRETS = {"x-permissions": "shop.see_secrets"}


# -- the list ----------------------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
async def test_who_reads_either_dialect_sees_that_there_are_events(
    hear: Hear, version: str
) -> None:
    client = (await hear(version)).client
    stateless = client.revision.stateless
    told = await capabilities_of(client)
    assert told["events"] == {}
    if stateless:
        assert told["extensions"] == {EXTENSION: {"listChanged": True}}
    pages = [(await client.request("events/list")).result]
    while "nextCursor" in pages[-1]:
        params = {"cursor": pages[-1]["nextCursor"]}
        pages.append((await client.request("events/list", params)).result)
    listed = {each["name"]: each for page in pages for each in page["events"]}
    assert [*listed] == ["order.paid", "stock.low", "ticket.opened"]
    paid = listed["order.paid"]
    assert paid["description"] == "An order was paid."
    assert ("push" in paid["delivery"]) is stateless
    assert paid["delivery"][0] == "poll"
    assert paid["payloadSchema"]["required"] == ["number"]
    assert [*paid["inputSchema"]["properties"]] == ["shop", "number"]
    assert listed["stock.low"]["inputSchema"]["properties"].keys() == {"at_most"}
    # More is listed for who may see more, and only for them.
    entitled = await hear(version, **SECRETS)
    answer = (await entitled.client.request("events/list")).result
    assert "order.secret" in {each["name"] for each in answer["events"]}


# -- what is told ------------------------------------------------------------------


async def test_a_client_is_told_what_happened_since_its_cursor(
    ana: EventClient,
) -> None:
    await emit(OrderPaid("1"))
    first = await ana.poll()
    assert (first["events"], first["truncated"], first["hasMore"]) == ([], False, False)
    assert first["nextPollMs"] == 5_000
    identifier = await emit(OrderPaid("2", total=3.5))
    second = await ana.told(cursor=first["cursor"])
    (event,) = second["events"]
    assert event["eventId"] == identifier
    assert event["data"] == {"number": "2", "shop": "ulm", "total": 3.5}
    assert second["nextPollMs"] == 2_000
    assert (await ana.poll(cursor=second["cursor"]))["events"] == []
    # The same cursor tells the same again.
    assert (await ana.poll(cursor=first["cursor"]))["events"] == [event]


async def test_what_was_rolled_back_is_never_told(ana: EventClient) -> None:
    cursor = (await ana.poll())["cursor"]

    def work() -> None:
        with transaction.atomic():
            registry.emit(OrderPaid("kept"), id="source-1")
            try:
                with transaction.atomic():
                    registry.emit(OrderPaid("of a savepoint"))
                    raise ValueError
            except ValueError:
                registry.emit(OrderPaid("after it"))
        try:
            with transaction.atomic():
                registry.emit(OrderPaid("gone"))
                raise ValueError
        except ValueError:
            registry.emit(OrderPaid(lazystr("last")))  # type: ignore[arg-type]

    await sync_to_async(work)()
    answer = await ana.told(cursor=cursor)
    numbers = [each["data"]["number"] for each in answer["events"]]
    assert numbers == ["kept", "after it", "last"]
    assert answer["events"][0]["eventId"] == "source-1"


async def test_much_is_told_in_parts(ana: EventClient) -> None:
    cursor = (await ana.poll())["cursor"]

    def work() -> None:
        with transaction.atomic():
            for number in range(270):
                registry.emit(OrderPaid(str(number)))

    await sync_to_async(work)()
    answer = await ana.told(cursor=cursor)
    parts = [answer]
    while parts[-1]["hasMore"]:
        parts.append(await ana.poll(cursor=parts[-1]["cursor"], maxEvents=1_000))
    assert [len(each["events"]) for each in parts] == [50, 200, 20]
    told = [one["data"]["number"] for each in parts for one in each["events"]]
    assert told == [str(number) for number in range(270)]


async def test_a_client_chooses_by_fields_and_by_a_function(ana: EventClient) -> None:
    cursor = (await ana.poll())["cursor"]
    for number, shop in (("1", "ulm"), ("2", "bern"), ("3", "graz")):
        await emit(OrderPaid(number, shop))
    for product, left in (("pen", 3), ("broken", 0), ("ink", 7)):
        await emit(StockLow(product=product, left=left))

    async def told(name: str, **arguments: Any) -> list[str]:
        start = cursor if name == "order.paid" else stock
        answer = await ana.told(name, start, arguments=arguments)
        member = "number" if name == "order.paid" else "product"
        return [each["data"][member] for each in answer["events"]]

    stock = await _cursor_before(ana, "stock.low")
    assert await told("order.paid") == ["1", "2", "3"]
    assert await told("order.paid", shop="bern") == ["2"]
    assert await told("order.paid", shop=["ulm", "graz"], number="3") == ["3"]
    # An event on which the function fails is told to nobody, and holds nobody up.
    assert await told("stock.low") == ["pen"]
    assert await told("stock.low", at_most=7) == ["pen", "ink"]


async def _cursor_before(client: EventClient, name: str) -> str:
    """Return a cursor of a type from before anything happened."""
    from mcp_app.process.current import _current  # noqa: PLC0415
    from mcp_app.protocol.cursors import Cursor, seal_cursor  # noqa: PLC0415

    assert _current is not None
    keys = _current.adapters.cursor_keys
    return seal_cursor(Cursor("private", "events", 0, name), keys[0])


async def test_only_those_are_told_whom_it_is_for(hear: Hear) -> None:
    ana, ben = await hear(), await hear(user="ben")
    start = (await ana.poll())["cursor"]
    await emit(OrderPaid("for ben"), to=["ben"])
    await emit(OrderPaid("for nobody"), to=[])
    await emit(OrderPaid("for all"))
    told = {
        name: [
            each["data"]["number"] for each in (await one.told(cursor=start))["events"]
        ]
        for name, one in (("ana", ana), ("ben", ben))
    }
    assert told == {"ana": ["for all"], "ben": ["for ben", "for all"]}


async def test_nobody_is_told_of_what_their_own_calls_did(
    hear: Hear, play: Any
) -> None:
    ana, ben = await hear(), await hear(user="ben")
    start = (await ana.poll())["cursor"]
    tickets = (await ana.poll("ticket.opened"))["cursor"]

    def work(ctx: Any) -> str:
        registry.emit(OrderPaid("by a call"))
        registry.emit({"subject": "by a call"}, name="ticket.opened")
        return ""

    for tool in ("sync", "atomic_sync"):
        await play(tool, work, client=ana.client)
    # The second one may get its number after the first one was read.
    first = await ben.told(cursor=start)
    if len(first["events"]) < 2:
        await ben.told(cursor=first["cursor"])
    assert (await ana.poll(cursor=start))["events"] == []
    # Unless its type says so.
    assert len((await ana.told("ticket.opened", tickets))["events"]) == 2


# -- cursors -----------------------------------------------------------------------


async def test_a_cursor_that_cannot_be_used_begins_now(ana: EventClient) -> None:
    from mcp_app.process.current import _current  # noqa: PLC0415
    from mcp_app.protocol.cursors import Cursor, seal_cursor  # noqa: PLC0415

    assert _current is not None
    key = _current.adapters.cursor_keys[0]
    await emit(OrderPaid("1"))
    newest = (await ana.poll())["cursor"]
    tools = seal_cursor(Cursor("private", "tools", 0, "x"), key)
    for foreign in (
        *("", "nonsense", newest[:-2], tools),
        (await ana.poll("ticket.opened"))["cursor"],
        seal_cursor(Cursor("other", "events", 0, "order.paid"), key),
        seal_cursor(Cursor("private", "events", 0, "order.paid"), b"k" * 32),
        seal_cursor(Cursor("private", "events", 10**12, "order.paid"), key),
    ):
        answer = await ana.poll(cursor=foreign)
        assert (answer["events"], answer["truncated"]) == ([], True)
        assert answer["cursor"] == newest


async def test_what_was_forgotten_is_told_as_a_gap(ana: EventClient) -> None:
    start = (await ana.poll())["cursor"]
    for number in range(3):
        await emit(OrderPaid(str(number)))
    assert len((await ana.told(cursor=start))["events"]) == 3
    old = Occurrence.objects.exclude(data__contains='"2"')
    assert await sync_to_async(old.forget)() == 2
    # What the process has read before, it need not read again.
    assert not (await ana.poll(cursor=start))["truncated"]
    identifier = await emit(OrderPaid("3"))
    answer = await ana.told(cursor=start)
    while answer["events"][-1]["eventId"] != identifier:
        answer = await ana.poll(cursor=start)
    assert answer["truncated"]
    assert [each["data"]["number"] for each in answer["events"]] == ["2", "3"]
    assert not (await ana.poll(cursor=answer["cursor"]))["truncated"]


async def test_old_events_are_left_out_if_the_client_wants_that(
    ana: EventClient,
) -> None:
    start = (await ana.poll())["cursor"]
    for number in range(3):
        await emit(OrderPaid(str(number)))
    await ana.told(cursor=start)
    oldest = Occurrence.objects.filter(data__contains='"0"')
    await sync_to_async(oldest.update)(created_ms=0)
    # More than a database can reckon with.
    assert not (await ana.poll(cursor=start, maxAgeMs=10**30))["truncated"]
    answer = await ana.poll(cursor=start, maxAgeMs=60_000)
    assert answer["truncated"]
    assert [each["data"]["number"] for each in answer["events"]] == ["1", "2"]
    assert not (await ana.poll(cursor=answer["cursor"], maxAgeMs=0))["truncated"]


async def test_what_was_forgotten_whole_is_a_gap_to_a_process_that_begins(
    ana: EventClient, process: Process
) -> None:
    start = (await ana.poll())["cursor"]
    await emit(OrderPaid("0"))
    end = (await ana.told(cursor=start))["cursor"]
    assert await sync_to_async(Occurrence.objects.all().forget)() == 1
    process.events._last.clear()
    process.events.mark_stale()
    assert (await ana.poll(cursor=start))["truncated"]
    assert not (await ana.poll(cursor=end))["truncated"]


# -- refusals ----------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_hidden_and_unknown_types_have_one_answer(
    hear: Hear, version: str
) -> None:
    ana = await hear(version)
    answers = [
        await ana.client.request("events/poll", {"name": name}, id=7)
        for name in ("order.secret", "order.absent")
    ]
    hidden, unknown = (each.raw.decode() for each in answers)
    assert hidden.replace("order.secret", "order.absent") == unknown
    code = -32023 if version == "2026-07-28" else -32011
    error = answers[0].error
    assert (error["code"], error["data"]) == (code, {"kind": "event"})
    assert (await (await hear(version, **SECRETS)).poll("order.secret"))["events"] == []


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"name": 7}, "params.name must be a string"),
        ({"name": "order.paid", "arguments": []}, "params.arguments must be an object"),
        ({"name": "order.paid", "arguments": {"shop": 1}}, "$.shop"),
        ({"name": "order.paid", "arguments": {"town": "ulm"}}, "town"),
        ({"name": "order.paid", "cursor": 7}, "params.cursor must be a string"),
        ({"name": "order.paid", "maxEvents": 0}, "params.maxEvents"),
        ({"name": "order.paid", "maxEvents": True}, "params.maxEvents"),
        ({"name": "order.paid", "maxAgeMs": -1}, "params.maxAgeMs"),
    ],
)
async def test_bad_params_are_told_by_name(
    ana: EventClient, params: Any, sentence: str
) -> None:
    error = await ana.refused(**params)
    assert error["code"] == -32602
    assert sentence in error["message"]


# -- cost --------------------------------------------------------------------------


async def test_an_idle_poll_asks_no_statement(
    ana: EventClient, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp_app.pools.database import reader, writer  # noqa: PLC0415

    await emit(OrderPaid("1"))
    await ana.told(cursor=await _cursor_before(ana, "order.paid"))
    cursor = (await ana.poll())["cursor"]
    work = []

    def note_work(pool: Any) -> None:
        run = pool.run

        async def noting(function: Any, *arguments: Any) -> Any:
            if function.__module__.endswith("occurrences"):
                work.append(function)
            return await run(function, *arguments)

        monkeypatch.setattr(pool, "run", noting)

    note_work(reader)
    note_work(writer)
    for _ in range(20):
        assert (await ana.poll(cursor=cursor))["events"] == []
    assert work == []
    await emit(OrderPaid("2"))
    await ana.told(cursor=cursor)
    assert work != []


async def test_the_outbox_refuses_what_cannot_be_told(shop_events: None) -> None:
    with pytest.raises(ValueError, match=r"no event 'order\.absent'"):
        registry.emit(OrderPaid("1"), name="order.absent")
    with pytest.raises(ValueError, match="Say which event"):
        registry.emit({"subject": "no name"})
    with pytest.raises(ValueError, match=r"no event 'order\.paid'"):
        registry.emit(OrderPaid(number=True))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"65,6\d\d bytes"):
        registry.emit(OrderPaid("x" * 65_600))
    with pytest.raises(ValueError, match="1,001 users"):
        registry.emit(OrderPaid("1"), to=range(1_001))
    for total in (None, 10**400):
        with pytest.raises(ValueError, match=r"no event 'order\.paid'"):
            registry.emit(OrderPaid("1", total=total))  # type: ignore[arg-type]
    other = await Server.objects.afirst()
    for to in ("12", [other]):
        with pytest.raises(ValueError, match=r"to (is|names)"):
            await emit(OrderPaid("1"), to=to)
    # A header of webhooks has it.
    for identifier in ("a\nb", "x" * 256, "Auftrag-é", "a "):
        with pytest.raises(ValueError, match="The id of the event"):
            registry.emit(OrderPaid("1"), id=identifier)


class Strict(BaseModel):
    """Something of which the time is important."""

    model_config = ConfigDict(strict=True)
    at: datetime


class Renamed(BaseModel):
    """Something that no match can read again."""

    number: str = Field(serialization_alias="orderNumber")


def test_a_match_reads_what_was_told_as_json() -> None:
    options: Any = {"match": lambda event, _request: event.at.year == 2026}
    declared = declared_event(Strict, "clock.struck", options)
    rows = [
        Occurred(number=1, event_id="1", created_ms=0, data=loads(declared.dump(each)))
        for each in (Strict(at=datetime(year, 1, 1)) for year in (2025, 2026))
    ]
    chooser = declared.run.run.__self__  # type: ignore[attr-defined]
    request: Any = None
    assert [chooser._is_match(each, request) for each in rows] == [False, True]
    with pytest.raises(ValueError, match="Field required"):
        declared_event(Renamed, "order.renamed", options).dump(Renamed(number="1"))
    assert b"orderNumber" in declared_event(Renamed, "order.renamed", {}).dump(
        Renamed(number="1")
    )
