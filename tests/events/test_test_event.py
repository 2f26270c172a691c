"""The page of a subscription sends test events, and failed ones again, for real."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient

from mcp_app.models import Occurrence
from mcp_app.protocol.webhooks import sign_message
from tests.admin.pages import page
from tests.events.conftest import OrderPaid, emit
from tests.events.receiver import Answer, Receiver
from tests.events.test_delivery import SECRET, Deliveries, mcp, own, receiver

__all__ = ["mcp", "own", "receiver"]

pytestmark = pytest.mark.usefixtures("shop_events")

BUTTON = r'name="again" value="(.+?)"'
RIGHTS = ("view_eventsubscription", "end_eventsubscription")


class Page:
    """The page of the only subscription, without JavaScript."""

    def __init__(self, client: AsyncClient, user: User, url: str) -> None:
        self.client, self.user, self.url = client, user, url

    async def text(self, query: str = "") -> str:
        answer = await self.client.get(f"{self.url}{query}")
        return unescape(answer.content.decode())

    async def send(self, text: str, status: int = 200, name: str = "data") -> str:
        answer = await self.client.post(f"{self.url}?test", {name: text})
        assert answer.status_code == status
        return unescape(answer.content.decode())


def signature(post: dict[str, Any]) -> str:
    headers, body = post["headers"], post["body"].encode()
    seconds = int(headers["webhook-timestamp"])
    return sign_message([SECRET], headers["webhook-id"], seconds, body)


@pytest.fixture
async def subscription_page(own: Deliveries) -> AsyncIterator[Page]:
    await own.subscribe(arguments={"shop": "ulm"})
    user = await User.objects.acreate(username="kim", is_staff=True)
    rows = Permission.objects.filter(codename__in=RIGHTS)
    await sync_to_async(lambda: user.user_permissions.set(rows))()
    client = AsyncClient()
    await client.aforce_login(user)
    row = await own.row()
    yield Page(client, user, page("eventsubscription", "change", row.pk))
    await user.adelete()


async def test_it_is_signed_and_marked_and_moves_nothing(
    own: Deliveries, receiver: Receiver, subscription_page: Page
) -> None:
    text = await subscription_page.text("?test")
    example = '{\n  "number": "",\n  "shop": "ulm",\n  "total": 0.0\n}'
    assert example in text
    before = await own.row()
    text = await subscription_page.send('{"number": "1042"}')
    assert "The receiver has acknowledged it." in text
    assert '{"number": "1042"}</textarea>' in text
    (post,) = receiver.posts
    body, headers = json.loads(post["body"]), post["headers"]
    assert body["data"] == {"number": "1042"}
    assert body["_meta"] == {"mcp_app/test": True}
    assert (body["name"], headers["x-mcp-subscription-id"]) == ("order.paid", "sub_1")
    assert headers["webhook-signature"] == signature(post)
    after = await own.row()
    assert (after.position, after.sent) == (before.position, before.sent)
    entry = await LogEntry.objects.aget()
    assert entry.change_message == "Sent a test event: acknowledged."


async def test_what_went_wrong_is_named_and_nothing_of_the_answer(
    receiver: Receiver, subscription_page: Page
) -> None:
    receiver.way = lambda _post: Answer(503)
    text = await subscription_page.send("{}")
    assert "It was not acknowledged: http_5xx." in text
    for data, problem in (("[1]", "It must be a JSON object."), ("{", "Line 1")):
        assert problem in await subscription_page.send(data)
    assert len(receiver.posts) == 1


@pytest.mark.databases
async def test_what_failed_is_sent_again_once(
    own: Deliveries, receiver: Receiver, subscription_page: Page
) -> None:
    failure = Answer(500)
    failure.text = b"\nNo order \\u0031042 at /hook \xe2\x80\xae, sorry!\nat line 7"
    receiver.way = lambda _post: failure
    event = await emit(OrderPaid("1042"))
    await own.deliver()
    html = await subscription_page.text()
    line = rf"{event} \S+ 500 No order ••• at /••• ⟦U.202E⟧, sorry! Send again"
    assert re.search(line, " ".join(re.sub("<[^>]+>", " ", html).split()))
    button = (*re.findall(BUTTON, html), 200, "again")
    await own.change(owner="another", lease_ms=2**50)
    assert "others are sent just now" in await subscription_page.send(*button)
    await own.change(owner="")
    assert "It is sent in a moment." in await subscription_page.send(*button)
    assert "Not sent: it was" in await subscription_page.send(*button)
    receiver.way = None
    await own.deliver()
    assert "Not sent: it was" in await subscription_page.send(*button)
    _first, post = receiver.posts
    assert post["headers"]["webhook-signature"] == signature(post)
    assert not re.findall(BUTTON, await subscription_page.text())
    entry = await LogEntry.objects.aget(user=subscription_page.user)
    assert entry.change_message == f"Let the event {event} be sent again."


async def test_what_may_not_be_told_any_more_says_so(
    own: Deliveries, receiver: Receiver, subscription_page: Page
) -> None:
    receiver.way = lambda post: Answer(200 if post["data"]["number"] else 410)
    for number in ["", *"0123456789"]:
        await emit(OrderPaid(number))
    await own.deliver()
    # What failed stays, of the others the last nine.
    text = await subscription_page.text()
    assert text.count('"Status">200<') == 9
    button = (*re.findall(BUTTON, text), 200, "again")
    await own.change(active=False)
    assert "It is paused" in await subscription_page.send(*button)
    await own.change(active=True)
    await Occurrence.objects.all().adelete()
    await subscription_page.send(*button)
    await own.deliver()
    assert "This event is not kept any more" in await subscription_page.text()


async def test_it_needs_the_right(receiver: Receiver, subscription_page: Page) -> None:
    end = await Permission.objects.aget(codename=RIGHTS[1])
    user = subscription_page.user
    await sync_to_async(user.user_permissions.remove)(end)
    assert "textarea" not in await subscription_page.text("?test")
    await subscription_page.send("{}", status=403)
    await subscription_page.send("1.1", 403, "again")
    assert receiver.posts == []
