"""Changes of rights through Django's own models are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.signals import user_logged_in

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
