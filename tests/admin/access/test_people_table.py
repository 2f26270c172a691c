"""The table of people: fifty at a time, each with why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models import Q

from mcp_app.admin.access import visibility
from mcp_app.admin.access.conditions import Condition, conditions
from mcp_app.admin.access.visibility import Why, people_page
from mcp_app.auth import user_queries
from mcp_app.auth.user_queries import KnownGroup
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements

VIEW = "shop.view"
SUPPORT = KnownGroup(1, "Support", 2, frozenset({VIEW}))
NIGHT = KnownGroup(2, "Night", 2, frozenset())
RIGHT = AccessRequirements(permissions=(VIEW,))
ANY_OF_TWO = frozenset({"Night", "X"})


def condition(lack: str, which: Q | None = user_queries.EVERYBODY) -> Condition:
    return Condition(label=lack, lack=lack, change="", which=which, holds=bool)


def user(*groups: KnownGroup, superuser: bool = False, **holds: bool) -> Any:
    """Return a row of the table; `a=False` says that it lacks the first condition."""
    columns = {f"mcp_holds_{'ab'.index(name)}": value for name, value in holds.items()}
    own = SimpleNamespace(all=lambda: groups)
    return SimpleNamespace(
        **{"mcp_active": True, "is_superuser": superuser, "groups": own, **columns}
    )


def why(
    row: Any, demands: AccessRequirements = NO_REQUIREMENTS, *found: Condition
) -> str:
    return Why(found, [SUPPORT, NIGHT], demands).reason_for(row)


# -- why ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "demands", "text"),
    [
        (user(), NO_REQUIREMENTS, "no right is required"),
        (user(), AccessRequirements(rules=("r",)), "no right is required"),
        (user(superuser=True), RIGHT, "superuser"),
        (user(), RIGHT, "has shop.view"),
        (user(NIGHT), RIGHT, "has shop.view"),
        (user(SUPPORT), RIGHT, "in Support, which has shop.view"),
        (user(NIGHT), AccessRequirements(groups=(ANY_OF_TWO,)), "in Night"),
        (
            user(SUPPORT, NIGHT),
            AccessRequirements(permissions=(VIEW,), groups=(frozenset({"Night"}),)),
            "in Support, which has shop.view and in Night",
        ),
        # What was said already is not said again.
        (
            user(SUPPORT),
            AccessRequirements(permissions=(VIEW,), groups=(frozenset({"Support"}),)),
            "in Support, which has shop.view",
        ),
        # A group that is not known says nothing.
        (user(KnownGroup(9, "Other", 1, frozenset({VIEW}))), RIGHT, "has shop.view"),
    ],
)
def test_why_somebody_can(row: Any, demands: AccessRequirements, text: str) -> None:
    assert why(row, demands) == text


def test_why_somebody_cannot() -> None:
    both = condition("lacks a"), condition("not in B")
    assert why(user(a=False, b=True), RIGHT, *both) == "cannot: lacks a"
    assert why(user(a=False, b=False), RIGHT, *both) == "cannot: lacks a and not in B"
    # A superuser may lack what the site asks of everybody, such as a rule.
    assert why(user(a=False, superuser=True), RIGHT, *both) == "cannot: lacks a"
    same = condition("lacks a"), condition("lacks a")
    assert why(user(a=False, b=False), RIGHT, *same) == "cannot: lacks a"


def test_who_may_not_log_in_is_told_first() -> None:
    row = user(a=False)
    row.mcp_active = False
    assert why(row, RIGHT, condition("lacks a")) == "cannot: may not log in"


def test_what_cannot_be_counted_is_to_be_checked() -> None:
    open_one = condition("the rule says no", which=None)
    assert why(user(), RIGHT, open_one) == "has shop.view; the rest must be checked"
    assert why(user(b=False), RIGHT, open_one, condition("x")) == "cannot: x"


# -- pages -------------------------------------------------------------------------


def page(
    number: str = "",
    *,
    can: bool = True,
    total: int = 5,
    demands: AccessRequirements = NO_REQUIREMENTS,
) -> dict[str, Any]:
    known = user_queries.known_groups(demands)
    found = conditions(NO_REQUIREMENTS, demands, known, is_server=False)
    counts = (total, 0) if can else (0, total)
    return people_page(
        found, known, demands=demands, can=can, page=number, counts=counts
    )


@pytest.fixture(autouse=True)
def _two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visibility, "PEOPLE_PER_PAGE", 2)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("asked", "number", "names", "before", "after"),
    [
        ("", 1, ["a", "b"], 0, 2),
        ("2", 2, ["c", "d"], 1, 3),
        ("3", 3, ["e"], 2, 0),
        ("4", 3, ["e"], 2, 0),
        ("0", 1, ["a", "b"], 0, 2),
        ("-1", 1, ["a", "b"], 0, 2),
        ("²", 1, ["a", "b"], 0, 2),
        ("9" * 10, 1, ["a", "b"], 0, 2),
    ],
)
def test_page_by_page(
    asked: str, number: int, names: list[str], before: int, after: int
) -> None:
    for name in "ecadb":
        User.objects.create_user(name)
    made = page(asked)
    assert [each["name"] for each in made["shown"]] == names
    assert (made["number"], made["pages"]) == (number, 3)
    assert (made["before"], made["after"]) == (before, after)


@pytest.mark.django_db
def test_nobody_is_a_page_too() -> None:
    made = page(total=0)
    assert [made[name] for name in ("shown", "number", "pages", "after")] == [
        [],
        1,
        1,
        0,
    ]


@pytest.mark.django_db
def test_those_who_can_and_those_who_cannot() -> None:
    group = Group.objects.create(name="Night")
    User.objects.create_user("ana").groups.add(group)
    User.objects.create_user("gone", is_active=False).groups.add(group)
    User.objects.create_user("zoe")
    demands = AccessRequirements(groups=(frozenset({"Night"}),))
    can = page(total=1, demands=demands)
    assert can["shown"] == [{"name": "ana", "why": "in Night"}]
    cannot = page(total=2, can=False, demands=demands)
    assert [each["why"] for each in cannot["shown"]] == [
        "cannot: may not log in",
        "cannot: not in Night",
    ]
