"""Changes of rights through Django's own models are recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.signals import user_logged_in
from django.core.exceptions import ValidationError
from django.utils import timezone

from mcp_app.auth.rights import AppEnded, Choice, change_app
from mcp_app.models import AccessToken, Connection
from mcp_app.models.changes import Change
from mcp_app.models.tokens import RIGHTS
from tests.account.apps import app, end
from tests.models.recording import as_committed, recorded

pytestmark = pytest.mark.django_db


class Site:
    """A user in a group, and permissions to give and take."""

    def __init__(self) -> None:
        self.user = User.objects.create_user("ana")
        self.other = User.objects.create_user("bert")
        self.group = Group.objects.create(name="editors")
        self.permission = Permission.objects.get(codename="view_tool")
        self.user.groups.add(self.group)
        self.group.permissions.add(self.permission)


@pytest.fixture
def site() -> Site:
    made = Site()
    as_committed()
    return made


def test_a_new_user_has_no_rights_that_anybody_knows() -> None:
    User.objects.create_user("carl")
    assert recorded() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda site: site.user.save(),
        lambda site: site.user.save(update_fields=["is_active"]),
        lambda site: site.user.delete(),
        lambda site: site.user.groups.clear(),
        lambda site: site.user.groups.remove(site.group),
        lambda site: site.user.groups.set([]),
        lambda site: site.user.user_permissions.add(site.permission),
        lambda site: site.group.user_set.remove(site.user),
    ],
)
def test_changes_of_one_user(site: Site, change: Callable[[Site], Any]) -> None:
    ref = str(site.user.pk)
    change(site)
    assert recorded() == [("rights", ref)]


class Staff(User):
    """As sites make them for a page of the admin."""

    class Meta:
        proxy = True
        app_label = "auth"


def test_a_proxy_of_the_user(site: Site) -> None:
    staff = Staff.objects.get(pk=site.user.pk)
    staff.is_active = False
    staff.save()
    assert recorded() == [("rights", str(staff.pk))]


def renamed(row: Any, **columns: str) -> None:
    """What is demanded names a group, or a permission, as it is called."""
    for name, value in columns.items():
        setattr(row, name, value)
    row.save()


@pytest.mark.parametrize(
    "change",
    [
        lambda site: site.group.permissions.clear(),
        lambda site: site.group.permissions.remove(site.permission),
        lambda site: site.permission.group_set.clear(),
        lambda site: site.group.user_set.clear(),
        lambda site: renamed(site.group, name="others"),
        lambda site: renamed(site.permission, codename="others"),
        lambda site: site.group.delete(),
        lambda site: site.permission.delete(),
    ],
)
def test_changes_of_many(site: Site, change: Callable[[Site], Any]) -> None:
    change(site)
    assert ("rights", "*") in recorded()


@pytest.mark.parametrize(
    "change",
    [
        lambda site: user_logged_in.send(User, request=None, user=site.user),
        lambda site: site.user.groups.add(site.group),
        lambda site: site.user.groups.add(),
        lambda site: site.other.groups.set([]),
        lambda site: Group.objects.create(name="new"),
    ],
)
def test_what_changes_no_right(site: Site, change: Callable[[Site], Any]) -> None:
    change(site)
    assert recorded() == []


# -- app changes -----------------------------------------------------------------------


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


def stored(row: AccessToken) -> Choice:
    return Choice.of_connection(Connection.objects.get(pk=row.pk))


def changed_to(row: AccessToken, **choice: Any) -> Choice:
    return change_app(row.connection, lambda now: replace(now, **choice))


def told() -> list[str]:
    return [each.ref for each in Change.objects.filter(kind=RIGHTS)]


@pytest.mark.databases
def test_what_it_may_is_stored_and_everybody_is_told(ana: User) -> None:
    row = app(ana)
    Change.objects.all().delete()
    soon = timezone.now() + timedelta(days=3)
    changed_to(row, may="read", tags="orders refunds", until=soon)
    chosen = Choice(name="Claude", may="read", tags="orders refunds", until=soon)
    assert stored(row) == chosen
    assert AccessToken.objects.get().expires == soon
    assert told() == [str(ana.pk)]


def test_it_ends_with_its_last_use_where_that_is_nearer(ana: User) -> None:
    row = app(ana)
    far = timezone.now() + timedelta(days=300)
    changed_to(row, until=far)
    expires = AccessToken.objects.get().expires
    refreshed = Connection.objects.get().refreshed
    assert expires is not None
    assert refreshed is not None
    assert expires == refreshed + timedelta(days=30)


def test_another_name_is_nobody_s_right(ana: User) -> None:
    row = app(ana)
    Change.objects.all().delete()
    changed_to(row, name="On my laptop")
    assert AccessToken.objects.get().name == "On my laptop"
    assert told() == []


def test_until_its_code_is_used_it_ends_with_the_code(ana: User) -> None:
    row = app(ana, is_used=False)
    changed_to(row, may="read", until=timezone.now() + timedelta(days=3))
    assert AccessToken.objects.get().expires == row.connection.code_ends


def test_no_more_than_was_asked_for(ana: User) -> None:
    row = app(ana, may_ask="read", may="read")
    with pytest.raises(ValueError, match="did not ask to change"):
        changed_to(row, may="change")
    wide = app(ana, may="read")
    changed_to(wide, may="change")
    assert (stored(row).may, stored(wide).may) == ("read", "change")


@pytest.mark.parametrize("why", ["person", "code", ""])
def test_what_has_ended_stays_as_it_was(ana: User, why: str) -> None:
    row = app(ana, may="read")
    if why:
        end(row, why)
    else:
        AccessToken.objects.move_end(row.pk, timezone.now())
    with pytest.raises(AppEnded):
        changed_to(row, may="change")
    assert stored(row).may == "read"


def test_what_no_row_can_have_changes_nothing(ana: User) -> None:
    row = app(ana)
    for wrong in ({"name": "a\u202eb"}, {"name": ""}, {"tags": "no/tag!"}):
        with pytest.raises(ValidationError):
            changed_to(row, may="read", **wrong)
    assert stored(row) == Choice.of_connection(row.connection)
    assert stored(row).may == "change"


def test_an_app_that_is_deleted_meanwhile_has_ended(ana: User) -> None:
    row = app(ana)
    connection = row.connection
    row.delete()
    with pytest.raises(AppEnded):
        change_app(connection, lambda now: replace(now, may="read"))
