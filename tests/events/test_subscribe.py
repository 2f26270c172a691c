"""events/subscribe and events/unsubscribe as clients meet them (SEP-3415)."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from django.utils import timezone
from pytest_django import Settings

from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import BY_TOKEN
from mcp_app.models import Call, EventSubscription, Server
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.pools.database import writer
from mcp_app.process import webhooks as process_webhooks
from mcp_app.process.runtime import Process
from mcp_app.streams.event_subscriptions import record_of
from tests.asgi_client import JsonObject, Outcome
from tests.egress.peer import Received, answer
from tests.events.conftest import HEARS_EVENTS, EventClient, Hear, OrderPaid, emit
from tests.events.receivers import OTHER_SECRET, SECRET, Receiver, receiver_in
from tests.process.test_callers import Known
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import RATES, Connect
from tests.wire.middleware import WireCheck

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

Subscribe: TypeAlias = Callable[..., Any]


async def ask(
    receiver: Receiver, client: EventClient, name: str = "order.paid", **more: Any
) -> Outcome:
    delivery = receiver.delivery(**more.pop("delivery", {}))
    params = {"name": name, "delivery": delivery, **more}
    return await client.client.request("events/subscribe", params)


@pytest.fixture
def subscribe(receiver: Receiver, ana: EventClient) -> Subscribe:
    """Subscribe to what the receiver gets; return the result."""

    async def subscribed(client: EventClient | None = None, **more: Any) -> JsonObject:
        return (await ask(receiver, client or ana, **more)).result

    return subscribed


@pytest.fixture
def refuse(receiver: Receiver, ana: EventClient) -> Subscribe:
    """Return the error of a subscription, which leaves no row."""

    async def refused(client: EventClient | None = None, **more: Any) -> JsonObject:
        count = await EventSubscription.objects.acount()
        error = (await ask(receiver, client or ana, **more)).error
        assert await EventSubscription.objects.acount() == count
        return error

    return refused


async def row_of(result: JsonObject) -> EventSubscription:
    return await EventSubscription.objects.aget(public_id=result["id"])


async def change_row(result: JsonObject, **columns: Any) -> None:
    rows = EventSubscription.objects.filter(public_id=result["id"])
    await writer.run(lambda: rows.update(**columns))


def milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)


# -- verification ----------------------------------------------------------------------


async def test_a_receiver_agrees_before_it_is_subscribed(
    receiver: Receiver, subscribe: Subscribe
) -> None:
    first = await subscribe()
    again = await subscribe(arguments={"shop": "ulm"})
    assert (await subscribe())["id"] == first["id"] != again["id"]
    assert first["deliveryStatus"]["active"]
    assert not first["truncated"]
    (challenge,) = receiver.challenges
    assert (challenge.method, challenge.target) == ("POST", "/hooks/a?key=b")
    assert challenge.header("X-MCP-Subscription-Id") == [first["id"]]
    assert challenge.header("webhook-id")[0].startswith("msg_verification_")
    # Nobody who reads the table learns where to, or how to sign.
    row = await row_of(first)
    assert receiver.url not in row.url
    assert SECRET not in row.secret
    assert record_of(row).url == receiver.url
    assert (row.host, row.principal) == ("localhost", "user\x1fana\x1f")
    library = pytest.importorskip("standardwebhooks")
    headers = {name.lower(): value for name, value in challenge.headers}
    assert library.Webhook(SECRET).verify(challenge.body, headers) == challenge.json
    with pytest.raises(library.WebhookVerificationError):
        library.Webhook(OTHER_SECRET).verify(challenge.body, headers)


async def test_a_receiver_agrees_for_a_day(
    receiver: Receiver, subscribe: Subscribe, hear: Hear
) -> None:
    result = await subscribe()
    old = NowMilliseconds() - DAY_MS
    await change_row(result, verified_ms=old)
    await subscribe()
    await subscribe()
    assert len(receiver.challenges) == 2
    # What it said to one, it did not say to another.
    await subscribe(await hear(user="bo"))
    assert len(receiver.challenges) == 3


async def test_a_receiver_that_the_site_trusts_is_not_asked(
    receiver: Receiver, subscribe: Subscribe, settings: Settings
) -> None:
    begins = f"https://LOCALHOST:{receiver.peer.port}/hooks"
    trusting = receiver.settings(receivers=[begins])
    settings.MCP = {**settings.MCP, "EVENTS": trusting}
    await subscribe()
    assert receiver.peer.received == []


AGREEMENTS: Final = {
    "another text": (answer({"challenge": "x"}), "challenge_failed"),
    "no JSON": (answer(b"challenge"), "challenge_failed"),
    "a list": (answer([]), "challenge_failed"),
    "nothing": (answer(), "challenge_failed"),
    "more than 8 KiB": (answer("x" * 9_000), "challenge_failed"),
    "404": (answer(status=404), "http_4xx"),
    "a large 500": (answer("x" * 9_000, status=500), "http_5xx"),
    "a redirect": (answer(status=307, Location="https://localhost/"), "http_4xx"),
    "no HTTP": (b"what?\r\n\r\n", "connection_refused"),
}


async def test_a_receiver_that_does_not_agree(
    receiver: Receiver, refuse: Subscribe
) -> None:
    for count, (case, (agreement, reason)) in enumerate(AGREEMENTS.items(), 1):
        receiver.agreement = agreement
        error = await refuse()
        assert (error["code"], error["data"]) == (-32027, {"reason": reason}), case
        assert len(receiver.peer.received) == count


async def test_a_receiver_that_cannot_be_had(
    receiver: Receiver,
    refuse: Subscribe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "other").mkdir()
    async with receiver_in(tmp_path / "other", "other.example") as stranger:
        error = await refuse(delivery={"url": stranger.url})
        assert error["data"] == {"reason": "tls_error"}
    error = await refuse(delivery={"url": stranger.url})
    assert error["data"] == {"reason": "connection_refused"}

    async def sleep(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)

    receiver.peer.send = sleep
    monkeypatch.setattr(process_webhooks, "CHALLENGE_S", 0.1)
    assert (await refuse())["data"] == {"reason": "timeout"}


async def test_private_addresses_are_refused(
    receiver: Receiver, refuse: Subscribe, settings: Settings
) -> None:
    """A name may lead anywhere: what counts is where it leads when it is called."""
    closed = receiver.settings(networks=["10.0.0.0/8"])
    settings.MCP = {**settings.MCP, "EVENTS": closed}
    assert (await refuse())["data"] == {"reason": "connection_refused"}
    settings.MCP = {**settings.MCP, "EVENTS": {}}
    assert (await refuse())["code"] == -32602
    assert receiver.peer.connections == 0


async def test_challenges_are_limited(receiver: Receiver, refuse: Subscribe) -> None:
    receiver.agreement = answer()
    errors = [await refuse() for _ in range(11)]
    assert {each["code"] for each in errors[:10]} == {-32027}
    assert errors[10]["code"] == -32025
    assert errors[10]["data"] == {"limit": "challenges", "max": 10}
    assert len(receiver.challenges) == 10


# -- what is asked for -----------------------------------------------------------------

URLS: Final = {
    "http://hooks.example.com/a": "https://",
    "https://ana@hooks.example.com/a": "without a user",
    "https://hooks.example.com/a#b": "a fragment",
    "https://hooks.example.com:8443/a": "the port 443",
    "https://hooks.example.com:0/a": "https://",
    "https://hooks.example.com/a/../b": "https://",
    "https://hooks.example.com/a b": "encoded",
    "https://hooks.example.com/?a=<b>": "encoded",
    "https://[2001:db8::1%25eth0]/a": "the name of a host",
    "https://0x7f000001/a": "the name of a host",
    "https://127.1/a": "the name of a host",
    "https://localhost:8443/a": "the name of a host",
    "https://127.0.0.1/a": "the name of a host",
    "https://[::1]/a": "the name of a host",
    "https://[::ffff:127.0.0.1]/a": "the name of a host",
    "https://[2606:4700::1]/a": "the name of a host",
    "https://höst.example.com/a": "the name of a host",
    "hooks": "https://",
    "": "https://",
    f"https://hooks.example.com/{'a' * 3_000}": "at most 2,048",
}


async def test_urls_that_nothing_is_posted_to(
    refuse: Subscribe, settings: Settings
) -> None:
    settings.MCP = {**settings.MCP, "EVENTS": {}}
    for url, rule in URLS.items():
        error = await refuse(delivery={"url": url})
        assert error["code"] == -32602, url
        # The call log has the message: parts of an address may be secret.
        assert "hooks" not in error["message"]
        assert rule in error["message"], url
        assert len(error["message"]) < 500


def secret(size: int) -> str:
    return f"whsec_{b64encode(b'a' * size).decode()}"


async def test_secrets_that_nobody_signs_with(
    refuse: Subscribe, subscribe: Subscribe
) -> None:
    good, url_safe = secret(32), f"whsec_{'-_' * 22}"
    wrong = ["", good[6:], good[:-1], good + "!", url_safe, secret(23), secret(65)]
    for each in (None, 7, *wrong, f"whsk_{good[6:]}", "whsec_", "whsec_é"):
        error = await refuse(delivery={"secret": each})
        assert error["code"] == -32602, each
        assert error["message"] == (
            "params.delivery.secret must be whsec_ and base64 of 24 to 64 bytes."
        )
    for size in (24, 64):
        await subscribe(delivery={"secret": secret(size)})


async def test_how_long_a_subscription_lasts(
    refuse: Subscribe, subscribe: Subscribe
) -> None:
    granted = {None: 7 * DAY_MS, 0: 600_000, 600_001: 600_001, 365 * DAY_MS: 7 * DAY_MS}
    for wanted, most in [*granted.items(), (2.5e6, 2_500_000), ("usual", DAY_MS)]:
        more = {} if wanted == "usual" else {"ttlMs": wanted}
        end = milliseconds((await subscribe(**more))["refreshBefore"])
        assert abs(end - time.time() * 1_000 - most) < 60_000, wanted
    for wrong in (-1, "1", True, [1], {"a": 1}):
        assert (await refuse(ttlMs=wrong))["code"] == -32602


@pytest.mark.databases
@pytest.mark.parametrize("mcp", [{"AUTHENTICATION": BY_TOKEN}])
async def test_a_subscription_ends_with_its_token(
    receiver: Receiver, process: Process, application: WireCheck, connect: Connect
) -> None:
    token_cache.forget_all()
    known = await writer.run(Known, process, application)
    end = timezone.now() + timedelta(hours=2)
    token = await writer.run(lambda: known.new(expires=end))
    await process.gate.wait_for_check()
    headers = {"authorization": f"Bearer {token}"}
    options = {"path": "/mcp/kept", "capabilities": HEARS_EVENTS}
    client = EventClient(await connect(STATELESS, headers=headers, **options))
    result = (await ask(receiver, client, ttlMs=None)).result
    await writer.run(known.erase)
    token_cache.forget_all()
    assert milliseconds(result["refreshBefore"]) == int(end.timestamp() * 1_000)


async def test_what_else_is_refused(
    receiver: Receiver, refuse: Subscribe, process: Process, connect: Connect
) -> None:
    unknown, hidden = [await refuse(name=f"order.{each}") for each in ("x", "secret")]
    assert (unknown["code"], unknown["data"]) == (-32023, {"kind": "event"})
    assert str(unknown).replace("order.x", "order.secret") == str(hidden)
    for arguments in ({"color": "red"}, {"shop": "ulm" * 6_000}):
        assert (await refuse(arguments=arguments))["code"] == -32602
    error = await refuse(delivery={"mode": "poll"})
    assert error["code"] == -32026
    assert error["data"] == {"feature": "delivery.mode", "value": "poll"}
    assert (await refuse(delivery={"mode": None}))["code"] == -32602
    server = await writer.run(
        lambda: published(Server(slug="watched", access="public"))
    )
    await process.gate.wait_for_check()
    stranger = await connect(STATELESS, path="/mcp/watched", capabilities=HEARS_EVENTS)
    error = await refuse(EventClient(stranger))
    await writer.run(server.delete)
    assert (error["code"], error["data"]) == (-32024, {"reason": "anonymous"})
    assert receiver.peer.received == []


FEW: Final = {"LIMITS": {**RATES, "subscriptions_per_person": 2}}
FEW_ROWS: Final = {"LIMITS": {**RATES, "subscriptions_rows": 2}}


@pytest.mark.parametrize("mcp", [FEW, FEW_ROWS])
async def test_subscriptions_are_limited(
    refuse: Subscribe, subscribe: Subscribe
) -> None:
    for shop in ("ulm", "bonn"):
        await subscribe(arguments={"shop": shop})
    error = await refuse()
    assert error["code"] == -32025
    assert error["data"] == {"limit": "subscriptions", "max": 2}
    # To refresh one is no new one.
    last = await subscribe(arguments={"shop": "ulm"})
    await change_row(last, expires_ms=0)
    await writer.run(lambda: EventSubscription.objects.expired().delete())
    await subscribe()


# -- refresh ---------------------------------------------------------------------------


@pytest.mark.databases
async def test_a_refresh_goes_on_with_another_secret(subscribe: Subscribe) -> None:
    first = await subscribe()
    await emit(OrderPaid("1"))
    await change_row(
        first,
        position=7,
        retries="[[5,1,0],[4,2,0]]",
        active=False,
        failed_since_ms=0,
        last_ok_ms=1_000,
        last_error="http_5xx",
        truncated=True,
    )
    again = await subscribe(delivery={"secret": OTHER_SECRET}, cursor="unusable")
    row = await row_of(again)
    record = record_of(row)
    assert (row.position, row.active, row.failed_since_ms) == (7, True, None)
    now_ms = int(time.time() * 1_000)
    assert record.watermark == 3
    assert record.current_secrets(now_ms) == [OTHER_SECRET, SECRET]
    assert record.current_secrets(now_ms + 2 * HOUR_MS) == [OTHER_SECRET]
    # It is told once what it has missed, and how it went.
    assert again["truncated"]
    assert again["deliveryStatus"] == {
        "active": True,
        "lastDeliveryAt": "1970-01-01T00:00:01.000Z",
        "lastError": "http_5xx",
        "failedSince": "1970-01-01T00:00:00.000Z",
    }
    await change_row(first, paced_ms=now_ms + HOUR_MS)
    third = await subscribe(delivery={"secret": OTHER_SECRET})
    assert third["deliveryStatus"]["throttled"]
    assert 0 < third["deliveryStatus"]["retryAfterMs"] < HOUR_MS
    assert not third["truncated"]
    assert (await row_of(third)).old_secret == row.old_secret


@pytest.mark.databases
async def test_one_that_has_lapsed_begins_at_its_cursor(
    ana: EventClient, subscribe: Subscribe
) -> None:
    first = await subscribe()
    await emit(OrderPaid("1"))
    await ana.told(cursor=first["cursor"])
    await change_row(first, expires_ms=1, retries="[[1,1,0]]", owner="w", sent=3)
    again = await subscribe(cursor=first["cursor"])
    row = await row_of(again)
    assert (again["id"], again["cursor"]) == (first["id"], first["cursor"])
    assert (row.retries, row.owner, row.sent) == ("[]", "", 0)
    await change_row(first, expires_ms=1)
    assert (await subscribe())["cursor"] != first["cursor"]
    await change_row(first, expires_ms=1)
    assert (await subscribe(cursor="unusable"))["truncated"]


# -- the end ---------------------------------------------------------------------------

NOT_FOUND: Final = {"kind": "subscription"}


async def test_each_dialect_ends_its_subscriptions(
    receiver: Receiver, subscribe: Subscribe, hear: Hear
) -> None:
    for version, dialect in ((STATELESS, "sep"), (STATEFUL, "sketch")):
        client = await hear(version, "bo")
        result = await subscribe(client, arguments={"shop": "ulm"})
        assert f'"dialect":"{dialect}"' in (await row_of(result)).caller
        place = {"name": "order.paid", "delivery": {"url": receiver.url}}
        other = await client.client.request("events/unsubscribe", place)
        if dialect == "sep":
            assert (other.error["code"], other.error["data"]) == (-32023, NOT_FOUND)
        else:
            assert "error" not in other.answer
        assert await EventSubscription.objects.acount() == 1
        params = {**place, "arguments": {"shop": "ulm"}}
        ended = await client.client.request("events/unsubscribe", params)
        assert "error" not in ended.answer
        assert await EventSubscription.objects.acount() == 0
    receiver.agreement = answer()
    refusal = await ask(receiver, await hear(STATEFUL, "cy"))
    assert refusal.error["code"] == -32015


async def test_nobody_ends_the_subscription_of_another(
    receiver: Receiver, subscribe: Subscribe, hear: Hear
) -> None:
    await subscribe()
    # The type may be gone.
    for user, name in (("bo", "order.paid"), ("ana", "order.x")):
        params = {"name": name, "delivery": {"url": receiver.url}}
        error = await (await hear(user=user)).refused("events/unsubscribe", **params)
        assert error["data"] == NOT_FOUND
    assert await EventSubscription.objects.acount() == 1


async def test_what_lists_and_the_call_log_say(
    ana: EventClient, subscribe: Subscribe, process: Process
) -> None:
    listed = (await ana.client.request("events/list")).result["events"]
    assert {tuple(each["delivery"]) for each in listed} == {("poll", "push", "webhook")}
    await subscribe(arguments={"shop": "ulm"})
    assert process.audit is not None
    await process.audit.wait_until_written()
    call = await Call.objects.aget(kind="event")
    values = (call.name, call.outcome, call.user_name)
    assert values == ("order.paid", "answered", "ana")
