from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mcp_app.interface.principal import Principal
from mcp_app.models import Event, Session, Stream
from tests.admin.operations.test_live import session
from tests.admin.pages import Queries, page, page_of, text_of

pytestmark = pytest.mark.django_db


INFO = '{"name": "<b>client</b>", "version": "1"}'
OF_2023: dict[str, Any] = {
    "created_ms": 1_700_000_000_000,
    "seen_ms": 1_700_000_000_000,
}


@pytest.fixture
def sessions() -> list[Session]:
    users = [User.objects.create_user(f"user_{number}") for number in range(5)]
    keys = [Principal(kind="user", user_id=str(user.pk)).key for user in users]
    gone = Principal(kind="user", user_id="99999").key
    odd = Principal(kind="site", user_id="partner-7").key
    keys += [Principal.ANONYMOUS.key, gone, odd]
    return [
        session(number, principal_key=key, client_info=INFO, **OF_2023)
        for number, key in enumerate(keys)
    ]


def test_the_list_says_who_is_connected(
    admin_client: Client,
    sessions: list[Session],
    django_assert_max_num_queries: Queries,
) -> None:
    with django_assert_max_num_queries(6):
        text = text_of(admin_client, page("session"))
    for shown in ("user_0", "user_4", "nobody", "99999", "partner-7", "2025-11-25"):
        assert shown in text
    assert "14 Nov 2023, " in text


@pytest.mark.parametrize(
    "key", ["108234567890123456789", "9" * 19, "-" + "9" * 30, "9" * 200, "1.5", "²"]
)
def test_who_is_known_elsewhere_is_shown_as_that(
    admin_client: Client, key: str
) -> None:
    session(1, key)
    for url in (page("session"), page("session", "live")):
        assert key in text_of(admin_client, url)


def test_what_a_client_says_is_no_markup(
    admin_client: Client, sessions: list[Session]
) -> None:
    for url in (page("session"), page_of(sessions[0])):
        text = text_of(admin_client, url)
        assert "<b>client</b>" not in text
        assert "&lt;b&gt;client&lt;/b&gt;" in text


def test_sessions_are_neither_made_nor_edited(
    admin_client: Client, sessions: list[Session]
) -> None:
    assert "user_2" in text_of(admin_client, sessions[2])
    assert admin_client.get(page("session", "add")).status_code == 403
    assert admin_client.post(page_of(sessions[0]), {"server": "x"}).status_code == 403


def test_the_page_before_a_session_is_deleted_loads_nothing_of_its_own(
    admin_client: Client, sessions: list[Session]
) -> None:
    kept = Stream.objects.create(
        session=sessions[0],
        public_id="p",
        requests="1",
        state="open",
        owner="o",
        last_batch="b",
        head_seq=1,
        created_ms=1,
    )
    Event.objects.create(stream=kept, seq=1, payload="secret", size=6)
    url = page_of(sessions[0], "delete")
    with CaptureQueriesContext(connection) as said:
        assert "Are you sure" in text_of(admin_client, url)
        admin_client.post(url, {"post": "yes"})
    of_events = [each["sql"] for each in said if "mcp_app_event" in each["sql"]]
    assert not [each for each in of_events if "payload" in each]
    assert not Session.objects.filter(pk=sessions[0].pk).exists()
    assert not Event.objects.exists()
    assert admin_client.post(page("session", "delete", "x")).status_code == 302
