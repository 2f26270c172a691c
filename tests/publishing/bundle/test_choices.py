"""What a server chooses, by natural keys and by primary keys."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.models import Server
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.candidates import (
    chosen_in,
    naturally,
    primary_keys_in,
    with_primary_keys,
    without_choice,
    working_copy,
)
from mcp_app.publishing.bundle.format import CHOICES, kind_of

KINDS = [kind_of(model) for model in CHOICES.values()]
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
