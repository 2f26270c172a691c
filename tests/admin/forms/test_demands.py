"""Groups are kept as lines, and permissions are those that the site has."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.test import Client

from mcp_app.admin.forms import fields
from mcp_app.admin.forms.fields import GroupsField, PermissionField
from tests.admin.pages import Queries, errors, fill_in, page_of, save

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "name", [" ", "finance\nstaff", " admins", "admins\u00a0", "a\n", "\t"]
)
def test_a_group_whose_name_would_be_another(name: str) -> None:
    Group.objects.create(name=name)
    with pytest.raises(ValidationError, match="cannot be chosen, because its name"):
        GroupsField().clean([name])


def test_groups_are_kept_as_lines() -> None:
    for name in ("Support", "night shift"):
        Group.objects.create(name=name)
    assert GroupsField().clean(["Support", "night shift"]) == "Support\nnight shift"
    assert GroupsField().clean([]) == ""


def _typed(permission: str, stored: str = "") -> str:
    field = PermissionField()
    field.offer_stored(stored)
    return field.clean(permission)


@pytest.mark.parametrize("permission", ["", "auth.view_user", " auth.view_user "])
def test_a_permission_that_there_is(permission: str) -> None:
    assert _typed(permission) == permission.strip()


@pytest.mark.parametrize(
    ("permission", "said"),
    [
        ("auth.view_usr", "“auth.view_usr” does not exist. Did you mean “auth.view_us"),
        ("auht.view_user", "Did you mean “auth.view_user”?"),
        ("AUTH.view_user", "“AUTH.view_user” does not exist. Did you mean"),
        ("x.y", "“x.y” does not exist."),
    ],
)
def test_a_permission_that_there_is_not(permission: str, said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        _typed(permission)


def test_a_stored_permission_that_is_gone_is_left() -> None:
    assert _typed("auth.view_usr", stored="auth.view_usr") == "auth.view_usr"
    with pytest.raises(ValidationError, match="does not exist"):
        _typed("auth.view_usr", stored="auth.view_usrs")


def test_permissions_are_offered_in_one_statement(
    django_assert_num_queries: Queries,
) -> None:
    kind = ContentType.objects.get_for_model(Group)
    for codename, name in (("rename", '"<b>Can</b> rename'), ("no word", "Cannot be")):
        Permission.objects.create(content_type=kind, codename=codename, name=name)
    with django_assert_num_queries(1):
        shown = PermissionField().widget.render("permission", "auth.view_user")
    assert 'value="auth.view_user" class="vTextField"' in shown
    assert 'list="id_permission-list"' in shown
    assert '<datalist id="id_permission-list">' in shown
    assert '<option value="auth.view_user" label="Can view user"></option>' in shown
    assert 'label="&quot;&lt;b&gt;Can&lt;/b&gt; rename"' in shown
    assert "Cannot be" not in shown


def test_not_too_many_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "MOST_OFFERED", 2)
    assert PermissionField().widget.render("permission", "").count("<option") == 2


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        ("tool", {"name": "a"}),
        ("tool", {"name": "search", "source": "code"}),
        ("server", {"slug": "a"}),
    ],
)
@pytest.mark.usefixtures("functions")
def test_each_form_asks_for_one(
    admin_client: Client, model: str, columns: dict[str, Any]
) -> None:
    """A wrong permission is refused; one that is gone leaves the rest to be saved."""
    rows = apps.get_model("mcp_app", model).objects
    row = rows.create(permission="auth.view_gone", **columns)
    answer = fill_in(admin_client, page_of(row), permission="auth.view_usr")
    assert "Did you mean “auth.view_user”?" in errors(answer)["permission"]
    assert '<option value="auth.view_user"' in answer.content.decode()
    save(admin_client, row, title="B")
    assert (row.title, row.permission) == ("B", "auth.view_gone")
    save(admin_client, row, permission="auth.view_user")
    assert row.permission == "auth.view_user"
