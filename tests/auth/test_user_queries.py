"""Who meets demands, as the table of users is asked: the same as for one user."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q

from mcp_app.auth import user_queries
from mcp_app.auth.user_queries import KnownGroup
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements

pytestmark = pytest.mark.django_db

VIEW = "mcp_app.view_session"
DELETE = "mcp_app.delete_session"


class OnlyLogin(BaseBackend):
    """Grants nothing."""


class Asking(BaseBackend):
    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        return False


class ByGroups(BaseBackend):
    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return set()


class Listing(Asking):
    def with_perm(self, perm: str, **options: Any) -> Any:
        return User.objects.filter(username="zoe")


class Refusing(Asking):
    def with_perm(self, perm: str) -> Any:
        raise ValueError(perm)


class StricterThanItsList(Listing):
    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        return False


class Older:
    """No class of Django's."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        return False


def permission(name: str) -> Permission:
    app, _, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


@pytest.fixture(autouse=True)
def _people() -> None:
    """Ana by a group, ben himself, a superuser, one without rights, one inactive."""
    support = Group.objects.create(name="Support")
    support.permissions.add(permission(VIEW))
    night = Group.objects.create(name="Night")
    User.objects.create_user("zoe")
    User.objects.create_superuser("root")
    User.objects.create_user("ana").groups.add(support, night)
    User.objects.create_user("ben").user_permissions.add(permission(VIEW))
    User.objects.create_user("gone", is_active=False).groups.add(support)


def names(which: Q | None) -> set[str]:
    assert which is not None
    rows = user_queries.all_users().filter(which & user_queries.active_condition())
    return {each.username for each in rows}


def backends(settings: LazySettings, *classes: type) -> None:
    settings.AUTHENTICATION_BACKENDS = [
        f"{each.__module__}.{each.__qualname__}" for each in classes
    ]


# -- permissions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "who"),
    [(VIEW, {"ana", "ben", "root"}), (DELETE, {"root"}), ("shop.no_such", {"root"})],
)
def test_who_has_a_permission(name: str, who: set[str]) -> None:
    assert names(user_queries.with_permission(name)) == who
    assert who == {x.username for x in user_queries.all_users() if x.has_perm(name)}


@pytest.mark.parametrize(
    ("others", "who"),
    [
        ([OnlyLogin], {"ana", "ben", "root"}),
        ([Listing], {"ana", "ben", "root", "zoe"}),
        ([Asking], None),
        ([ByGroups], None),
        ([StricterThanItsList], None),
        ([Older], None),
        ([Refusing], None),
        ([Listing, Asking], None),
    ],
)
def test_what_several_backends_grant(
    settings: LazySettings, others: list[type], who: set[str] | None
) -> None:
    backends(settings, ModelBackend, *others)
    which = user_queries.with_permission(VIEW)
    assert (None if which is None else names(which)) == who


def test_which_backends_cannot_say_whom(settings: LazySettings) -> None:
    backends(settings, ModelBackend, OnlyLogin, Asking, Listing, StricterThanItsList)
    named = [f"{__name__}.{each}" for each in ("Asking", "StricterThanItsList")]
    assert user_queries.uncounted_backends() == named


def test_users_with_own_rights_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(User, "has_perm", lambda user, name, obj=None: True)
    assert user_queries.with_permission(VIEW) is None


# -- groups ------------------------------------------------------------------------


def test_who_is_in_one_of_several_groups() -> None:
    known = user_queries.known_groups(
        AccessRequirements(groups=(frozenset({"Support", "Night"}),))
    )
    assert names(user_queries.in_groups({"Support"}, known)) == {"ana", "root"}
    assert names(user_queries.in_groups({"Gone", "Night"}, known)) == {"ana", "root"}
    # Superusers are in a group that there is not.
    assert names(user_queries.in_groups({"Gone"}, known)) == {"root"}
    assert names(user_queries.in_groups(set(), known)) == {"root"}


def groups(demands: AccessRequirements) -> list[tuple[str, int, set[str]]]:
    known = user_queries.known_groups(demands)
    return [(each.name, each.people, {*each.grants}) for each in known]


def test_groups_that_matter_the_named_ones_first() -> None:
    both = AccessRequirements(
        permissions=(VIEW, DELETE), groups=(frozenset({"Zebra"}), frozenset({"Night"}))
    )
    Group.objects.create(name="Zebra")
    Group.objects.create(name="Other")
    # The inactive one is not counted, nor is one counted twice.
    assert groups(both) == [
        *(("Night", 1, set()), ("Zebra", 0, set())),
        ("Support", 1, {VIEW}),
    ]


def test_without_demands_no_group_matters() -> None:
    assert groups(NO_REQUIREMENTS) == []
    assert groups(AccessRequirements(rules=("shop.may",))) == []
    assert groups(AccessRequirements(permissions=(DELETE,))) == []


def test_a_permission_of_another_app_is_another() -> None:
    other = f"auth.{VIEW.partition('.')[2]}"
    assert groups(AccessRequirements(permissions=(other,))) == []


def test_a_group_is_read_whatever_letters_hide_in_its_name() -> None:
    shown = KnownGroup(1, "Sup\u202eport", 0, frozenset()).name_to_show
    assert "\u202e" not in shown
    assert shown.startswith("Sup")


def test_groups_are_limited_but_named_ones_are_all_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(user_queries, "MOST_GROUPS", 1)
    for name in ("A", "B"):
        Group.objects.create(name=name).permissions.add(permission(VIEW))
    demands = AccessRequirements(permissions=(VIEW,), groups=(frozenset({"Night"}),))
    assert [name for name, *_ in groups(demands)] == ["Night", "A"]


# -- users -------------------------------------------------------------------------


def test_who_may_log_in_and_who_has_every_right() -> None:
    assert names(user_queries.EVERYBODY) == {"ana", "ben", "root", "zoe"}
    assert names(user_queries.superusers()) == {"root"}
    assert names(user_queries.NOBODY) == set()
