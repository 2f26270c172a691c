"""A client of events as OpenAI's guide (*MCP Events*) has it: the sketch, by webhook.

It declares no extension, and knows no other control body than the challenge.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from mcp_app.process.runtime import Process
from tests.asgi_client import Client, JsonObject
from tests.egress.peer import Received, answer
from tests.events.conftest import ANA, OrderPaid, capabilities_of, emit
from tests.events.receivers import OTHER_SECRET, SECRET, Receiver
from tests.events.test_delivery import deliver, due_now
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

pytestmark = pytest.mark.usefixtures("shop_events")

TOLERANCE_S: Final = 300


class Subscriber:
    """What a client asks for, and what its receiver takes."""

    def __init__(self, client: Client, receiver: Receiver, process: Process) -> None:
        self.client, self.receiver, self.process = client, receiver, process

    async def ask(self, method: str, secret: str = SECRET, **more: Any) -> JsonObject:
        delivery = self.receiver.delivery(secret=secret)
        params = {"name": "order.paid", "delivery": delivery, **more}
        return (await self.client.request(f"events/{method}", params)).answer

    async def take(self, *secrets: str, status: int = 200) -> list[Received]:
        """Return what is posted now, signed with each of the secrets."""
        self.receiver.reply = answer(status=status)
        await deliver(self.process)
        posts = self.receiver.peer.received[:]
        self.receiver.peer.received.clear()
        for post in posts:
            check_post(post, secrets or (SECRET,))
        return posts


def check_post(post: Received, secrets: tuple[str, ...]) -> None:
    """Read a post as Standard Webhooks and the guide say; gaps and ends are not."""
    identifier, seconds, signatures = headers_of(post)
    assert abs(time.time() - int(seconds)) < TOLERANCE_S
    content = f"{identifier}.{seconds}.".encode() + post.body
    for secret in secrets:
        key = b64decode(secret.removeprefix("whsec_"))
        digest = b64encode(hmac.digest(key, content, "sha256"))
        assert f"v1,{digest.decode()}" in signatures.split(" ")
    assert post.header("content-type") == ["application/json"]
    assert post.json.get("eventId", identifier) == identifier
    assert post.json.get("type", "verification") == "verification"


def headers_of(post: Received) -> list[str]:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return [value for name in names for value in post.header(name)]


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_it_subscribes_and_acts_on_what_happens(
    connect: Connect, receiver: Receiver, process: Process, version: str
) -> None:
    client = await connect(version, path="/mcp/private", headers=ANA)
    assert (await capabilities_of(client))["events"] == {}
    listed = (await client.request("events/list")).result["events"]
    assert "order.paid" in {x["name"] for x in listed if "webhook" in x["delivery"]}
    own = Subscriber(client, receiver, process)
    receiver.agreement = answer({"challenge": "another"})
    for name, code in (("order.paid", -32015), ("order.absent", -32011)):
        assert (await own.ask("subscribe", name=name))["error"]["code"] == code
    receiver.agreement = None
    first = (await own.ask("subscribe"))["result"]
    assert [post.json["type"] for post in await own.take()] == ["verification"] * 2
    # An event is posted until it is taken: the same event, signed anew.
    await emit(OrderPaid("1"))
    (refused,) = await own.take(status=503)
    await asyncio.sleep(1)
    await due_now()
    await emit(OrderPaid("2"))
    again, second = await own.take()
    numbers = [each.json["data"]["number"] for each in (refused, again, second)]
    assert numbers == ["1", "1", "2"]
    attempts = zip(headers_of(refused), headers_of(again), strict=True)
    assert [one == two for one, two in attempts] == [True, False, False]
    # It refreshes in time, with another secret; nobody asks the receiver again.
    refreshed = (await own.ask("subscribe", OTHER_SECRET))["result"]
    ends = [each["refreshBefore"] for each in (first, refreshed)]
    assert (refreshed["id"], sorted(ends)) == (first["id"], ends)
    assert datetime.fromisoformat(ends[0]) > datetime.now(UTC)
    await emit(OrderPaid("3"))
    (third,) = await own.take(SECRET, OTHER_SECRET)
    assert third.json["data"]["number"] == "3"
    for _ in range(2):
        assert "result" in await own.ask("unsubscribe")
    await emit(OrderPaid("4"))
    assert await own.take() == []
