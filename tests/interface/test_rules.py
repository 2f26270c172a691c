from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from mcp_app.interface import rules
from mcp_app.interface.rules import (
    NO_REQUIREMENTS,
    AccessRequirements,
    read_requirements,
)
from mcp_app.protocol.uri_templates import URI_LENGTH


@pytest.mark.parametrize("name", ["a", "Find.orders-2_b", "x" * 128])
def test_names_of_programs_are_fine(name: str) -> None:
    assert rules.name_problem(name) is None


@pytest.mark.parametrize("name", ["", "x" * 129, "two words", "naïve", "a/b", "a\n"])
def test_other_names_are_refused(name: str) -> None:
    problem = rules.name_problem(name)
    assert problem is not None
    assert "cannot be a name" in problem


@pytest.mark.parametrize(
    ("find_problem", "fine", "wrong"),
    [
        (rules.argument_problem, ("order", "_x-1"), ("1st", "x.y", "")),
        (rules.tag_problem, ("wetter", "größe:1"), ("two words", "x" * 65)),
        (rules.permission_problem, ("", "shop.view_order"), ("view_order", "a.b.c")),
    ],
)
def test_arguments_tags_and_permissions(
    find_problem: Callable[[str], str | None], fine: list[str], wrong: list[str]
) -> None:
    assert not any(map(find_problem, fine))
    assert all(map(find_problem, wrong))


def test_absolute_uris() -> None:
    uris = """
        shop://policy/returns test://static-text http://[2001:db8::1]/ x:
        https://user@example.org:8080/a/b?c=d/e?f#g urn:isbn:0451450523
        mailto:someone@example.org file:///etc/hosts data:text/plain,a%20b
    """
    assert [each for each in uris.split() if rules.uri_problem(each)] == []


def test_what_is_no_absolute_uri() -> None:
    ends = ("a b", "ü", "a%2", "a#b#c", "a[0]", "{id}", "a\n")
    others = ("", "/relative", "no-scheme", "1x://a")
    for uri in (*others, *(f"shop://{end}" for end in ends)):
        assert "not an absolute URI" in (rules.uri_problem(uri) or uri)


def test_what_is_too_long() -> None:
    assert rules.uri_problem("x:" + "y" * (URI_LENGTH - 2)) is None
    problem = rules.uri_problem("x:" + "y" * (URI_LENGTH - 1))
    assert problem is not None
    assert problem.endswith("yy…” has 4097 characters; a URI has at most 4096.")
    assert rules.media_type_problem("a/b; c=" + "d" * 127) is None
    problem = rules.media_type_problem("a/b" + "; c=d" * 51)
    assert problem is not None
    assert problem.endswith("has 258 characters; a media type has at most 255.")


@pytest.mark.parametrize(
    ("text", "code_point"),
    [
        ("Send mail\U000e0049", "U+E0049"),
        ("pay\u202etxt", "U+202E"),
        ("a\u200bb", "U+200B"),
        ("a\u200db", "U+200D"),
        ("\u200d\u200d\u200d", "U+200D"),
        ("NUL\x00", "U+0000"),
        ("escape\x1b[0m", "U+001B"),
        ("half \ud83d", "U+D83D"),
        ("\ufeffmark", "U+FEFF"),
        ("soft\u00adhyphen", "U+00AD"),
        ("line\u2028separator", "U+2028"),
    ],
)
def test_hidden_characters_are_named_with_their_place(
    text: str, code_point: str
) -> None:
    problem = rules.text_problem(text, lines=True)
    assert problem is not None
    assert code_point in problem
    place = text.index(chr(int(code_point[2:], 16))) + 1
    assert f"position {place}." in problem


def test_texts_of_all_languages_are_fine() -> None:
    for text in (
        "",
        "Плата за заказ, 注文, naïve",
        "A family: \U0001f468\u200d\U0001f469\u200d\U0001f467",
        "Persian: \u0645\u06cc\u200c\u062e\u0648\u0627",
        "Two\nlines and\ta tab",
    ):
        assert rules.text_problem(text, lines=True) is None


