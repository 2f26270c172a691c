"""Rows that somebody else deleted while a page of them was open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client

from mcp_app.models import DefinitionVersion, Server, Stop, Tool
from mcp_app.models.definitions import Source
from tests.admin.pages import Staff, page, page_of, shown_values
from tests.admin.publishing.test_pages import sent, tool
from tests.published import published

pytestmark = pytest.mark.django_db

WHO = "The tool “A&lt;b&gt;” was deleted by kim ("


@pytest.fixture
def kim() -> Client:
    """Someone else, at another browser."""
    client = Client()
    client.force_login(User.objects.create_superuser("kim"))
    return client


@pytest.fixture
def row() -> Tool:
    return published(tool(title="A<b>"))


def delete(kim: Client, row: Tool) -> None:
    assert kim.post(page_of(row, "delete"), {"post": "yes"}).status_code == 302
    assert not Tool.objects.exists()


def told(response: Any, said: str = f"{WHO}") -> str:
    """Check that the list says it, and return the page."""
    assert response.redirect_chain[-1][0] == page("tool")
    text: str = response.content.decode()
    assert said in text
    assert not Tool.objects.exists()
    assert not DefinitionVersion.objects.filter(kind="tool").exists()
    assert not LogEntry.objects.exclude(action_flag__in=[ADDITION, DELETION]).exists()
    return text


def test_what_was_typed_makes_no_new_row(
    admin_client: Client, kim: Client, row: Tool
) -> None:
    url = page_of(row)
    typed = {**shown_values(admin_client.get(url)), "title": "Mine"}
    delete(kim, row)
    text = told(admin_client.post(url, typed, follow=True))
    assert "Nothing was saved." in text
    text = told(admin_client.post(url, {**typed, "_publish": "1"}, follow=True))
    assert "Nothing was saved." not in told(admin_client.get(url, follow=True))


@pytest.mark.parametrize("name", ["publish", "unpublish", "stop", "delete"])
def test_what_is_done_with_it_is_not_done(
    admin_client: Client, kim: Client, row: Tool, name: str
) -> None:
    data = {**sent(row), "post": "yes"}
    delete(kim, row)
    url = page_of(row, name)
    assert "Nothing was saved." in told(admin_client.post(url, data, follow=True))
    told(admin_client.get(url, follow=True))


def test_old_versions_and_the_history_are_gone_with_it(
    admin_client: Client, kim: Client, row: Tool
) -> None:
    delete(kim, row)
    for name in ("rollback", "version"):
        url = page_of(row, name, 1)
        told(admin_client.get(url, follow=True))
        told(admin_client.post(url, follow=True))
    told(admin_client.get(page_of(row, "history"), follow=True))
    told(admin_client.post(page_of(row, "reset"), follow=True))


def test_nobody_is_named_where_no_person_did_it(
    admin_client: Client, row: Tool
) -> None:
    key = row.pk
    row.delete()
    said = "This tool was deleted in the meantime. Nothing was saved."
    for name in ("change", "publish", "stop"):
        told(admin_client.post(page("tool", name, key), follow=True), said)
    for name in ("publish", "stop"):
        assert admin_client.get(page("tool", name, key)).status_code == 404


def test_who_may_not_look_is_told_nothing(staff: Staff, row: Tool) -> None:
    client, key = staff("view_prompt"), row.pk
    log(User.objects.get(), row)
    row.delete()
    for name in ("change", "publish", "history"):
        for ask in (client.get, client.post):
            assert ask(page("tool", name, key)).status_code == 403


def log(user: User, row: Tool) -> None:
    kind = ContentType.objects.get_for_model(Tool)
    LogEntry.objects.create(
        user=user,
        content_type=kind,
        object_id=str(row.pk),
        object_repr=str(row),
        action_flag=DELETION,
    )


@pytest.fixture
def gone_before_the_lock() -> Iterator[Callable[[Tool], None]]:
    """Return a function that lets a row go between its first look and its lock."""
    going: list[int] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found = execute(sql, params, many, context)
        if going and "SELECT" in sql and 'FROM "mcp_app_tool"' in sql:
            key = going.pop()
            Tool.objects.filter(pk=key).delete()
        return found

    with connection.execute_wrapper(wrapper):
        yield lambda row: going.append(row.pk)


@pytest.mark.parametrize("name", ["publish", "unpublish", "stop", "rollback"])
def test_a_row_that_goes_at_the_same_moment(
    admin_client: Client,
    row: Tool,
    name: str,
    gone_before_the_lock: Callable[[Tool], None],
) -> None:
    more = (1,) if name == "rollback" else ()
    data = sent(row)
    log(User.objects.create_user("kim"), row)
    gone_before_the_lock(row)
    response = admin_client.post(page_of(row, name, *more), data, follow=True)
    assert "deleted" in told(response)


def test_an_overlay_that_goes_at_the_same_moment(
    admin_client: Client, row: Tool, gone_before_the_lock: Callable[[Tool], None]
) -> None:
    Tool.objects.update(source=Source.CODE)
    log(User.objects.create_user("kim"), row)
    gone_before_the_lock(row)
    told(admin_client.post(page_of(row, "reset"), follow=True))


@pytest.mark.parametrize(
    "action", ["publish", "unpublish", "stop", "start", "export", "delete_selected"]
)
def test_chosen_rows_that_are_gone_are_named(
    admin_client: Client, kim: Client, row: Tool, action: str
) -> None:
    name = action if action == "delete_selected" else f"{action}_chosen"
    data = {"action": name, "_selected_action": [row.pk, 999], "confirmed": "yes"}
    delete(kim, row)
    text = told(admin_client.post(page("tool"), data, follow=True))
    assert "This tool was deleted in the meantime." in text
    assert "Nothing was saved" not in text


def test_the_others_are_done_with(admin_client: Client, kim: Client, row: Tool) -> None:
    other = tool(name="other")
    kim.post(page_of(row, "delete"), {"post": "yes"})
    data = {"action": "stop_chosen", "_selected_action": [row.pk, other.pk]}
    text = admin_client.post(page("tool"), data, follow=True).content.decode()
    assert WHO in text
    assert "1 was stopped." in text


@pytest.mark.parametrize("key", ["x", "", "1\0", "1 OR 1", "1" * 20, "1" * 5000])
def test_what_is_no_row_is_not_chosen(
    admin_client: Client, row: Tool, key: str
) -> None:
    data = {"action": "stop_chosen", "_selected_action": [key, row.pk]}
    text = admin_client.post(page("tool"), data, follow=True).content.decode()
    assert "Your choice is not in this list." in text
    assert not Stop.objects.exists()


def test_a_server_that_is_gone(admin_client: Client, kim: Client) -> None:
    server = Server.objects.create(slug="a", title="A")
    url = page_of(server)
    typed = shown_values(admin_client.get(url))
    kim.post(page_of(server, "delete"), {"post": "yes"})
    text = admin_client.post(url, typed, follow=True).content.decode()
    assert "The server “A” was deleted by kim" in text
    assert not Server.objects.filter(slug="a").exists()
