"""The page of a subscription sends a test event to a real receiver."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from html import unescape

import pytest
from asgiref.sync import sync_to_async
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient

from mcp_app.protocol.webhooks import sign_message
from tests.admin.pages import page
from tests.events.receiver import Answer, Receiver
from tests.events.test_delivery import SECRET, Deliveries, mcp, own, receiver

__all__ = ["mcp", "own", "receiver"]

pytestmark = pytest.mark.usefixtures("shop_events")

RIGHTS = ("view_eventsubscription", "end_eventsubscription")


class Page:
    """The page of the only subscription, without JavaScript."""

    def __init__(self, client: AsyncClient, user: User, url: str) -> None:
        self.client, self.user, self.url = client, user, url

    async def text(self, query: str = "") -> str:
        answer = await self.client.get(f"{self.url}{query}")
        return unescape(answer.content.decode())

    async def send(self, data: str, status: int = 200) -> str:
        answer = await self.client.post(f"{self.url}?test", {"data": data})
        assert answer.status_code == status
        return unescape(answer.content.decode())


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
    seconds = int(headers["webhook-timestamp"])
    signed = sign_message(
        [SECRET], headers["webhook-id"], seconds, post["body"].encode()
    )
    assert headers["webhook-signature"] == signed
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


async def test_it_needs_the_right(receiver: Receiver, subscription_page: Page) -> None:
    end = await Permission.objects.aget(codename=RIGHTS[1])
    user = subscription_page.user
    await sync_to_async(user.user_permissions.remove)(end)
    assert "textarea" not in await subscription_page.text("?test")
    await subscription_page.send("{}", status=403)
    assert receiver.posts == []
