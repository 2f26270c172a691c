from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcp_app.models import Tool
from tests.admin.pages import (
    errors,
    fill_in,
    fill_in_again,
    form_of,
    page,
    saved,
    shown_values,
)

pytestmark = pytest.mark.django_db

CONFIG = '{"content": [{"type": "text", "text": "a"}]}'


@pytest.fixture
def tool() -> Tool:
    return Tool.objects.create(name="a", title="Before", config=CONFIG, tags="x")


def meanwhile(tool: Tool, user: User, **columns: Any) -> None:
    """Someone else saves the row."""
    for name, value in columns.items():
        setattr(tool, name, value)
    tool.updated_by = user
    tool.save()


def test_what_someone_else_saved_meanwhile_is_not_overwritten(
    admin_client: Client, admin_user: User, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user, title="Theirs")
    response = fill_in_again(admin_client, url, opened, text="b", title="Mine")
    assert "admin saved this tool at" in errors(response)["__all__"]
    tool.refresh_from_db()
    assert tool.title == "Theirs"
    # The text is still there.
    assert shown_values(response)["title"] == "Mine"


def test_the_second_person_sees_what_differs(
    admin_client: Client, admin_user: User, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user, title="Theirs", description="<b>Hers</b>")
    response = fill_in_again(admin_client, url, opened, title="Mine")
    differences = form_of(response).differences  # type: ignore[attr-defined]
    assert [(each.label, each.theirs, each.mine) for each in differences] == [
        ("Title", "Theirs", "Mine"),
        ("Description", "<b>Hers</b>", "(empty)"),
    ]
    text = response.content.decode()
    assert "&lt;b&gt;Hers&lt;/b&gt;" in text
    assert "<b>Hers" not in text


def test_hints_differ_in_the_words_of_the_page(
    admin_client: Client, admin_user: User, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user, read_only=True)
    response = fill_in_again(admin_client, url, opened, changes="adds")
    labels = {each.label for each in form_of(response).differences}  # type: ignore[attr-defined]
    assert labels == {"What it changes"}
    merged = fill_in_again(admin_client, url, response, _mine="Keep")
    assert shown_values(merged)["changes"] == "adds"


def test_mine_goes_on_top_of_hers(
    admin_client: Client, admin_user: User, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user, title="Theirs", description="Hers", tags="y")
    conflict = fill_in_again(
        admin_client,
        url,
        opened,
        **{"title": "Mine", "text": "b {{c}}", "input_schema-0-name": "c"},
    )
    merged = fill_in_again(admin_client, url, conflict, _mine="Keep")
    assert errors(merged) == {}
    shown = shown_values(merged)
    # What I touched is mine, and the rest is hers.
    assert (shown["title"], shown["text"]) == ("Mine", "b {{c}}")
    assert shown["input_schema-0-name"] == "c"
    assert (shown["description"], shown["tags"]) == ("Hers", "y")
    tool.refresh_from_db()
    assert tool.title == "Theirs"

    assert saved(fill_in_again(admin_client, url, merged))
    tool.refresh_from_db()
    assert (tool.title, tool.description, tool.tags) == ("Mine", "Hers", "y")
    assert tool.json("config")["content"][0]["text"] == "b {{c}}"
    assert list(tool.json("input_schema")["properties"]) == ["c"]


def test_a_third_save_in_between_is_told_again(
    admin_client: Client, admin_user: User, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user, title="Theirs")
    conflict = fill_in_again(admin_client, url, opened, title="Mine")
    merged = fill_in_again(admin_client, url, conflict, _mine="Keep")
    meanwhile(tool, admin_user, title="Theirs again")
    again = fill_in_again(admin_client, url, merged)
    assert "__all__" in errors(again)
    tool.refresh_from_db()
    assert tool.title == "Theirs again"


def test_a_field_with_an_error_is_mine(
    admin_client: Client, admin_user: User, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user, title="Theirs")
    merged = fill_in_again(admin_client, url, opened, name="a b", _mine="Keep")
    shown = shown_values(merged)
    assert (shown["name"], shown["title"]) == ("a b", "Theirs")


@pytest.mark.parametrize("sent", ["", "no json", "[1]"])
def test_a_page_that_says_nothing_of_what_it_showed_keeps_all_of_mine(
    admin_client: Client, admin_user: User, tool: Tool, sent: str
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user, title="Theirs")
    merged = fill_in_again(admin_client, url, opened, opened_columns=sent, _mine="Keep")
    assert shown_values(merged)["title"] == "Before"


def test_someone_who_saved_the_same_is_told_of_too(
    admin_client: Client, admin_user: User, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    opened = admin_client.get(url)
    meanwhile(tool, admin_user)
    response = fill_in_again(admin_client, url, opened)
    assert "What differs" not in response.content.decode()
    assert "Keep editing mine on top of theirs" in response.content.decode()
    merged = fill_in_again(admin_client, url, response, _mine="Keep")
    text = merged.content.decode()
    assert "Nothing is saved yet" in text
    assert "Keep editing mine" not in text
    assert saved(fill_in_again(admin_client, url, merged))


def test_without_a_conflict_the_button_only_saves(
    admin_client: Client, tool: Tool
) -> None:
    url = page("tool", "change", tool.pk)
    assert saved(fill_in(admin_client, url, title="Mine", _mine="Keep"))
