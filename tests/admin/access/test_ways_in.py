"""Who may come in: the boxes that were ticked, their order, and the word public."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.admin.access.conditions import AccessField, AccessWidget, Answer, answer_of


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


def test_the_word_that_confirms() -> None:
    assert sent(confirm=" public ").confirmed == "public"
    assert sent().confirmed == ""


def boxes(value: Any) -> dict[str, Any]:
    context = AccessWidget().get_context("access", value, None)
    return {each.name: each for each in context["boxes"]}


def test_each_way_of_the_settings_has_a_box() -> None:
    found = boxes("header")
    assert {name: box.is_ticked for name, box in found.items()} == {
        "token": False,
        "header": True,
        "drf": False,
        "keycloak": False,
    }
    assert str(found["token"].label) == "Access token"
    assert found["token"].path == ""
    assert found["header"].path == "tests.serving.by_header"
    assert found["drf"].path == "shop.Basic"
    issuer = found["keycloak"]
    assert str(issuer.label) == "Users of https://id.example.com/realms/staff"
    assert issuer.path == ""
    assert not any(box.is_lacking for box in found.values())


def test_a_way_that_the_settings_lack_can_be_unticked() -> None:
    gone = boxes("gone public")["gone"]
    assert (gone.is_ticked, gone.is_lacking) == (True, True)
    assert "public" not in boxes("gone public")


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
