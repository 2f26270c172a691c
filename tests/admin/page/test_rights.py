"""The app's own permissions in words."""

from __future__ import annotations

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import FieldError
from django.http import HttpRequest
from django.test import RequestFactory

from mcp_app.admin.page.concurrency import holders, lacking, whom_to_ask

pytestmark = pytest.mark.django_db

NEEDED = "Publishing needs the right “Can publish and roll back”."


def asking(*codenames: str) -> HttpRequest:
    """A request of a user with these permissions."""
    request = RequestFactory().get("/")
    kim = User.objects.create_user("kim")
    kim.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    request.user = kim
    return request


def group(name: str) -> Group:
    made = Group.objects.create(name=name)
    made.permissions.set(Permission.objects.filter(codename="publish"))
    return made


def test_what_needs_a_permission() -> None:
    assert lacking("publish") == NEEDED
    assert lacking("bundle") == "This needs the right “Can import and export bundles”."


def test_who_has_it_needs_nobody() -> None:
    assert whom_to_ask(asking("publish"), "publish") == ""


def test_people_are_named_only_to_who_may_view_people() -> None:
    User.objects.create_superuser("ana")
    group("Editors").user_set.add(User.objects.create_user("lee"))
    assert whom_to_ask(asking(), "publish") == f"{NEEDED} You can ask: Editors."
    User.objects.filter(username="kim").delete()
    assert sorted(holders(asking("view_user"), "publish")) == ["ana", "lee"]


def test_nobody_has_it() -> None:
    assert whom_to_ask(asking("view_user"), "publish") == NEEDED


def test_a_site_that_cannot_list_its_people_names_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a user model names its relations otherwise, Django's lookup fails."""

    def with_perm(*asked: object, **options: object) -> None:
        raise FieldError("Unsupported lookup 'user'")

    monkeypatch.setattr(ModelBackend, "with_perm", with_perm)
    assert whom_to_ask(asking("view_user"), "publish") == NEEDED
