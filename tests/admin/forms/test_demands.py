"""Groups are kept as lines: what would be read as another group is not chosen."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from mcp_app.admin.forms.demands import GroupsField

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
