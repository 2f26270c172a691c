"""What a bundle is made of: entries, their names, and the hash of a content."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.models.versions import hash_of
from mcp_app.publishing.bundle.format import (
    CHOICES,
    LISTS,
    BundleRefused,
    Entry,
    PublishedContent,
    key_column,
    kind_of_model,
    natural_key_of,
)


def entry(model: Any = Tool, **more: Any) -> Entry:
    return Entry(place="tools[0]", model=model, key="a", working={"name": "a"}, **more)


@pytest.mark.parametrize(
    ("row", "kind", "column"),
    [
        (Server(slug="shop"), "server", "slug"),
        (Tool(name="shop"), "tool", "name"),
        (Prompt(name="shop"), "prompt", "name"),
        (Resource(name="x", uri="shop"), "resource", "uri"),
        (
            ResourceTemplate(name="x", uri_template="shop"),
            "resourcetemplate",
            "uri_template",
        ),
    ],
)
def test_what_names_a_row(row: Any, kind: str, column: str) -> None:
    assert (kind_of_model(type(row)), key_column(type(row))) == (kind, column)
    assert natural_key_of(row) == "shop"


def test_servers_come_first_and_a_choice_is_of_each_kind() -> None:
    assert next(iter(LISTS.values())) is Server
    assert [Server, *CHOICES.values()] == [*LISTS.values()]
    for name, model in CHOICES.items():
        assert Server._meta.get_field(name).related_model is model


def test_where_an_entry_comes_from() -> None:
    made = [entry(), entry(source="code"), entry(Server)]
    assert [each.is_defined_by_staff for each in made] == [True, False, False]
    assert made[1].identity == ("tool", "a")


def test_the_contents_of_an_entry() -> None:
    published = PublishedContent(number=1, hash="", content={"name": "b"})
    assert entry().all_contents() == [{"name": "a"}]
    assert entry(published=published).all_contents() == [{"name": "a"}, {"name": "b"}]


def test_people_are_told_the_kind_and_the_name() -> None:
    assert str(entry()) == "tool “a”"
    assert str(entry(ResourceTemplate)) == "resource template “a”"


def test_the_order_of_members_is_part_of_a_hash() -> None:
    assert hash_of({"a": 1, "b": 2}) != hash_of({"b": 2, "a": 1})


def test_a_refusal_says_every_problem() -> None:
    refused = BundleRefused(each for each in ("One.", "Two."))
    assert refused.problems == ("One.", "Two.")
    assert str(refused) == "One. Two."