def test_line_breaks_are_only_fine_in_texts_of_many_lines() -> None:
    problem = rules.text_problem("a\nb")
    assert problem is not None
    assert "U+000A" in problem


def test_visible_shows_hidden_characters_and_shortens() -> None:
    assert rules.visible("a\u202eb") == "a⟦U+202E⟧b"
    assert len(rules.visible("x" * 1000)) == 201
    assert len(rules.visible("x" * 1000, None)) == 1000


def test_suggestions_are_distinct_texts_of_one_line() -> None:
    most = ["x" * 200, "Ärger", "ärger", *(f"{n}" for n in range(97))]
    assert rules.suggestions_problem([]) is None
    assert rules.suggestions_problem(most) is None


@pytest.mark.parametrize(
    ("suggestions", "said"),
    [
        ([str(n) for n in range(101)], "There are 101 suggestions; at most 100 are"),
        (["a", ""], "A suggestion is empty"),
        (["x" * 201], "xxx…” has 201 characters; a suggestion has at most 200."),
        (["a", "b", "a"], "“a” is suggested more than once."),
        (["red\u202e"], "“red⟦U+202E⟧”: There is a hidden character U+202E"),
        (["two\nlines"], "U+000A"),
    ],
)
def test_what_cannot_be_suggested(suggestions: list[str], said: str) -> None:
    problem = rules.suggestions_problem(suggestions)
    assert problem is not None
    assert said in problem


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" a\tb\r\nc ", "a b c"),
        ("a\u2028b", "a b"),
        ("a\0\ud800\u202eb", "ab"),
        # What hid beside another hidden character hides beside ASCII, too.
        ("a\u200b\u200d\u200bé", "aé"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 9 + "…"),
    ],
)
def test_what_is_kept_as_one_line(text: str, line: str) -> None:
    assert rules.one_line(text, 10) == line
    assert rules.text_problem(line) is None


# -- access requirements ---------------------------------------------------------------


VIEW = AccessRequirements(permissions=("shop.view",))
STAFF = AccessRequirements(groups=(frozenset({"Support", "Finance"}),))
RULE = AccessRequirements(rules=("shop.may",))


@pytest.mark.parametrize(
    ("told", "demands"),
    [
        ({}, NO_REQUIREMENTS),
        ({"permission": "", "groups": [], "rule": None}, NO_REQUIREMENTS),
        ({"permission": "shop.view"}, VIEW),
        ({"groups": ["Finance", "Support", "Finance"]}, STAFF),
        ({"rule": "shop.may"}, RULE),
        (
            {"permission": "shop.view", "groups": ["Support"], "rule": "shop.may"},
            AccessRequirements(
                permissions=("shop.view",),
                groups=(frozenset({"Support"}),),
                rules=("shop.may",),
            ),
        ),
    ],
)
def test_what_is_demanded(told: dict[str, Any], demands: AccessRequirements) -> None:
    assert read_requirements(told) == demands
    assert bool(demands) is (demands != NO_REQUIREMENTS)


def test_both_demands_hold() -> None:
    both = VIEW.combined_with(STAFF).combined_with(RULE)
    own = (VIEW.permissions, STAFF.groups, RULE.rules)
    assert (both.permissions, both.groups, both.rules) == own
    # Being in one group of each is not being in one group of all.
    night = AccessRequirements(groups=(frozenset({"Night"}),))
    assert STAFF.combined_with(night).groups == (*STAFF.groups, *night.groups)


def test_what_is_demanded_twice_stands_once() -> None:
    for one, other in product((NO_REQUIREMENTS, VIEW, STAFF, RULE), repeat=2):
        both = one.combined_with(other)
        assert both.combined_with(one) == both.combined_with(other) == both
        assert bool(both) is bool(one or other)


def test_the_order_of_permissions_is_kept() -> None:
    first = AccessRequirements(permissions=("a.b", "a.a"))
    second = AccessRequirements(permissions=("a.c", "a.b"))
    assert first.combined_with(second).permissions == ("a.b", "a.a", "a.c")
