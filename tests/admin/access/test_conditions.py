"""What has to hold so that somebody sees a row, in order, and what would change it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import Q
from pytest_django import Settings

from mcp_app.admin.access.conditions import conditions, gates_without_stops
from mcp_app.admin.forms.server import AccessField, AccessWidget, Answer, answer_of
from mcp_app.auth import user_queries
from mcp_app.auth.user_queries import KnownGroup
from mcp_app.catalog.registry import mcp
from mcp_app.interface.principal import AccessRequest, Rule
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import DefinitionVersion, Prompt, Tool

VERSION = DefinitionVersion(number=1)
OPEN = ServerDefinition(slug="shop", title="Shop", access=("token",))


def tool(**columns: Any) -> Tool:
    return Tool(**{"pk": 7, "name": "find", "published": VERSION, **columns})


def server(**more: Any) -> ServerDefinition:
    return ServerDefinition(**{"slug": "shop", "access": ("token",), **more})


def closed(row: Any, at: ServerDefinition | None = OPEN, *tags: str) -> list[str]:
    """Return why each gate is closed, "" for one that is open."""
    return [each.closed for each in gates_without_stops(row, at, frozenset(tags))]


# -- gates -------------------------------------------------------------------------


def test_all_gates_of_a_definition_are_open() -> None:
    gates = list(gates_without_stops(tool(), OPEN, frozenset()))
    assert [(each.closed, each.change) for each in gates] == [("", "")] * 3


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"published": None, "broken": "Gone."}, "It is not published."),
        ({"broken": "G\u202eone."}, "G⟦U+202E⟧one."),
    ],
)
def test_a_row_that_is_not_served(columns: dict[str, Any], why: str) -> None:
    row = Prompt(**{"pk": 7, "name": "p", "published": VERSION, **columns})
    assert closed(row) == [why, "", ""]


@pytest.mark.parametrize(
    ("at", "tags", "offered"),
    [
        (server(selection="all"), (), True),
        (server(selection="tags", tags=frozenset({"a", "b"})), ("b",), True),
        (server(selection="tags", tags=frozenset({"a"})), ("b",), False),
        (server(selection="tags", tags=frozenset({"a"})), (), False),
        (server(selection="chosen", chosen=frozenset({("tool", "7")})), (), True),
        (server(selection="chosen", chosen=frozenset({("prompt", "7")})), (), False),
    ],
)
def test_what_a_server_offers(
    at: ServerDefinition, tags: tuple[str, ...], offered: bool
) -> None:
    _, gate, _ = gates_without_stops(tool(), at, frozenset(tags))
    assert (gate.closed == "") is offered
    if not offered:
        assert gate.closed == "The server “shop” does not offer this definition."
        assert ("Give this definition a tag" in gate.change) is (at.selection == "tags")


def test_several_ways_in_that_the_settings_lack() -> None:
    why = "The server lets nobody in: the settings have no authentication method"
    at = server(access=("token", "gone", "away"))
    assert closed(tool(), at)[-1] == f"{why} “away or gone”."


# -- conditions --------------------------------------------------------------------


@pytest.fixture
def rules() -> Iterator[None]:
    made = {
        "plain": Rule("plain", judge),
        "calls": Rule("calls", judge, arguments=True),
        "object": Rule("object", judge, arguments=True, object=True),
    }
    mcp.rules.update(made)
    yield
    for key in made:
        del mcp.rules[key]


def judge(asked: AccessRequest) -> bool:
    return True


def of(
    own: AccessRequirements,
    by_server: AccessRequirements = NO_REQUIREMENTS,
    *,
    is_server: bool = False,
) -> list[Any]:
    known = [KnownGroup(1, "Support", 2, frozenset())]
    return conditions(by_server, own, known, is_server=is_server)


def test_the_server_is_asked_first() -> None:
    own = AccessRequirements(permissions=("shop.view",), rules=("gone",))
    found = of(own, AccessRequirements(permissions=("shop.enter",)))
    assert [each.label for each in found] == [
        "Required by the server: permission shop.enter",
        "permission shop.view",
        "rule in code: gone",
    ]


def test_of_a_server_its_own_demands_are_all() -> None:
    demands = AccessRequirements(permissions=("shop.enter",))
    found = of(NO_REQUIREMENTS, demands, is_server=True)
    assert [each.label for each in found] == ["permission shop.enter"]
    assert of(NO_REQUIREMENTS) == []


def test_a_group_that_there_is_not_is_named() -> None:
    support = frozenset({"Support"})
    first, second = of(AccessRequirements(groups=(support | {"Gone"}, support)))
    assert first.label == "group Gone or Support"
    assert first.note == "There is no group “Gone”."
    assert second.note == ""


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("key", "which", "note"),
    [
        ("plain", None, "so it can only be checked for one person at a time."),
        ("calls", None, "may refuse the call because of its arguments."),
        ("object", user_queries.EVERYBODY, "show the template in any case."),
        ("gone", user_queries.NOBODY, "has no rule “gone”, so nobody is let in."),
    ],
)
def test_a_rule(key: str, which: Q | None, note: str) -> None:
    (found,) = of(AccessRequirements(rules=(key,)))
    assert found.which == which
    assert found.note.endswith(note)
    assert ("at each call" in found.note) is (key == "calls")


# -- ways in ---------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _ways(settings: Settings) -> None:
    settings.MCP = {
        "AUTHENTICATION": {
            "token": "mcp_app.authentication.access_token",
            "header": "tests.serving.by_header",
            "drf": {"path": "shop.Basic"},
            "keycloak": {
                "path": "mcp_app.authentication.issuer",
                "issuer": "https://id.example.com/realms/staff",
            },
        }
    }


def sent(*names: str, asked: str = "", **more: str) -> Answer:
    data = {f"access-way-{name}": "on" for name in names}
    data |= {f"access-{key}": value for key, value in more.items()}
    read = AccessWidget().value_from_datadict
    answer: Answer = read({**data, "access-asked": asked}, None, "access")
    return answer


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (sent(), ()),
        (sent("token", "header"), ("token", "header")),
        # What was ticked before keeps its place; what is new comes behind.
        (
            sent("token", "header", "drf", asked="header token"),
            ("header", "token", "drf"),
        ),
        (sent("token", asked="header token"), ("token",)),
        (sent("token", public="on"), ("token", "public")),
        (sent("token", public="on", asked="public token"), ("public", "token")),
        # Nobody is let in by the order alone.
        (sent(asked="header public"), ()),
    ],
)
def test_what_was_ticked(answer: Answer, names: tuple[str, ...]) -> None:
    assert answer.names == names


def boxes(value: Any) -> dict[str, Any]:
    context = AccessWidget().get_context("access", value, None)
    return {each["name"]: each for each in context["boxes"]}


def test_each_way_of_the_settings_has_a_box() -> None:
    found = boxes("header")
    assert [name for name, box in found.items() if box["is_ticked"]] == ["header"]
    assert {name: (str(box["label"]), box["path"]) for name, box in found.items()} == {
        "token": ("Access token", ""),
        "header": (str(found["header"]["label"]), "tests.serving.by_header"),
        "drf": (str(found["drf"]["label"]), "shop.Basic"),
        "keycloak": ("Users of https://id.example.com/realms/staff", ""),
    }
    assert not any(box["is_lacking"] for box in found.values())


@pytest.mark.parametrize(
    ("value", "is_public", "asks"),
    [
        ("token", False, True),
        ("public", True, False),
        # It was not saved yet: the word is asked for again.
        (Answer(("public",)), True, True),
        (Answer(("token",)), False, True),
        (None, False, True),
    ],
)
def test_when_the_word_is_asked_for(value: Any, is_public: bool, asks: bool) -> None:
    context = AccessWidget().get_context("access", value, None)
    assert (context["is_public"], context["asks"]) == (is_public, asks)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("token", Answer(("token",)), False),
        ("token,header", Answer(("header", "token")), False),
        ("", Answer(), False),
        ("token", Answer(), True),
        ("token", Answer(("token", "public")), True),
        # A typed word alone changes nothing.
        ("token", Answer(("token",), "public"), False),
    ],
)
def test_the_order_is_no_change(before: str, after: Answer, changed: bool) -> None:
    assert AccessField().has_changed(before, after) is changed


def test_an_answer_is_itself() -> None:
    answer = Answer(("token",), "public")
    assert answer_of(answer) is answer
    assert answer_of(None) == Answer()
    assert answer_of("a, b a") == Answer(("a", "b"))
