"""Connected apps in the admin: seen, narrowed and ended by staff, and never widened."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from mcp_app.models import AccessToken, Connection, IssuedToken
from tests.account.apps import app, end
from tests.admin.pages import Staff, page, page_of, text_of, words_in

pytestmark = pytest.mark.django_db

LIST = page("accesstoken")
NAMES = re.compile(r'field-name"><a [^>]*>([^<]+)</a>')


@pytest.fixture
def manager(staff: Staff) -> Client:
    return staff("manage_tokens")


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


def names(client: Client, **query: str) -> list[str]:
    return sorted(NAMES.findall(text_of(client, LIST, query)))


def test_apps_of_others_are_there_for_whoever_manages_tokens(
    staff: Staff, ana: User
) -> None:
    row = app(ana)
    kim = staff("view_tool")
    assert names(kim) == []
    assert kim.get(page_of(row)).status_code == 302
    for what in ("revoke", "narrow", "replace", "forget"):
        assert kim.post(page_of(row, what)).status_code == 404
    for action in ("end_chosen", "narrow_to_reading"):
        kim.post(LIST, {"action": action, "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert (row.revoked, row.may) == (None, "change")


def test_the_filters(manager: Client, ana: User) -> None:
    bert = User.objects.create_user("bert")
    old = timezone.now() - timedelta(days=40)
    app(ana, name="Claude")
    app(bert, name="Cursor", host="", redirect="https://cursor.com/cb")
    app(bert, name="Idle", used=old, host="idle.example")
    AccessToken.objects.make(user=ana, name="laptop")
    assert names(manager, kind="app") == ["Claude", "Cursor", "Idle"]
    assert names(manager, kind="token") == ["laptop"]
    assert names(manager, kind="x") == ["Claude", "Cursor", "Idle", "laptop"]
    assert names(manager, whose="ana") == ["Claude", "laptop"]
    assert names(manager, host="claude.ai") == ["Claude"]
    assert names(manager, host="cursor.com") == ["Cursor"]
    assert names(manager, state="idle") == ["Idle"]
    assert names(manager, q="cursor.com") == ["Cursor"]
    assert names(manager, kind="app", whose="bert", state="good") == ["Cursor", "Idle"]
    for wrong in ("\0", "x' OR 1=1", "<b>"):
        assert names(manager, host=wrong) == names(manager, whose=wrong) == []
    listed = text_of(manager, LIST)
    assert "?host=claude.ai" in listed
    assert "?whose=bert" in listed


def test_the_page_of_an_app(manager: Client, ana: User) -> None:
    row = app(ana, tags="orders", may="read")
    text = words_in(manager.get(page_of(row)))
    for said in (
        "Handle: app_",
        "Program: claude.ai It is known by a document of claude.ai.",
        "Answers go to: https://claude.ai/api/callback",
        "Whose: ana",
        "Servers: Support desk",
        "May: Read",
        "Asked to: look things up and change them",
        "Tags: orders",
        "Until: never",
        "Last used: never",
        "and alone may let it do more.",
    ):
        assert said in text
    assert "Replace…" not in text
    assert "Let it only look things up" not in text
    end(row, "refresh")
    assert "Its sign-in was used twice." in words_in(manager.get(page_of(row)))


def test_no_field_widens(admin_client: Client, manager: Client, ana: User) -> None:
    row = app(ana, may="read", tags="orders", until=timezone.now())
    rows = AccessToken.objects.values(), Connection.objects.values()
    before = [each.get() for each in rows]
    fields = (*AccessToken._meta.concrete_fields, *Connection._meta.concrete_fields)
    sent = {
        **{field.attname: "" for field in fields},
        "may": "change",
        "may_ask": "change",
        "until": "2099-01-01",
        "expires": "2099-01-01",
        "which": "all",
        "ends": "365",
        "everywhere": "1",
        "servers": [1, 2, 3],
        "name": row.name,
    }
    action = {"action": "narrow_to_reading", "_selected_action": [row.pk]}
    for client in (admin_client, manager):
        for what in ("change", "narrow", "replace"):
            client.post(page_of(row, what), sent)
        client.post(LIST, {**sent, **action})
    assert before == [each.all().get() for each in rows]
    servers = AccessToken.objects.get().servers.values_list("slug", flat=True)
    assert [*servers] == ["support"]


def test_it_is_narrowed(manager: Client, ana: User) -> None:
    row = app(ana)
    narrow = page_of(row, "narrow")
    assert "Let it only look things up" in words_in(manager.get(page_of(row)))
    assert manager.get(narrow).status_code == 405
    said = words_in(manager.post(narrow, follow=True))
    assert "may only look things up from now on." in said
    assert AccessToken.objects.get().may == "read"
    said = words_in(manager.post(narrow, follow=True))
    assert "may only look things up already." in said
    token, _ = AccessToken.objects.make(user=ana, name="laptop", may="change")
    assert manager.post(page_of(token, "narrow")).status_code == 404
    logged = LogEntry.objects.get().change_message
    assert logged == f"Let the connected app “{row}” only look things up."


def test_those_chosen_are_narrowed_and_tokens_stay(manager: Client, ana: User) -> None:
    rows = [app(ana), app(ana), app(ana, may="read")]
    token, _ = AccessToken.objects.make(user=ana, name="laptop", may="change")
    end(rows[1], "person")
    keys = [each.pk for each in (*rows, token)]
    sent = {"action": "narrow_to_reading", "_selected_action": keys}
    said = words_in(manager.post(LIST, sent, follow=True))
    assert "1 connected app may only look things up from now on." in said
    may = dict(AccessToken.objects.values_list("pk", "may"))
    assert [may[key] for key in keys] == ["read", "change", "read", "change"]


def test_all_that_is_listed_is_ended(manager: Client, ana: User) -> None:
    kept = app(ana, name="Kept", host="", redirect="https://other.example/cb")
    token, _ = AccessToken.objects.make(user=ana, name="laptop")
    rows = [app(ana) for _ in range(3)]
    # Its program ended it, and a company would let it in again.
    end(rows[2], "client")
    Connection.objects.filter(pk=rows[2].pk).update(issuer="acme")
    chosen = {"select_across": "1", "_selected_action": [rows[0].pk]}
    sent = {"action": "end_chosen", **chosen}
    response = manager.post(f"{LIST}?kind=app&host=claude.ai", sent, follow=True)
    assert "Ended: 3 connected apps let nobody in any more." in words_in(response)
    open_rows = AccessToken.objects.filter(revoked=None)
    assert {each.pk for each in open_rows} == {kept.pk, token.pk}
    assert Connection.objects.filter(ended="staff").count() == 3
    both = {"action": "end_chosen", "_selected_action": [kept.pk, token.pk]}
    said = words_in(manager.post(LIST, both, follow=True))
    assert "Ended: 1 connected app lets nobody in any more." in said
    assert "Deleted: 1 token lets nobody in any more." in said


def test_it_is_ended_by_staff_and_taken_off(manager: Client, ana: User) -> None:
    row = app(ana)
    IssuedToken.objects.create(
        digest="d" * 64, token=row, created=timezone.now(), expires=timezone.now()
    )
    response = manager.post(page_of(row, "revoke"), follow=True)
    assert "Ended: “Claude" in words_in(response)
    assert Connection.objects.get().ended == "staff"
    assert "Staff ended it." in words_in(manager.get(page_of(row)))
    manager.post(page_of(row, "forget"))
    assert not AccessToken.objects.exists()
    assert not Connection.objects.exists()


def test_nobody_replaces_it(admin_client: Client, admin_user: User) -> None:
    row = app(admin_user)
    replace = page_of(row, "replace")
    for response in (
        admin_client.get(replace, follow=True),
        admin_client.post(replace, {"overlap": "0", "once": "0" * 32}, follow=True),
    ):
        assert "A connected app is not replaced." in words_in(response)
    admin_client.post(page_of(row), {"name": "Another"})
    row.refresh_from_db()
    assert (row.name, row.may) == ("Another", "change")
    assert "Renamed this connected app" in LogEntry.objects.get().change_message


def test_whoever_deletes_a_user_deletes_the_apps(staff: Staff, ana: User) -> None:
    client = staff("delete_user", "view_user")
    app(ana)
    url = f"/admin/auth/user/{ana.pk}/delete/"
    assert "Are you sure" in text_of(client, url)
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert not Connection.objects.exists()


@pytest.mark.parametrize("count", [1, 60])
def test_the_pages_ask_no_more_for_many_apps(
    manager: Client, ana: User, count: int, django_assert_max_num_queries: Any
) -> None:
    rows = [app(ana) for _ in range(count)]
    mine = {"kind": "app", "whose": "ana", "host": "claude.ai"}
    with django_assert_max_num_queries(8):
        manager.get(LIST)
    with django_assert_max_num_queries(8):
        manager.get(LIST, mine)
    with django_assert_max_num_queries(10):
        manager.get(page_of(rows[0]))
