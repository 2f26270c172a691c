"""Connected apps in the admin: seen, narrowed and ended by staff, and never widened."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from mcp_app.models import AccessToken, Connection, IssuedToken
from tests.account.apps import app, end
from tests.admin.pages import page

pytestmark = pytest.mark.django_db

LIST = page("accesstoken")
NAMES = re.compile(r'field-name"><a [^>]*>([^<]+)</a>')


def text_of(response: Any) -> str:
    text = re.sub(r"<[^>]+>", " ", response.content.decode())
    return " ".join(html.unescape(text).split())


@pytest.fixture
def manager(staff: Callable[..., Client]) -> Client:
    return staff("manage_tokens")


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


def change(row: AccessToken) -> str:
    return page("accesstoken", "change", row.pk)


def names(client: Client, **query: str) -> list[str]:
    return sorted(NAMES.findall(client.get(LIST, query).content.decode()))


def test_apps_of_others_are_there_for_whoever_manages_tokens(
    staff: Callable[..., Client], ana: User
) -> None:
    row = app(ana)
    kim = staff("view_tool")
    assert names(kim) == []
    assert kim.get(change(row)).status_code == 302
    for what in ("revoke", "narrow", "replace", "forget"):
        assert kim.post(page("accesstoken", what, row.pk)).status_code == 404
    chosen = {"_selected_action": [row.pk]}
    for action in ("end_chosen", "narrow_to_reading"):
        kim.post(LIST, {"action": action, **chosen})
    assert AccessToken.objects.values("revoked", "may").get() == {
        "revoked": None,
        "may": "change",
    }


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
    listed = manager.get(LIST).content.decode()
    assert "?host=claude.ai" in listed
    assert "?whose=bert" in listed


def test_the_page_of_an_app(manager: Client, ana: User) -> None:
    row = app(ana, tags="orders", may="read")
    text = text_of(manager.get(change(row)))
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
    assert "Its sign-in was used twice." in text_of(manager.get(change(row)))


def test_no_field_widens(admin_client: Client, manager: Client, ana: User) -> None:
    row = app(ana, may="read", tags="orders", until=timezone.now())
    before = (
        AccessToken.objects.values().get(),
        Connection.objects.values().get(),
    )
    columns = {field.attname: "" for field in AccessToken._meta.concrete_fields}
    columns |= {field.attname: "" for field in Connection._meta.concrete_fields}
    sent = {
        **columns,
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
    for client in (admin_client, manager):
        for url in (
            change(row),
            page("accesstoken", "narrow", row.pk),
            page("accesstoken", "replace", row.pk),
        ):
            client.post(url, sent)
        client.post(
            LIST,
            {**sent, "action": "narrow_to_reading", "_selected_action": [row.pk]},
        )
    assert before == (
        AccessToken.objects.values().get(),
        Connection.objects.values().get(),
    )
    assert [each.slug for each in AccessToken.objects.get().servers.all()] == [
        "support"
    ]


def test_it_is_narrowed(manager: Client, ana: User) -> None:
    row = app(ana)
    narrow = page("accesstoken", "narrow", row.pk)
    assert "Let it only look things up" in text_of(manager.get(change(row)))
    assert manager.get(narrow).status_code == 405
    said = text_of(manager.post(narrow, follow=True))
    assert "may only look things up from now on." in said
    assert AccessToken.objects.get().may == "read"
    assert "may only look things up already." in text_of(
        manager.post(narrow, follow=True)
    )
    token, _ = AccessToken.objects.make(user=ana, name="laptop", may="change")
    url = page("accesstoken", "narrow", token.pk)
    assert manager.post(url).status_code == 404
    assert [each.change_message for each in LogEntry.objects.all()] == [
        f"Let the connected app “{row}” only look things up."
    ]


def test_those_chosen_are_narrowed_and_tokens_stay(manager: Client, ana: User) -> None:
    rows = [app(ana), app(ana), app(ana, may="read")]
    token, _ = AccessToken.objects.make(user=ana, name="laptop", may="change")
    end(rows[1], "person")
    sent = {
        "action": "narrow_to_reading",
        "_selected_action": [each.pk for each in (*rows, token)],
    }
    said = text_of(manager.post(LIST, sent, follow=True))
    assert "1 connected app may only look things up from now on." in said
    may = dict(AccessToken.objects.values_list("pk", "may"))
    assert may == {
        rows[0].pk: "read",
        rows[1].pk: "change",
        rows[2].pk: "read",
        token.pk: "change",
    }


def test_all_that_is_listed_is_ended(manager: Client, ana: User) -> None:
    kept = app(ana, name="Kept", host="", redirect="https://other.example/cb")
    token, _ = AccessToken.objects.make(user=ana, name="laptop")
    rows = [app(ana) for _ in range(3)]
    sent = {
        "action": "end_chosen",
        "select_across": "1",
        "_selected_action": [rows[0].pk],
    }
    response = manager.post(f"{LIST}?kind=app&host=claude.ai", sent, follow=True)
    assert "Ended: 3 connected apps let nobody in any more." in text_of(response)
    open_rows = AccessToken.objects.filter(revoked=None)
    assert {each.pk for each in open_rows} == {kept.pk, token.pk}
    assert Connection.objects.filter(ended="staff").count() == 3
    both = {"action": "end_chosen", "_selected_action": [kept.pk, token.pk]}
    said = text_of(manager.post(LIST, both, follow=True))
    assert "Ended: 1 connected app lets nobody in any more." in said
    assert "Deleted: 1 token lets nobody in any more." in said


def test_it_is_ended_by_staff_and_taken_off(manager: Client, ana: User) -> None:
    row = app(ana)
    IssuedToken.objects.create(
        digest="d" * 64, token=row, created=timezone.now(), expires=timezone.now()
    )
    revoke = page("accesstoken", "revoke", row.pk)
    assert "Ended: “Claude" in text_of(manager.post(revoke, follow=True))
    assert Connection.objects.get().ended == "staff"
    assert "Staff ended it." in text_of(manager.get(change(row)))
    manager.post(page("accesstoken", "forget", row.pk))
    assert not AccessToken.objects.exists()
    assert not Connection.objects.exists()


def test_nobody_replaces_it(admin_client: Client, admin_user: User) -> None:
    row = app(admin_user)
    replace = page("accesstoken", "replace", row.pk)
    for response in (
        admin_client.get(replace, follow=True),
        admin_client.post(replace, {"overlap": "0", "once": "0" * 32}, follow=True),
    ):
        assert "A connected app is not replaced." in text_of(response)
    sent = {"name": "Another"}
    admin_client.post(change(row), sent)
    row.refresh_from_db()
    assert (row.name, row.may) == ("Another", "change")
    assert "Renamed this connected app" in LogEntry.objects.get().change_message


def test_whoever_deletes_a_user_deletes_the_apps(
    staff: Callable[..., Client], ana: User
) -> None:
    client = staff("delete_user", "view_user")
    app(ana)
    url = f"/admin/auth/user/{ana.pk}/delete/"
    assert "Are you sure" in client.get(url).content.decode()
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert not Connection.objects.exists()


@pytest.mark.parametrize("count", [1, 60])
def test_the_pages_ask_no_more_for_many_apps(
    manager: Client, ana: User, count: int, django_assert_max_num_queries: Any
) -> None:
    rows = [app(ana) for _ in range(count)]
    with django_assert_max_num_queries(8):
        manager.get(LIST)
    with django_assert_max_num_queries(8):
        manager.get(LIST, {"kind": "app", "whose": "ana", "host": "claude.ai"})
    with django_assert_max_num_queries(10):
        manager.get(change(rows[0]))
