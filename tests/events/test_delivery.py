"""Deliveries of one process: to a real receiver, one claim after the other."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.utils import timezone

from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import Limits
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.models import AccessToken, Call, Counter, EventSubscription, Occurrence
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol import cursors
from mcp_app.protocol.webhooks import NewWebhook
from mcp_app.streams.event_deliveries import (
    PAUSES_MS,
    Pace,
    Retry,
    claim_subscriptions,
    watermark,
)
from mcp_app.streams.event_subscriptions import store_webhook
from mcp_app.streams.occurrences import Portion, load_occurrences
from tests.asgi_client import JsonObject
from tests.egress.certificates import write_certificate
from tests.egress.peer import LOOPBACK
from tests.events.conftest import HEARS_EVENTS, OrderPaid, emit, stopped_type
from tests.events.receiver import Answer, Receiver, serve
from tests.serving import PATIENCE_S, RATES, until
from tests.statements import READING, counted

pytestmark = pytest.mark.usefixtures("shop_events")

SECRET: Final = f"whsec_{'QUJD' * 11}"


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    folder = tmp_path_factory.mktemp("receiver")
    write_certificate(folder, "localhost")
    made = Receiver(folder)
    server = serve("127.0.0.1", 0, made)
    made.url = f"https://localhost:{server.server_port}/"
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def mcp(receiver: Receiver) -> dict[str, Any]:
    receiver.posts.clear()
    receiver.way = None
    options = {"receivers": [receiver.url], "networks": LOOPBACK}
    certificate = str(receiver.folder / "certificate.pem")
    return {"EVENTS": {**options, "ca": certificate}, "LIMITS": {**RATES}}


async def deliver(process: Process) -> None:
    """Let it deliver until nothing is left to do now."""
    own = process.event_delivery
    process.gate.mark_stale()
    own.is_looking = True
    own.wake()
    await until(lambda: not len(own) and not own._is_claiming)
    own.is_looking = False


async def due_now() -> None:
    """Let what failed be due."""
    row = await EventSubscription.objects.aget()
    retries = json.dumps([[*each[:2], 0] for each in json.loads(row.retries)])
    await EventSubscription.objects.aupdate(retries=retries, due_ms=0)


class Deliveries:
    """What the process delivers to one subscription of ana."""

    def __init__(self, process: Process, receiver: Receiver) -> None:
        self.process, self.receiver = process, receiver

    async def subscribe(
        self, name: str = "order.paid", sep: bool = True, **columns: Any
    ) -> None:
        principal: JsonObject = {
            "kind": "user", "user_id": "ana", "user_name": "ana", "client": "",
            "scopes": [], "permissions": [], "scope": None,
        }  # fmt: skip
        caller = {
            "principal": {**principal, **columns.pop("principal", {})},
            "client": {"name": "test", "version": "1"},
            "capabilities": HEARS_EVENTS if sep else {},
            "headers": {"Host": "testserver"},
            "path": "/mcp/private",
            "revision": "2026-07-28",
            "dialect": "sep" if sep else "sketch",
        }
        await self.process.gate.wait_until_fresh(self.process.loop.time())
        state = await self.process.events.current_state(name)
        new = NewWebhook(
            public_id=columns.pop("public_id", "sub_1"),
            server="private",
            event_type=name,
            topic=name,
            principal="user\x1fana\x1f",
            person=columns.pop("person", "uana"),
            caller=json.dumps(caller),
            arguments=json.dumps(columns.pop("arguments", {})),
            url=f"{self.receiver.url}hook",
            host="localhost",
            secret=SECRET,
            position=state.newest,
            ttl_ms=3_600_000,
        )
        await sync_to_async(store_webhook)(new, None, Limits())
        await self.change(**columns)

    async def change(self, **columns: Any) -> None:
        if columns:
            await EventSubscription.objects.aupdate(**columns)

    async def row(self) -> EventSubscription:
        return await EventSubscription.objects.aget()

    async def deliver(self) -> None:
        await deliver(self.process)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(each["body"]) for each in self.receiver.posts]

    @property
    def numbers(self) -> list[str]:
        return [each["data"]["number"] for each in self.bodies if "data" in each]

    def position_of(self, body: dict[str, Any]) -> int:
        keys = self.process.adapters.cursor_keys
        found = cursors.open_cursor(
            body["cursor"], keys, server="private", listing="events"
        )
        return int(found.position)


@pytest.fixture
def own(process: Process, receiver: Receiver) -> Iterator[Deliveries]:
    yield Deliveries(process, receiver)
    EventSubscription.objects.all().delete()


async def test_events_come_in_order_each_once(own: Deliveries) -> None:
    await own.subscribe()
    for number in range(12):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    await own.deliver()
    assert own.numbers == [str(number) for number in range(12)]


async def test_what_happens_during_a_claim_is_claimed_at_once(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery, claims = process.event_delivery, list[int]()

    async def claim() -> bool:
        claims.append(len(claims))
        await asyncio.sleep(0)
        if len(claims) == 1:
            delivery.wake()
        return False

    monkeypatch.setattr(delivery, "_claim", claim)
    delivery.is_looking = True
    delivery.wake()
    await until(lambda: not delivery._is_claiming)
    assert claims == [0, 1]


async def test_what_failed_comes_again_and_holds_nothing_up(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe()
    receiver.way = lambda post: Answer(500 if post["data"]["number"] == "0" else 200)
    for number in range(3):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    row = await own.row()
    assert own.numbers == ["0", "1", "2"]
    ((number, attempts, due_ms),) = json.loads(row.retries)
    assert (attempts, row.last_error, row.failed_since_ms) == (1, "", None)
    assert row.due_ms == due_ms
    # The cursor stays before what may come again, but for who reads it.
    assert [own.position_of(each) for each in own.bodies] == [number, *[number - 1] * 2]
    ids = {each["headers"]["webhook-id"] for each in receiver.posts}
    assert len(ids) == 3
    receiver.way = None
    await due_now()
    await own.deliver()
    assert own.numbers == ["0", "1", "2", "0"]
    assert own.position_of(own.bodies[-1]) == row.position
    assert {each["headers"]["webhook-id"] for each in receiver.posts} == ids
    row = await own.row()
    assert (row.retries, row.sent, row.last_error) == ("[]", 3, "")


async def test_the_fifth_failure_gives_an_event_up(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe()
    receiver.way = lambda _post: Answer(503)
    await emit(OrderPaid("1"))
    pauses = []
    for _attempt in range(5):
        await own.deliver()
        row = await own.row()
        for _number, _attempts, due_ms in json.loads(row.retries):
            pauses.append((due_ms - row.lease_ms + 2_500) // 5_000 * 5_000)
        await due_now()
    assert pauses == [*PAUSES_MS[:1], *PAUSES_MS[1:]]
    assert len(own.numbers) == 5
    assert (row.retries, json.loads(row.given_up)) == ("[]", [row.position])


@pytest.mark.parametrize("status", [410, 413])
async def test_an_event_that_is_refused_for_good_comes_once(
    own: Deliveries, receiver: Receiver, status: int
) -> None:
    await own.subscribe()
    receiver.way = lambda post: Answer(status if post["data"]["number"] == "0" else 200)
    for number in range(2):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    row = await own.row()
    assert own.numbers == ["0", "1"]
    assert (row.retries, len(json.loads(row.given_up)), row.sent) == ("[]", 1, 1)
    assert own.position_of(own.bodies[1]) == row.position


def by_event_id(post: Mapping[str, Any]) -> Answer:
    """Take the ids of events alone, as TanStack's receiver does."""
    return Answer(400 if post["webhook-id"].startswith("msg_") else 200)


