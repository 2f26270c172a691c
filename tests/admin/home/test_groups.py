"""The three groups of staff, by the command and by the button; who has no rights."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command

from mcp_app.auth.groups import GROUPS
from tests.admin.pages import Staff, home, page

pytestmark = pytest.mark.django_db

EDITORS, PUBLISHERS, OPERATORS = GROUPS
BUTTON = "Make the three groups"


def rights(name: str) -> set[str]:
    rows = Permission.objects.filter(group__name=name)
    return set(rows.values_list("codename", flat=True))


def said() -> list[str]:
    out = StringIO()
    call_command("mcp_groups", stdout=out)
    return out.getvalue().splitlines()


def test_the_command_completes_groups_and_takes_nothing_away() -> None:
    assert said() == [f"{name}: made or completed" for name in GROUPS]
    more = {"publish", "grant", "view_call", "view_values", "view_task"}
    more |= {"view_eventsubscription"}
    assert rights(PUBLISHERS) - rights(EDITORS) == more
    assert rights(OPERATORS) >= {"stop", "view_session", "manage_tokens", "view_tool"}
    group = Group.objects.get(name=EDITORS)
    group.permissions.remove(Permission.objects.get(codename="behind"))
    group.permissions.add(Permission.objects.get(codename="add_user"))
    assert said()[:2] == [
        f"{EDITORS}: made or completed",
        f"{PUBLISHERS}: has all its rights",
    ]
    assert rights(EDITORS) == GROUPS[EDITORS] | {"add_user"}


def test_nobody_can_add_or_change_sessions() -> None:
    ours = Permission.objects.filter(content_type__model="session")
    names = ours.filter(content_type__app_label="mcp_app").values_list("codename")
    assert {name for (name,) in names} == {"view_session", "delete_session"}


def test_the_command_needs_the_permissions() -> None:
    Permission.objects.filter(codename="behind").delete()
    with pytest.raises(CommandError, match="run migrate"):
        said()
    assert not Group.objects.exists()


def test_the_button(staff: Staff) -> None:
    client = staff("view_tool", "add_group", "change_group")
    assert BUTTON in home(client).content.decode()
    answer = client.post(page("server", "groups"), follow=True)
    text = answer.content.decode()
    assert f"Made or completed: {EDITORS}, {PUBLISHERS}, {OPERATORS}." in text
    assert BUTTON not in text
    assert rights(EDITORS) == GROUPS[EDITORS]
    Group.objects.get(name=EDITORS).permissions.clear()
    assert BUTTON in home(client).content.decode()
    User.objects.get(username="kim").user_permissions.remove(
        Permission.objects.get(codename="change_group")
    )
    assert BUTTON not in home(client).content.decode()
    assert client.post(page("server", "groups")).status_code == 403
    assert rights(EDITORS) == set()


def test_staff_without_rights_read_whom_to_ask(staff: Staff) -> None:
    managers = Group.objects.create(name="Managers")
    managers.permissions.set(Permission.objects.filter(codename="change_user"))
    client = staff("add_group", "change_group")
    text = " ".join(home(client).content.decode().split())
    said = f"one of the groups {EDITORS}, {PUBLISHERS}, {OPERATORS}. You can ask: Man"
    assert said in text
    assert BUTTON in text
    assert 'href="http://testserver/account/tokens/">Your access tokens</a>' in text
    assert "How to begin" not in text
    assert f'"{page("server")}"' not in text
    # It is in no index of theirs, and no other page opens.
    assert "/admin/mcp_app/" not in client.get("/admin/").content.decode()
    assert client.get(page("server")).status_code == 403
