from __future__ import annotations

import json
import time
from typing import Any, Final

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.test import Client

from mcp_app.account import event_subscriptions
from mcp_app.conf import Limits
from mcp_app.models import EventSubscription, Occurrence
from mcp_app.protocol.webhooks import NewWebhook, subscription_id
from mcp_app.streams.event_subscriptions import store_webhook
from tests.admin.pages import Queries, Staff, page, page_of, text_of
from tests.events.receivers import SECRET

pytestmark = pytest.mark.django_db

URL: Final = "https://hooks.example.com/a-secret-path"
NOON_MS: Final = 1_767_614_400_000


def subscription(
    event_type: str = "order.paid",
    person: str = "u4711",
    principal: str = "",
    arguments: dict[str, Any] | None = None,
    **columns: Any,
) -> EventSubscription:
    caller = {
        "principal": {"user_name": "maria"},
        "client": {"name": "<b>desk</b>", "version": "2"},
        "dialect": "sep",
    }
    arguments = arguments or {}
    new = NewWebhook(
        public_id=subscription_id(principal, "default", URL, event_type, arguments),
        server="default",
        event_type=event_type,
        topic=event_type,
        principal=principal,
        person=person,
        caller=json.dumps(caller),
        arguments=json.dumps(arguments),
        url=URL,
        host="hooks.example.com",
        secret=SECRET,
        position=0,
        ttl_ms=3_600_000,
    )
    stored = store_webhook(new, None, Limits())
    assert isinstance(stored, tuple)
    rows = EventSubscription.objects.filter(pk=stored[0].pk)
    rows.update(**columns)
    return rows.get()


def happen(topic: str, count: int) -> None:
    rows = [Occurrence(topic=topic, number=each) for each in range(1, count + 1)]
    Occurrence.objects.record(rows)


FAILING: Final[dict[str, Any]] = {"failed_since_ms": NOON_MS, "last_error": "http_5xx"}


@pytest.mark.parametrize(
    ("columns", "look", "word", "why"),
    [
        ({"position": 3}, "good", "up to date", ""),
        ({"position": 1}, "warn", "2 waiting", ""),
        ({"position": 3, "retries": "[[1,1,0]]"}, "warn", "1 waiting", ""),
        (FAILING, "bad", "retrying", "http_5xx since 5 Jan 2026, 12:00:00"),
        ({**FAILING, "last_status": 400}, "bad", "retrying", "answers 400 since 5 Jan"),
        ({**FAILING, "active": False}, "stopped", "paused", "http_5xx since 5 Jan"),
    ],
)
def test_states_in_words(
    admin_client: Client, columns: dict[str, Any], look: str, word: str, why: str
) -> None:
    happen("order.paid", 3)
    row = subscription(**columns)
    pill = f'<span class="mcp-state {look}">{word}</span> {why}'
    for url in (
        *(page("eventsubscription"), page_of(row)),
        f"{page_of(row)}?part=subscription",
    ):
        assert pill in text_of(admin_client, url)


def test_the_list_says_who_is_told_of_what_and_nothing_secret(
    admin_client: Client, django_assert_max_num_queries: Queries
) -> None:
    subscription(arguments={"shop": "<ulm>", "total": [1, 2]}, last_ok_ms=NOON_MS)
    subscription("ticket.opened", **FAILING, active=False)
    subscription("stock.low", expires_ms=1)
    subscription("stock.gone", ending=True)
    happen("order.paid", 1_002)
    with django_assert_max_num_queries(8):
        text = text_of(admin_client, page("eventsubscription"))
    for words in (
        *("order.paid", "ticket.opened", "hooks.example.com", "maria"),
        *("shop: &lt;ulm&gt;; total: [1,2]", "&lt;b&gt;desk&lt;/b&gt; 2"),
        *("more than 1,000 waiting", "5 Jan 2026, 12:00:00", "never"),
    ):
        assert words in text
    for row in EventSubscription.objects.all():
        shown = admin_client.get(page_of(row))
        text += shown.content.decode()
        assert shown.status_code == (404 if "stock" in row.event_type else 200)
        assert row.url not in text
    for secret in ("stock.low", "stock.gone", "a-secret-path", SECRET):
        assert secret not in text
    for state in ("failing", "paused"):
        filtered = text_of(admin_client, f"{page('eventsubscription')}?state={state}")
        assert "ticket.opened" in filtered
        assert "order.paid" not in filtered


def test_subscriptions_are_ended_by_who_may(staff: Staff) -> None:
    rows = [subscription(each) for each in ("order.paid", "ticket.opened")]
    chosen = {"action": "end_chosen", "_selected_action": [each.pk for each in rows]}
    client = staff("view_eventsubscription")
    client.post(page("eventsubscription"), chosen)
    assert EventSubscription.objects.open().count() == 2
    text = text_of(client, f"{page_of(rows[0])}?test")
    assert "Stop" not in text
    assert "Send" not in text
    kim, rights = User.objects.get(username="kim"), User.objects.create_superuser("lu")
    with pytest.raises(PermissionDenied):
        event_subscriptions.end_subscriptions(kim, rows)
    client.force_login(rights)
    assert "Stop" in text_of(client, page_of(rows[0]))
    answer = client.post(page("eventsubscription"), chosen, follow=True)
    assert "Subscriptions stopped: 2." in answer.content.decode()
    assert not EventSubscription.objects.open().exists()
    assert LogEntry.objects.filter(user=rights).count() == 2
    assert event_subscriptions.end_subscriptions(rights, rows) == 0


def test_without_the_right_to_see_them_nothing_is_shown(staff: Staff) -> None:
    row, client = subscription(), staff("view_task")
    assert client.get(page("eventsubscription")).status_code == 403
    assert client.get(page_of(row)).status_code == 404


def test_without_subscriptions_the_page_says_what_one_is(admin_client: Client) -> None:
    text = text_of(admin_client, page("eventsubscription"))
    assert "posted to an address of its own" in text


def test_one_that_nobody_looks_after_is_late() -> None:
    now_ms = int(time.time() * 1_000)
    subscription(due_ms=now_ms)
    assert not EventSubscription.objects.late().exists()
    EventSubscription.objects.update(due_ms=now_ms - 130_000)
    assert EventSubscription.objects.late().exists()
