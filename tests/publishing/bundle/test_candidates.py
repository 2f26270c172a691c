"""Rows as a file would have them: what is set, and why they could not be saved."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.models import Prompt, Resource, Server, Tool
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.candidates import (
    apply_entry,
    chosen_in,
    in_columns,
    naturally,
    primary_keys_in,
    published_row,
    row_problems,
    server_demands,
    server_limits,
    unsaved_row,
    with_primary_keys,
    without_choice,
    working_copy,
)
from mcp_app.publishing.bundle.format import CHOICES, Entry, kind_of_model


def entry(model: Any = Tool, key: str = "a", **more: Any) -> Entry:
    given = {"working": {}, **more}
    return Entry(place="here", model=model, key=key, **given)


def server(**more: Any) -> Entry:
    return entry(Server, "shop", **more)


def test_a_new_server_is_not_published() -> None:
    row: Any = unsaved_row(server(access=("token",)))
    assert (row.slug, row.published, row.pk) == ("shop", None, None)


@pytest.mark.parametrize(
    ("source", "kind", "name", "uri"),
    [("code", "function", "Returns", "shop://r"), ("here", "text", "", "")],
)
def test_only_what_code_declares_is_found_by_its_name(
    source: str, kind: str, name: str, uri: str
) -> None:
    row: Any = unsaved_row(entry(Resource, "shop://r", source=source, name="Returns"))
    assert (row.source, row.kind, row.name, row.uri) == (source, kind, name, uri)


def test_a_file_stands_in_place_of_the_working_copy() -> None:
    row = Tool(name="a", title="Old", description="Old")
    apply_entry(row, entry(working={"name": "b", "title": "New"}))
    assert (row.name, row.title, row.description) == ("b", "New", "")


def test_what_holds_without_being_published_is_a_servers() -> None:
    row = Server(slug="shop", access="token,public", permission="shop.old", rule="r")
    before = row.access
    apply_entry(
        row,
        server(
            working={"title": "Shop", "chosen": {"tools": ["a"]}},
            access=("token", "public"),
            demands={"groups": "Support"},
            page_size=7,
        ),
    )
    assert (row.title, row.page_size) == ("Shop", 7)
    assert server_demands(row) == {"groups": "Support"}
    # The same ways, however they are written, are no change.
    assert row.access == before
    apply_entry(row, server(access=("public", "token"), page_size=7))
    assert row.access == "public token"
    assert server_limits(row) == {"access": ["public", "token"], "page_size": 7}


def test_what_is_shown_as_a_limit_is_no_content() -> None:
    row = Server(slug="shop", access="token", permission="shop.view", page_size=9)
    both = {"title": "Shop", "chosen": {}, **server_limits(row)}
    assert server_limits(row)["permission"] == "shop.view"
    assert in_columns(both) == {"title": "Shop"}


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ({"name": "a", "description": "x"}, []),
        ({"name": "a b"}, ["name"]),
        ({"name": ""}, ["name", "name"]),
        ({"name": "a" * 129}, ["name", "name"]),
        ({"name": "a", "timeout": 0.0}, ["timeout"]),
        ({"name": "a", "input_schema": {"type": "array"}}, ["input_schema"]),
        ({"name": "a", "tags": "a b!"}, ["tags"]),
    ],
)
def test_why_a_tool_cannot_be_saved(
    content: dict[str, Any], columns: list[str]
) -> None:
    row = published_row(entry(), content)
    assert [each.partition(": ")[0] for each in row_problems(row)] == columns


def test_a_prompt_has_problems_of_its_own() -> None:
    row = published_row(entry(Prompt), {"name": "a", "arguments": [{"name": "1"}]})
    assert [each.partition(": ")[0] for each in row_problems(row)] == ["arguments"]


@pytest.mark.parametrize(
    ("more", "columns"),
    [
        ({"access": ("token",)}, []),
        # It lets nobody in.
        ({"access": ()}, []),
        ({"access": ("no-such",)}, ["access"]),
        ({"access": ("token",), "page_size": 10**6}, ["page_size"]),
        ({"access": ("token",), "demands": {"permission": "x"}}, ["permission"]),
    ],
)
def test_why_a_server_cannot_be_saved(more: dict[str, Any], columns: list[str]) -> None:
    made = server(**more)
    row = unsaved_row(made)
    apply_entry(row, made)
    assert {each.partition(": ")[0] for each in row_problems(row)} == set(columns)


def test_what_code_declares_needs_a_name() -> None:
    row = unsaved_row(entry(key="a b", source="code", name="a b"))
    assert any(each.startswith("name: ") for each in row_problems(row))


# -- choices ---------------------------------------------------------------------------


KINDS = [kind_of_model(model) for model in CHOICES.values()]
EMPTY: dict[str, list[str]] = {name: [] for name in CHOICES}
NAMES: dict[str, dict[int, str]] = {
    **{kind: {} for kind in KINDS},
    "tool": {1: "zoo", 2: "ant"},
    "prompt": {1: "write"},
}
KEYS = {(kind, name): pk for kind, names in NAMES.items() for pk, name in names.items()}


def content(**chosen: Any) -> JsonObject:
    return {"title": "Shop", "chosen": chosen}


def test_one_key_of_two_kinds_names_two_rows() -> None:
    made = naturally(content(tools=[1, 2], prompts=[1]), NAMES)
    assert made["chosen"] == {**EMPTY, "tools": ["ant", "zoo"], "prompts": ["write"]}
    assert made["title"] == "Shop"


def test_what_is_gone_is_left_out() -> None:
    assert naturally(content(tools=[2, 9]), NAMES)["chosen"]["tools"] == ["ant"]


def test_there_and_back() -> None:
    stored = {"chosen": {**EMPTY, "tools": [1, 2], "prompts": [1]}}
    assert with_primary_keys(naturally(stored, NAMES), KEYS) == stored


def test_keys_are_sorted_where_they_are_stored() -> None:
    made = with_primary_keys(content(tools=["zoo", "ant"]), KEYS)
    assert made["chosen"]["tools"] == [1, 2]


def test_what_is_not_here_is_no_primary_key() -> None:
    with pytest.raises(KeyError):
        with_primary_keys(content(tools=["write"]), KEYS)


def test_a_content_without_a_choice_stays_as_it_is() -> None:
    plain: JsonObject = {"title": "Shop"}
    assert naturally(plain, NAMES) is plain
    assert with_primary_keys(plain, KEYS) is plain
    assert [*chosen_in(plain)] == []
    assert primary_keys_in(plain) == {kind: set() for kind in KINDS}
    assert without_choice(content(tools=[1])) == plain


def test_what_a_content_names() -> None:
    named = content(prompts=["write"], tools=["ant", "write"])
    assert {*chosen_in(named)} == {
        ("tool", "ant"),
        ("tool", "write"),
        ("prompt", "write"),
    }
    assert primary_keys_in(content(tools=[1, 1, 2]))["tool"] == {1, 2}


@pytest.mark.parametrize("selection", Server.Selection.values)
def test_only_a_server_that_chooses_has_a_choice(selection: str) -> None:
    server = Server(slug="default", title="Shop", selection=selection)
    made = working_copy(server, {"tools": ["zoo", "ant"]})
    assert made["title"] == "Shop"
    if selection == Server.Selection.CHOSEN:
        assert made["chosen"] == {**EMPTY, "tools": ["ant", "zoo"]}
    else:
        assert "chosen" not in made
