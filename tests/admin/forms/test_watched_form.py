from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client

from mcp_app.admin.forms.watched_form import field_digests
from mcp_app.models import (
    Blob,
    DefinitionRow,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from tests.admin.pages import (
    errors,
    fill_in,
    fill_in_again,
    form_of,
    page_of,
    saved,
    shown_values,
)

pytestmark = pytest.mark.django_db

Meanwhile: TypeAlias = Callable[..., tuple[str, Any]]

CONFIG = '{"content": [{"type": "text", "text": "a"}]}'


@pytest.fixture
def tool() -> Tool:
    return Tool.objects.create(name="a", title="Before", config=CONFIG, tags="x")


@pytest.fixture
def meanwhile(admin_client: Client, admin_user: User) -> Meanwhile:
    """Return a function that opens the page of a row, and then saves the row.

    It returns the address of the page, and the page as it was before.
    """

    def save(row: DefinitionRow, **columns: Any) -> tuple[str, Any]:
        url = page_of(row)
        opened = admin_client.get(url)
        for name, value in {**columns, "updated_by": admin_user}.items():
            setattr(row, name, value)
        row.save()
        return url, opened

    return save


def test_what_someone_else_saved_meanwhile_is_not_overwritten(
    admin_client: Client, meanwhile: Meanwhile, tool: Tool
) -> None:
    url, opened = meanwhile(tool, title="Theirs", description="<b>Hers</b>")
    response = fill_in_again(admin_client, url, opened, text="b", title="Mine")
    assert "admin saved this tool at" in errors(response)["__all__"]
    tool.refresh_from_db()
    assert tool.title == "Theirs"
    # The text is still there, and the page says what differs.
    assert shown_values(response)["title"] == "Mine"
    told = form_of(response).differences  # type: ignore[attr-defined]
    assert ("Title", "Theirs", "Mine") in told
    assert ("Description", "<b>Hers</b>", "(empty)") in told
    text = response.content.decode()
    assert "&lt;b&gt;Hers&lt;/b&gt;" in text
    assert "<b>Hers" not in text


def test_hints_differ_in_the_words_of_the_page(
    admin_client: Client, meanwhile: Meanwhile, tool: Tool
) -> None:
    url, opened = meanwhile(tool, read_only=True)
    response = fill_in_again(admin_client, url, opened, changes="adds")
    told = form_of(response).differences  # type: ignore[attr-defined]
    assert {label for label, _theirs, _mine in told} == {"What it changes"}
    merged = fill_in_again(admin_client, url, response, _mine="Keep")
    assert shown_values(merged)["changes"] == "adds"


def test_mine_goes_on_top_of_hers(
    admin_client: Client, meanwhile: Meanwhile, tool: Tool
) -> None:
    url, opened = meanwhile(tool, title="Theirs", description="Hers", tags="y")
    typed = {"title": "Mine", "text": "b {{c}}", "input_schema-0-name": "c"}
    merged = conflict_on_top(admin_client, url, opened, **typed)
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
    admin_client: Client, meanwhile: Meanwhile, tool: Tool
) -> None:
    url, opened = meanwhile(tool, title="Theirs")
    merged = conflict_on_top(admin_client, url, opened, title="Mine")
    meanwhile(tool, title="Theirs again")
    again = fill_in_again(admin_client, url, merged)
    assert "__all__" in errors(again)
    tool.refresh_from_db()
    assert tool.title == "Theirs again"


def test_a_field_with_an_error_is_mine(
    admin_client: Client, meanwhile: Meanwhile, tool: Tool
) -> None:
    url, opened = meanwhile(tool, title="Theirs")
    merged = fill_in_again(admin_client, url, opened, name="a b", _mine="Keep")
    shown = shown_values(merged)
    assert (shown["name"], shown["title"]) == ("a b", "Theirs")


@pytest.mark.parametrize("sent", ["", "no json", "[1]", "[" * 100_000])
def test_a_page_that_says_nothing_of_what_it_showed_keeps_all_of_mine(
    admin_client: Client, meanwhile: Meanwhile, tool: Tool, sent: str
) -> None:
    url, opened = meanwhile(tool, title="Theirs")
    merged = fill_in_again(admin_client, url, opened, opened_fields=sent, _mine="Keep")
    assert shown_values(merged)["title"] == "Before"


def test_someone_who_saved_the_same_is_told_of_too(
    admin_client: Client, meanwhile: Meanwhile, tool: Tool
) -> None:
    url, opened = meanwhile(tool)
    response = fill_in_again(admin_client, url, opened)
    assert "What differs" not in response.content.decode()
    assert "Put my changes into their version" in response.content.decode()
    merged = fill_in_again(admin_client, url, response, _mine="Keep")
    text = merged.content.decode()
    assert "Nothing is saved yet" in text
    assert "Put my changes" not in text
    assert saved(fill_in_again(admin_client, url, merged))