def by_message_id(post: Mapping[str, Any]) -> Answer:
    return Answer(200 if post["webhook-id"].startswith("msg_") else 400)


@pytest.mark.parametrize("way", [by_event_id, by_message_id])
async def test_a_receiver_gets_the_ids_that_it_takes(
    own: Deliveries, receiver: Receiver, way: Any
) -> None:
    await own.subscribe()
    receiver.way = way
    for number in range(3):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    taken = [each for each in receiver.posts if way(each["headers"]).status == 200]
    assert [json.loads(each["body"])["data"]["number"] for each in taken] == [*"012"]
    refused = len(receiver.posts) - len(taken)
    assert refused == (way is by_event_id)
    row = await own.row()
    assert (row.by_event, row.last_status, row.sent) == (way is by_event_id, 200, 3)
    # So it is from then on, also after a refresh.
    await own.subscribe()
    await emit(OrderPaid("3"))
    await own.deliver()
    assert len(receiver.posts) == 4 + refused
    assert (await own.row()).by_event is row.by_event


async def test_who_refuses_all_gets_one_post_more(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe()
    receiver.way = lambda _post: Answer(400)
    for number in range(3):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    assert own.numbers == ["0", "0", "1", "2"]
    row = await own.row()
    assert (row.by_event, row.last_status) == (False, 400)
    assert [attempts for _, attempts, _ in json.loads(row.retries)] == [1, 1, 1]
    # Who has taken an event by its message's id is never asked by another.
    receiver.way = None
    await due_now()
    await own.deliver()
    receiver.way = by_event_id
    await emit(OrderPaid("4"))
    await own.deliver()
    assert own.numbers[7:] == ["4"]


@pytest.mark.parametrize("before", [{"msg_": 400, "evt_": 503}, {"": 401}])
async def test_who_took_neither_id_once_is_asked_by_both_again(
    own: Deliveries, receiver: Receiver, before: dict[str, int]
) -> None:
    """It was away at its own id, or had another secret."""

    def answer_first(post: Mapping[str, Any]) -> Answer:
        sent = post["webhook-id"]
        return Answer(next(before[each] for each in before if sent.startswith(each)))

    await own.subscribe()
    receiver.way = answer_first
    await emit(OrderPaid("0"))
    await own.deliver()
    receiver.way = by_event_id
    await due_now()
    await own.deliver()
    row = await own.row()
    assert (row.by_event, row.last_status, row.sent) == (True, 200, 1)


async def test_what_was_stopped_is_looked_for_until_it_goes_on(
    own: Deliveries,
) -> None:
    """A process without requests hears of a start only if it looks itself."""
    await own.subscribe()
    delivery = own.process.event_delivery
    delivery.offer()
    with ExitStack() as stops:
        for name in own.process.catalogs.by_slug["private"].events:
            stops.enter_context(stopped_type(own.process, name))
        await delivery.maintain()
        assert delivery.is_looking
    delivery.stop()


async def test_a_receiver_that_is_trusted_no_more_has_to_agree_first(
    own: Deliveries, settings: Any
) -> None:
    await own.subscribe()
    options = {**settings.MCP["EVENTS"], "receivers": []}
    settings.MCP = {**settings.MCP, "EVENTS": options}
    await emit(OrderPaid("1"))
    await own.deliver()
    assert own.bodies == []
    assert (await own.row()).last_error == "challenge_failed"
    await own.change(verified_ms=1)
    await due_now()
    await own.deliver()
    assert own.numbers == ["1"]


@pytest.mark.parametrize(
    ("position", "waiting", "expected"),
    [
        (9, [], 9),
        (9, [7], 6),
        (9, [9, 4, 7], 3),
        (9, [11], 9),
        (0, [], 0),
        (9, [10], 9),
    ],
)
def test_the_watermark(position: int, waiting: list[int], expected: int) -> None:
    assert watermark(position, [Retry(each, 1, 0) for each in waiting]) == expected


def test_a_bucket() -> None:
    pace = Pace(Limits(event_rate=60, event_burst=20))
    free = [
        pace.free_places(100_000 + each, 100_000, 50) for each in range(0, 21_000, 999)
    ]
    assert free == [*range(20, 0, -1), 0, 0][: len(free)]
    assert Pace(Limits(rates=False)).free_places(10**15, 0, 50) == 0


async def test_a_burst_is_posted_and_the_rest_waits(own: Deliveries) -> None:
    await own.subscribe()
    for number in range(25):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    assert own.numbers[:20] == [str(number) for number in range(20)]
    assert len(own.numbers) < 25
    await own.change(paced_ms=0)
    await own.deliver()
    assert own.numbers == [str(number) for number in range(25)]


async def test_who_has_too_much_to_read_is_told_so_and_begins_anew(
    own: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_app.process.event_delivery.MAX_WAITING", 30)
    await own.subscribe(arguments={"shop": "ulm"})
    for number in range(40):
        await emit(OrderPaid(str(number), shop="ulm" if number % 4 else "bonn"))
    await own.deliver()
    # Of 40 it is to be told of 30.
    assert own.numbers == [str(each) for each in range(40) if each % 4][:20]
    await own.change(paced_ms=2**50)
    for number in range(40, 80):
        await emit(OrderPaid(str(number)))
    await own.change(paced_ms=0)
    await own.deliver()
    (gap,) = [each for each in own.bodies if "type" in each]
    assert gap["type"] == "gap"
    row = await own.row()
    assert own.position_of(gap) == row.position
    assert len(own.numbers) == 20


def insert_rows(count: int) -> None:
    data = '{"number":"1","shop":"ulm","total":0.0}'
    rows = (
        Occurrence(
            number=each, topic="order.paid", event_id=str(each), data=data, created_ms=1
        )
        for each in range(1, count + 1)
    )
    Occurrence.objects.bulk_create(rows)
    Counter.objects.update_or_create(name="occurrences", defaults={"value": count})


async def test_many_that_do_not_fit_are_looked_at_twice_at_most(
    own: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_app.process.event_delivery.MAX_WAITING", 30)
    await own.subscribe(arguments={"shop": "bonn"})
    await sync_to_async(insert_rows)(6_000)
    loads = []

    def load(topic: str, after: int, most: int) -> Portion:
        loads.append(after)
        return load_occurrences(topic, after, most)

    monkeypatch.setattr("mcp_app.streams.occurrences.load_occurrences", load)
    own.process.events.mark_stale()
    await own.deliver()
    assert (await own.row()).position == 6_000
    assert 30 <= len(loads) <= 60


async def test_a_slow_receiver_lets_others_have_their_turn(
    own: Deliveries, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_app.process.event_delivery.TURN_S", 0.1)
    await own.subscribe()
    owners = set()

    def answer(_post: object) -> Answer:
        owners.add(EventSubscription.objects.values_list("owner", flat=True).get())
        return Answer(wait_s=0.2)

    receiver.way = answer
    for number in range(3):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    # Each claim has an owner of its own, and posts at least once.
    assert (own.numbers, len(owners)) == (["0", "1", "2"], 3)


async def test_what_the_outbox_has_forgotten_is_a_gap(own: Deliveries) -> None:
    await own.subscribe(sep=False)
    for number in range(3):
        await emit(OrderPaid(str(number)))
    await own.process.gate.wait_for_check()
    await own.process.events.current_state("order.paid", 10**9)
    rows = Occurrence.objects.order_by("number")
    (_first, second, _third) = [each async for each in rows]
    await sync_to_async(Occurrence.objects.filter(pk__lte=second.pk).forget)()
    own.process.events.mark_stale()
    await own.deliver()
    row = await own.row()
    assert row.truncated
    # The sketch knows no gaps.
    assert own.numbers == ["2"]


async def test_who_fails_for_an_hour_is_told_nothing_until_a_refresh(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe(failed_since_ms=1)
    receiver.way = lambda _post: Answer(500)
    for number in range(2):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    row = await own.row()
    assert (row.active, own.numbers) == (False, ["0"])
    receiver.way = None
    await own.change(active=True, due_ms=0, failed_since_ms=None)
    await own.deliver()
    assert own.numbers == ["0", "1"]


async def terminated(own: Deliveries) -> dict[str, Any]:
    await own.change(due_ms=0)
    await emit(OrderPaid("1"))
    await own.deliver()
    assert own.numbers == []
    assert not await EventSubscription.objects.aexists()
    (body,) = own.bodies
    assert body["type"] == "terminated"
    error: dict[str, Any] = body["error"]
    return error


async def test_who_may_not_see_a_type_any_more_is_told_so(own: Deliveries) -> None:
    await own.subscribe("order.secret")
    assert (await terminated(own))["data"] == {"reason": "revoked"}


async def test_a_user_of_the_site_who_may_not_log_in_is_told_nothing(
    own: Deliveries,
) -> None:
    principal = {"kind": "session", "user_id": "4711", "permissions": None}
    await own.subscribe(principal=principal)
    assert (await terminated(own))["code"] == -32024


async def test_a_revoked_token_ends_what_it_has_subscribed_to(own: Deliveries) -> None:
    user = await sync_to_async(get_user_model().objects.create_user)("reader")
    make = sync_to_async(AccessToken.objects.make)
    token, _secret = await make(user=user, name="laptop")
    who = {"kind": ACCESS_TOKEN, "user_id": str(user.pk), "client": token.family}
    await own.subscribe(principal={**who, "permissions": None})
    await own.change(due_ms=0)
    await own.deliver()
    assert await EventSubscription.objects.aexists()
    await AccessToken.objects.filter(pk=token.pk).aupdate(revoked=timezone.now())
    assert (await terminated(own))["data"] == {"reason": "revoked"}
    # To look is no look on behalf of streams.
    token_cache.mark_unsure()
    principal = Principal(kind=ACCESS_TOKEN, user_id=str(user.pk), client=token.family)
    assert await token_cache.has_ended(principal.key)
    assert token_cache.may_have_ended
    await user.adelete()


async def test_arguments_that_do_not_fit_any_more_end_it(own: Deliveries) -> None:
    await own.subscribe(arguments={"colour": "red"})
    assert (await terminated(own))["data"] == {"reason": "schema_changed"}


async def test_a_type_that_is_gone_for_long_ends_it(own: Deliveries) -> None:
    await own.subscribe()
    await own.change(event_type="order.lost", due_ms=0)
    await own.deliver()
    assert await EventSubscription.objects.aexists()
    own.process.event_delivery._begun -= 601
    assert (await terminated(own))["data"] == {"kind": "event"}


async def test_the_sketch_is_told_of_the_end_once(
    own: Deliveries, receiver: Receiver
) -> None:
    receiver.way = lambda _post: Answer(500)
    await own.subscribe("order.secret", sep=False)
    assert (await terminated(own))["code"] == -32012


async def test_one_that_is_ended_at_the_site_is_told_so_and_nothing_else(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe(owner="another", lease_ms=2**50)
    await emit(OrderPaid("0"))
    pk = (await own.row()).pk
    end = sync_to_async(EventSubscription.objects.stop)
    # Whoever had it loses it: it may not post one more.
    assert await end(pk)
    assert not await end(pk)
    assert (await terminated(own))["data"] == {"reason": "ended"}
    assert len(receiver.posts) == 1


async def test_what_another_process_has_is_left_alone(own: Deliveries) -> None:
    await own.subscribe(owner="another", lease_ms=2**50)
    await emit(OrderPaid("1"))
    await own.deliver()
    assert own.numbers == []
    await own.change(lease_ms=1)
    await own.deliver()
    assert own.numbers == ["1"]


async def test_what_was_taken_by_another_process_is_not_stored(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe()

    def answer(_post: object) -> Answer:
        EventSubscription.objects.update(owner="another", lease_ms=2**50)
        return Answer()

    receiver.way = answer
    for number in range(2):
        await emit(OrderPaid(str(number)))
    before = await own.row()
    await own.deliver()
    row = await own.row()
    assert own.numbers == ["0"]
    assert (row.owner, row.position) == ("another", before.position)


async def test_each_attempt_is_a_line_of_the_call_log(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe()
    receiver.way = lambda post: Answer(500 if post["data"]["number"] == "0" else 200)
    for number in range(2):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    assert own.process.audit is not None
    await own.process.audit.wait_until_written()
    columns = ("kind", "name", "outcome", "user_name", "error", "arguments")
    rows = Call.objects.order_by("pk").values_list(*columns)
    line = ("event", "order.paid")
    assert [each async for each in rows] == [
        (*line, "other_site", "ana", "http_5xx", '{"host":"localhost"}'),
        (*line, "answered", "ana", "", '{"host":"localhost"}'),
    ]


async def test_what_is_stopped_waits(own: Deliveries) -> None:
    await own.subscribe()
    with stopped_type(own.process):
        await own.change(due_ms=0)
        await emit(OrderPaid("1"))
        await own.deliver()
        assert own.numbers == []
    await own.change(due_ms=0, paced_ms=0)
    await own.deliver()
    assert own.numbers == ["1"]


@pytest.mark.databases
async def test_a_refresh_while_it_is_claimed_is_not_undone(own: Deliveries) -> None:
    await own.subscribe(active=False, truncated=True, failed_since_ms=1, due_ms=0)
    claim_all = sync_to_async(claim_subscriptions)
    (claim,) = await claim_all("me", 8, {}, {}, Pace(Limits()))
    await own.change(active=True, truncated=False, failed_since_ms=None)
    assert await sync_to_async(claim.store)()
    row = await own.row()
    assert (row.active, row.truncated, row.failed_since_ms) == (True, False, None)


@pytest.mark.databases
async def test_of_a_host_few_are_served_at_once(own: Deliveries) -> None:
    await own.subscribe()
    row = await own.row()
    for number in range(12):
        row.pk, row.public_id = None, f"sub_{number + 2}"
        row.host = "localhost" if number < 8 else "elsewhere"
        row.person = f"u{number % 3}"
        await row.asave(force_insert=True)
    await own.change(due_ms=0)
    claim_all = sync_to_async(claim_subscriptions)

    async def claimed(**busy: int) -> list[tuple[str, str]]:
        claims = await claim_all("me", 8, busy, {}, Pace(Limits()))
        return [(each.record.host, each.record.person) for each in claims]

    here, there = "localhost", "elsewhere"
    assert await claimed(uana=1, u1=2, u2=1) == [
        *((here, "uana"), (here, "u0"), (here, "u2"), (here, "u0"))
    ]
    # Another process has as many of each person, but not at the host.
    assert await claimed(u0=1) == [
        *((there, "u2"), (there, "u0"), (there, "u1"), (there, "u2"))
    ]
    assert await claimed() == []


async def test_nobody_waits_for_slow_receivers_of_one_person(
    own: Deliveries, receiver: Receiver
) -> None:
    for number in range(21):
        person, shop = ("uana", "ulm") if number < 20 else ("uben", "bonn")
        more: JsonObject = {"public_id": f"sub_{number}", "arguments": {"shop": shop}}
        await own.subscribe(person=person, **more)
    released, busy, told = threading.Event(), list[str](), list[str]()

    def answer(post: Any) -> Answer:
        is_slow = post["data"]["shop"] == "ulm"
        (busy if is_slow else told).append(post["eventId"])
        assert not is_slow or released.wait(PATIENCE_S)
        return Answer()

    receiver.way = answer
    for shop in ("ulm", "bonn"):
        await emit(OrderPaid("1", shop=shop))
    delivery = own.process.event_delivery
    own.process.gate.mark_stale()
    delivery.is_looking = True
    delivery.wake()
    await until(lambda: told)
    assert len(busy) <= 2
    released.set()
    async with asyncio.timeout(PATIENCE_S):
        while len(busy) < 20:
            await own.deliver()
            await asyncio.sleep(0.01)
    assert (len(busy), len(told)) == (20, 1)


async def test_a_process_that_ends_finishes_its_post_alone(
    own: Deliveries, receiver: Receiver
) -> None:
    await own.subscribe()

    def answer(_post: object) -> Answer:
        own.process.stopping = True
        return Answer()

    receiver.way = answer
    for number in range(2):
        await emit(OrderPaid(str(number)))
    await own.deliver()
    row = await own.row()
    assert (own.numbers, row.sent, row.owner) == (["0"], 1, "")


async def test_what_a_process_asks_in_quiet_times(own: Deliveries) -> None:
    delivery, catalogs = own.process.event_delivery, own.process.catalogs
    await own.process.gate.wait_for_check()
    async with counted((*READING, writer)) as asked:
        await delivery.maintain()
        assert len(asked) == 1
        some, catalogs.by_slug = catalogs.by_slug, {}
        # A server that is stopped may have event types.
        stopped, catalogs.stopped = catalogs.stopped, frozenset()
        await delivery.maintain()
        catalogs.by_slug, catalogs.stopped = some, stopped
    assert (len(asked), delivery.is_looking) == (1, False)
    await own.subscribe()
    await own.deliver()
    async with counted((*READING, writer)) as asked:
        await own.deliver()
    # One looks for changes, and one for what is due.
    assert len([each for each in asked if "SELECT" in each]) == 2
