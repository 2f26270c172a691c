"""Demands: how they are read and joined."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_app.interface.rules import (
    NO_REQUIREMENTS,
    AccessRequirements,
    read_requirements,
)

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
    both = VIEW.and_also(STAFF).and_also(RULE)
    assert (both.permissions, both.groups, both.rules) == (
        VIEW.permissions,
        STAFF.groups,
        RULE.rules,
    )
    # Being in one group of each is not being in one group of all.
    night = AccessRequirements(groups=(frozenset({"Night"}),))
    assert STAFF.and_also(night).groups == (*STAFF.groups, *night.groups)


@pytest.mark.parametrize(
    ("one", "other"), [*product((NO_REQUIREMENTS, VIEW, STAFF, RULE), repeat=2)]
)
def test_what_is_demanded_twice_stands_once(
    one: AccessRequirements, other: AccessRequirements
) -> None:
    both = one.and_also(other)
    assert both.and_also(one) == both.and_also(other) == both
    assert bool(both) is bool(one or other)


def test_the_order_of_permissions_is_kept() -> None:
    first = AccessRequirements(permissions=("a.b", "a.a"))
    second = AccessRequirements(permissions=("a.c", "a.b"))
    assert first.and_also(second).permissions == ("a.b", "a.a", "a.c")