def test_without_a_conflict_the_button_only_saves(
    admin_client: Client, tool: Tool
) -> None:
    assert saved(fill_in(admin_client, page_of(tool), title="Mine", _mine="Keep"))


def conflict_on_top(client: Client, url: str, opened: Any, **typed: Any) -> Any:
    """Type into a page that was opened before, and put it on top of what is saved."""
    conflict = fill_in_again(client, url, opened, **typed)
    form: Any = form_of(conflict)
    assert form.is_conflict
    # All is told in words.
    assert not any('":' in theirs + mine for _label, theirs, mine in form.differences)
    merged = fill_in_again(client, url, conflict, _mine="Keep")
    assert errors(merged) == {}
    return merged


def kept(content: bytes, media_type: str = "image/png") -> str:
    return Blob.objects.keep(content, media_type).digest


def test_a_text_and_a_table_that_i_did_not_touch_are_hers(
    admin_client: Client, meanwhile: Meanwhile, tool: Tool
) -> None:
    """Whatever blanks their JSON has."""
    tool.input_schema = '{"type":"object","properties":{"a":{"type":"string"}}}'
    tool.save()
    url, opened = meanwhile(
        tool,
        config='{"content": [{"type": "text", "text": "hers"}]}',
        input_schema='{"type":"object","properties":{"hers":{"type":"string"}}}',
    )
    shown = shown_values(conflict_on_top(admin_client, url, opened, title="Mine"))
    assert (shown["title"], shown["text"]) == ("Mine", "hers")
    assert shown["input_schema-0-name"] == "hers"


def with_file(text: str, upload: str, media_type: str = "image/png") -> str:
    blocks: list[dict[str, str]] = [{"type": "text", "text": text}]
    blocks.append({"type": "image", "upload": upload, "mimeType": media_type})
    return json.dumps({"content": blocks})


def test_her_newer_file_stays_beside_my_text(
    admin_client: Client, meanwhile: Meanwhile
) -> None:
    old, newer, newest = kept(b"1"), kept(b"2", "image/gif"), kept(b"3", "image/webp")
    tool = Tool.objects.create(name="a", config=with_file("a", old))
    url, opened = meanwhile(tool, config=with_file("a", newer, "image/gif"))
    merged = conflict_on_top(admin_client, url, opened, text="mine")
    shown = shown_values(merged)
    assert (shown["text"], shown["file-kept"]) == ("mine", newer)
    assert shown["file-type"] == "image/gif"
    # So does one that comes while I look at what was put on top.
    tool.refresh_from_db()
    meanwhile(tool, config=with_file("a", newest, "image/webp"))
    again = conflict_on_top(admin_client, url, merged)
    shown = shown_values(again)
    assert (shown["text"], shown["file-kept"]) == ("mine", newest)
    assert saved(fill_in_again(admin_client, url, again))
    tool.refresh_from_db()
    expected = with_file("mine", newest, "image/webp")
    assert json.loads(tool.config) == json.loads(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"text": "old"}', '{"upload":"%s"}'),
        ('{"upload":"%s"}', '{"text": "hers"}'),
        ('{"upload":"%s"}', '{"upload":"%s"}'),
    ],
)
def test_the_contents_of_a_resource_are_hers(
    admin_client: Client, meanwhile: Meanwhile, before: str, after: str
) -> None:
    old, newer = kept(b"1"), kept(b"2", "application/pdf")
    row = Resource.objects.create(
        name="a",
        uri="x:a",
        mime_type="image/png",
        config=before.replace("%s", old),
        size=1,
    )
    after = after.replace("%s", newer)
    url, opened = meanwhile(row, config=after, mime_type="application/pdf")
    conflict = fill_in_again(admin_client, url, opened, title="Mine")
    merged = fill_in_again(admin_client, url, conflict, _mine="Keep")
    assert saved(fill_in_again(admin_client, url, merged))
    row.refresh_from_db()
    assert (row.title, row.mime_type) == ("Mine", "application/pdf")
    assert row.json("config") == json.loads(after)


def test_what_a_server_offers_is_hers_where_i_did_not_choose(
    admin_client: Client, tool: Tool
) -> None:
    server = Server.objects.create(slug="a", selection=Server.Selection.CHOSEN)
    prompt = Prompt.objects.create(name="p", config='{"messages": []}')
    url = page_of(server)
    opened = admin_client.get(url)
    server.prompts.add(prompt)
    server.save()
    merged = conflict_on_top(admin_client, url, opened, tools=[tool.pk])
    chosen = form_of(merged)
    assert list(map(int, chosen["tools"].value())) == [tool.pk]
    assert list(chosen["prompts"].value()) == [prompt.pk]


