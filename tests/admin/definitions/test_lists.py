"""Filters and columns of the lists of definitions."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from django.test import Client, RequestFactory

from mcp_app.admin.definitions.lists import (
    NONE,
    ChangesFilter,
    ServerFilter,
    name_column,
    problems,
    state,
    tokens,
)
from mcp_app.admin.page.header import LOOKS, MEANS
from mcp_app.models import DefinitionVersion, Prompt, Server, State, Tool
from mcp_app.models.definitions import Source
from tests.admin.pages import Staff, page, text_of


def chosen(kind: Any, value: str) -> set[str]:
    """Return the names of the tools that a filter leaves."""
    request = RequestFactory().get("/")
    made = kind(request, {kind.parameter_name: [value]}, Tool, None)
    return {each.name for each in made.queryset(request, Tool.rows())}


# -- filters -----------------------------------------------------------------------


@pytest.mark.django_db
def test_what_a_tool_changes() -> None:
    for reads, deletes in product((None, True, False), repeat=2):
        hints = {"read_only": reads, "destructive": deletes}
        Tool.objects.create(name=f"{reads}-{deletes}", **hints)
    found = {each: chosen(ChangesFilter, each) for each in ChangesFilter.CHOICES}
    assert found == {
        "reads": {"True-None", "True-True", "True-False"},
        "changes": {"False-False"},
        "deletes": {"None-True", "True-True", "False-True"},
        "unsaid": {"None-None"},
    }
    assert len(chosen(ChangesFilter, "no-such")) == 9


@pytest.fixture
def tagged(db: None) -> None:
    rows = {"first": "a b", "last": "b,a", "longer": "ab a.b", "dotted": "a.b"}
    for name, tags in {**rows, "none": ""}.items():
        Tool.objects.create(name=name, tags=tags)


@pytest.mark.usefixtures("tagged")
@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ("a", {"first", "last"}),
        # It is no pattern.
        ("a.b", {"longer", "dotted"}),
        ("ab", {"longer"}),
        ("ab, a", {"longer", "first", "last"}),
        ("c", set()),
        ("", set()),
    ],
)
def test_servers_that_offer_what_has_a_tag(tags: str, names: set[str]) -> None:
    Server.objects.create(slug="shop", access="token", selection="tags", tags=tags)
    assert chosen(ServerFilter, "shop") == names


@pytest.mark.usefixtures("tagged")
def test_servers_that_offer_what_was_chosen_or_all() -> None:
    row = Server.objects.create(slug="shop", access="token", selection="chosen")
    row.tools.add(Tool.objects.get(name="none"))
    assert chosen(ServerFilter, "shop") == {"none"}
    everything = {each.name for each in Tool.objects.all()}
    Server.objects.update(selection="all")
    for slug in ("shop", "gone", "sh\0p"):
        assert chosen(ServerFilter, slug) == everything


# -- columns -----------------------------------------------------------------------


def test_problems_and_tokens() -> None:
    for counts, text in {
        (0, 0): NONE,
        (1, 0): "1 to fix",
        (0, 1): "1 piece of advice",
        (2, 3): "2 to fix, 3 pieces of advice",
    }.items():
        assert problems(Tool(to_fix=counts[0], advices=counts[1])) == text
    assert tokens(Tool()) == NONE
    assert tokens(Tool(tokens=7)).startswith("≈ 7<")


def test_what_stands_behind_a_name() -> None:
    assert "<b>" not in name_column(Tool(name="a", title="<b>"))
    written = name_column(Tool(name="a", title="A"))
    assert "<code>a</code> · Answer with a text" in written
    code = Prompt(name="a", title="A", source=Source.CODE, kind="function")
    assert "<code>a</code> · from code" in name_column(code)
    # A name without a title is shown once.
    assert name_column(Tool(name="hours")).count("hours") == 1


@pytest.mark.parametrize(
    ("columns", "held", "now", "title"),
    [
        ({}, False, State.UNPUBLISHED, ""),
        ({"broken": "G<b>one."}, False, State.BROKEN, "G&lt;b&gt;one."),
        # A stop is on: what is broken is of no account.
        ({"broken": "Gone."}, True, State.STOPPED, ""),
    ],
)
def test_a_state_is_a_mark_with_its_word(
    columns: dict[str, Any], held: bool, now: State, title: str
) -> None:
    version = DefinitionVersion(number=1) if "broken" in columns else None
    row = Tool(name="a", published=version, **columns)
    vars(row)["held"] = held
    mark = state(row)
    assert f'class="mcp-state {LOOKS[now]}"' in mark
    assert f'title="{title or MEANS[now]}"' in mark
    assert f">{now.label}<" in mark


def test_every_state_has_a_look_and_a_meaning() -> None:
    assert LOOKS.keys() == MEANS.keys() == {*State}


@pytest.mark.parametrize("model", ["tool", "resource", "resourcetemplate", "prompt"])
def test_an_empty_list_says_what_it_is_for(admin_client: Client, model: str) -> None:
    text = text_of(admin_client, page(model))
    assert "There is no" in text
    assert 'class="mcp-btn" href="' in text
    assert "There is no" not in text_of(admin_client, page(model), {"q": "nothing"})


def test_a_list_is_sorted_by_its_names(admin_client: Client) -> None:
    Tool.objects.create(name="a", title="A")
    assert "?o=-1" in text_of(admin_client, page("tool"), {"o": "1"})


@pytest.mark.django_db
def test_an_empty_list_offers_nothing_to_who_may_only_look(staff: Staff) -> None:
    text = text_of(staff("view_prompt"), page("prompt"))
    assert "There is no prompt yet" in text
    assert "Add prompt" not in text
