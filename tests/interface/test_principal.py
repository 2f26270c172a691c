"""Who asks: keys that no two share, and what a credential reaches."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_app.interface.definitions import (
    Definition,
    OurTool,
    PromptDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.principal import (
    ANONYMOUS,
    NOTHING,
    RESERVED_KINDS,
    AuthenticationUnavailable,
    Principal,
    Rights,
    Scope,
    parts_of_key,
)
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements

SEPARATOR = "\x1f"
READS = ToolHints(read_only=True)


def tool(*tags: str, hints: ToolHints = READS) -> ToolDefinition:
    return ToolDefinition(name="t", tags=frozenset(tags), hints=hints)


@pytest.mark.parametrize(
    ("scope", "definition", "there"),
    [
        (Scope(), tool(hints=ToolHints()), True),
        (Scope(read_only=True), tool(), True),
        (Scope(read_only=True), tool(hints=ToolHints(read_only=False)), False),
        # What says nothing may change things.
        (Scope(read_only=True), tool(hints=ToolHints()), False),
        (Scope(read_only=True), PromptDefinition(name="p"), True),
        (Scope(tags=frozenset({"a", "b"})), tool("b", "c"), True),
        (Scope(tags=frozenset({"a"})), tool("b"), False),
        (Scope(tags=frozenset({"a"})), tool(), False),
        (Scope(tags=frozenset({"a"})), PromptDefinition(name="p"), False),
        # Both have to hold.
        (
            Scope(read_only=True, tags=frozenset({"a"})),
            tool("a", hints=ToolHints()),
            False,
        ),
        (Scope(read_only=True, tags=frozenset({"a"})), tool("b"), False),
        (Scope(read_only=True, tags=frozenset({"a"})), tool("a"), True),
        (Scope(tools=frozenset({"t"})), tool(), True),
        (Scope(tools=frozenset({"t"}), tags=frozenset({"a"})), tool("b"), False),
        (Scope(tools=frozenset({"p"})), PromptDefinition(name="p"), False),
        (Scope(tools=frozenset({"p"})), OurTool(name="get_task_result"), True),
    ],
)
def test_what_a_scope_includes(
    scope: Scope, definition: Definition, there: bool
) -> None:
    assert scope.includes(definition) is there


def test_nobody_has_the_key_of_another() -> None:
    keys = [
        Principal(kind=kind, user_id=user_id, client=client).key
        for kind, user_id, client in product(
            ("a", "b", "a1"), ("", "1", "11"), ("", "1")
        )
    ]
    assert len({*keys}) == len(keys) == 18


@pytest.mark.parametrize(
    "named", [{"kind": f"a{SEPARATOR}1"}, {"kind": "a", "user_id": f"1{SEPARATOR}"}]
)
def test_a_separator_could_make_two_keys_one(named: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"U\+001F"):
        Principal(**named)


def test_a_key_is_read_again() -> None:
    # Of a client every character counts.
    for parts in (("a", "7", "c"), ("a", "", ""), ("a", "", f"x{SEPARATOR}y")):
        kind, user_id, client = parts
        key = Principal(kind=kind, user_id=user_id, client=client).key
        assert parts_of_key(key) == parts
    assert parts_of_key("") == ("", "", "")
    assert parts_of_key("stdio") == ("stdio", "", "")


def test_a_primary_key_is_text_and_none_is_none() -> None:
    number: Any = 7
    nothing: Any = None
    assert Principal(kind="a", user_id=number).user_id == "7"
    assert Principal(kind="a", user_id=nothing).user_id == ""


def test_nobody_in_particular_owns_nothing() -> None:
    nobody = Principal.ANONYMOUS
    assert (nobody.anonymous, nobody.owner) == (True, "")
    assert nobody.permissions == frozenset()
    assert nobody.kind == ANONYMOUS
    somebody = Principal(kind="user", user_id="7")
    assert not somebody.anonymous
    assert somebody.owner == somebody.key
    assert ANONYMOUS in RESERVED_KINDS


def test_rights_make_a_difference_and_the_key_does_not_show_it() -> None:
    listed: Any = ["a", "b"]
    one = Principal(kind="user", user_id="7", permissions=listed)
    other = Principal(kind="user", user_id="7", permissions=frozenset({"a"}))
    assert one.permissions == frozenset({"a", "b"})
    assert hash(one) == hash(other)
    assert one != other
    limited = Principal(kind="user", user_id="7", scope=Scope(read_only=True))
    assert limited != Principal(kind="user", user_id="7")


def test_what_is_away_says_when_to_come_back() -> None:
    assert AuthenticationUnavailable().retry_after == 5
    assert AuthenticationUnavailable("LDAP is away", retry_after=30).retry_after == 30


def test_a_person_is_a_user_whatever_the_credential() -> None:
    tokens = [
        Principal(kind=kind, user_id="7", client=client)
        for kind, client in product(("access-token", "drf"), "ab")
    ]
    others = [
        Principal(kind="drf", user_id="8"),
        Principal(kind="drf", client="7"),
        Principal(kind="machine", client="a"),
        Principal(kind="machine", client="b"),
    ]
    (person,) = {each.person for each in tokens}
    assert len({person, *(each.person for each in others)}) == 1 + len(others)
    assert all(each.person for each in others)
    assert Principal.ANONYMOUS.person == ""


# -- rights ----------------------------------------------------------------------------


VIEW = AccessRequirements(permissions=("shop.view",))
STAFF = AccessRequirements(groups=(frozenset({"Support", "Finance"}),))


def test_who_meets_demands() -> None:
    rights = Rights(frozenset({VIEW}))
    assert all(map(rights.meets_demands, (None, NO_REQUIREMENTS, VIEW)))
    # To meet one of two is not to meet both together.
    assert not any(map(rights.meets_demands, (STAFF, VIEW.combined_with(STAFF))))


def test_nobody_has_a_right() -> None:
    assert not NOTHING.meets_demands(VIEW)
    assert NOTHING.meets_demands(NO_REQUIREMENTS)
    assert not NOTHING.gone