def test_suggestions_and_annotations_are_hers_where_i_did_not_touch_them(
    admin_client: Client, meanwhile: Meanwhile
) -> None:
    row = ResourceTemplate.objects.create(
        name="a", uri_template="x:{a}", config='{"text": "{{a}}"}'
    )
    hers = '{"audience": ["user"], "priority": 0.5}'
    url, opened = meanwhile(row, suggestions='{"a": ["hers"]}', annotations=hers)
    merged = conflict_on_top(admin_client, url, opened, importance="1")
    shown = shown_values(merged)
    assert (shown["suggestions-a"], shown["audience"]) == ("hers", "user")
    assert shown["importance"] == "1"
    assert saved(fill_in_again(admin_client, url, merged))
    row.refresh_from_db()
    assert row.json("annotations") == {"audience": ["user"], "priority": 1}
    _, opened = meanwhile(row, suggestions='{"a": ["hers again"]}')
    typed = {"suggestions-a": "mine"}
    shown = shown_values(conflict_on_top(admin_client, url, opened, **typed))
    assert shown["suggestions-a"] == "mine"


def test_two_change_one_call(admin_client: Client, meanwhile: Meanwhile) -> None:
    """Each has what they touched, also if the page was shown again in between."""
    before: Any = {"site": "helpdesk", "path": "/old", "limit": 5, "take": "a"}
    pairs = {each: {"name": each, "value": "1"} for each in "abc"}
    before["query"] = [pairs["a"], pairs["b"]]
    hers = {**before, "limit": 3, "method": "POST", "take": "b"}
    hers["query"] = [{**pairs["b"], "value": "2"}, pairs["c"]]
    tool = Tool.objects.create(name="t", kind="http", config=json.dumps(before))
    url, opened = meanwhile(tool, config=json.dumps(hers))
    again = fill_in_again(admin_client, url, opened, **{"show-config": "row"})
    mine = {"path": "/new", "limit": "7", "querys-0-value": "2", "querys-1-DELETE": "1"}
    typed = {f"config-0-{name}": each for name, each in mine.items()}
    merged = conflict_on_top(admin_client, url, again, **typed)
    assert saved(fill_in_again(admin_client, url, merged))
    tool.refresh_from_db()
    query = [{**pairs["a"], "value": "2"}, pairs["c"]]
    assert tool.json("config") == {**hers, "path": "/new", "limit": 7, "query": query}


def test_each_parameter_is_hers_or_mine_and_messages_are_as_a_whole(
    admin_client: Client, meanwhile: Meanwhile
) -> None:
    schema: Any = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = Tool.objects.create(name="a", config=CONFIG, input_schema=json.dumps(schema))
    hers = json.dumps({**schema, "required": ["a"]})
    url, opened = meanwhile(tool, input_schema=hers)
    added = {"input_schema-1-name": "b", "input_schema-1-required": "on"}
    merged = conflict_on_top(admin_client, url, opened, **added)
    assert saved(fill_in_again(admin_client, url, merged))
    tool.refresh_from_db()
    assert {*tool.json("input_schema")["required"]} == {"a", "b"}

    a, b, c = ({"role": "user", "content": {"type": "text", "text": t}} for t in "abc")
    prompt = Prompt.objects.create(name="p", config=json.dumps({"messages": [a, b]}))
    # What was the second one when I opened the page is the third one now.
    url, opened = meanwhile(prompt, config=json.dumps({"messages": [c, a, b]}))
    merged = conflict_on_top(admin_client, url, opened, **{"config-1-text": "mine"})
    assert saved(fill_in_again(admin_client, url, merged))
    prompt.refresh_from_db()
    texts = [each["content"]["text"] for each in prompt.json("config")["messages"]]
    assert texts == ["a", "mine"]


TEXT = forms.CharField(strip=False, required=False)
SEVERAL = forms.MultipleChoiceField()


@pytest.mark.parametrize(
    ("field", "shown", "sent", "is_touched"),
    [
        (TEXT, None, "", False),
        (TEXT, "a\nb", "a\r\nb", False),
        (forms.IntegerField(), 7, "7", False),
        (forms.BooleanField(required=False), True, "on", False),
        (SEVERAL, [2, 1], ["1", "2"], False),
        (SEVERAL, (), [], False),
        # What is no number is compared as it was typed.
        (forms.IntegerField(), "seven", "seven", False),
        (TEXT, "a", "A", True),
        (TEXT, "a", "a ", True),
        (forms.IntegerField(), 7, "8", True),
        (forms.IntegerField(), 7, "seven", True),
        (SEVERAL, [1], ["1", "2"], True),
        # A file can be put back nowhere.
        (forms.FileField(), None, "a", False),
    ],
)
def test_what_was_touched(
    field: forms.Field, shown: Any, sent: Any, is_touched: bool
) -> None:
    before = field_digests(field, shown)
    assert (before != field_digests(field, sent)) is is_touched
    # A page shows nothing of what it carries.
    assert all(len(each) == 16 for each in before.values())
