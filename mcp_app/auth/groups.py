"""Three groups that have the rights of the three kinds of staff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.contrib.auth.models import Group, Permission
from django.db import router, transaction

KINDS: Final = ("tool", "resource", "resourcetemplate", "prompt", "eventtype")
VIEWS: Final = frozenset(f"view_{each}" for each in (*KINDS, "server"))
EDITORS: Final = VIEWS | {f"{do}_{of}" for do in ("add", "change") for of in KINDS}

GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "MCP editors": EDITORS | {"behind", "try"},
    "MCP publishers": EDITORS
    | {"behind", "try", "publish", "grant", "view_call", "view_values", "view_task"}
    | {"view_eventsubscription"},
    "MCP operators": VIEWS
    | {"view_session", "delete_session", "view_call", "add_server", "change_server"}
    | {"publish", "stop", "bundle", "manage_tokens", "view_task", "cancel_task"}
    | {"view_eventsubscription", "end_eventsubscription", "approve_task"},
}
"""The rights of each group: codenames of permissions of this app."""


def missing_rights() -> dict[str, frozenset[str]]:
    """Return the missing rights of each group that lacks some; one query.

    A group that does not exist lacks all.
    """
    rows = Group.objects.filter(
        name__in=GROUPS, permissions__content_type__app_label="mcp_app"
    ).values_list("name", "permissions__codename")
    granted = set(rows)
    lacking = {
        name: frozenset(right for right in rights if (name, right) not in granted)
        for name, rights in GROUPS.items()
    }
    return {name: rights for name, rights in lacking.items() if rights}


def complete_groups() -> list[str]:
    """Make the groups, give each its missing rights, and take nothing away.

    Returns the names of those that were made or got a right.  Raises
    `Permission.DoesNotExist` before `migrate` has made the permissions.
    """
    ours = Permission.objects.filter(content_type__app_label="mcp_app")
    rows = {each.codename: each for each in ours}
    lacking = missing_rights()
    with transaction.atomic(using=router.db_for_write(Group)):
        for name, rights in lacking.items():
            if rights - rows.keys():
                raise Permission.DoesNotExist
            group, _ = Group.objects.get_or_create(name=name)
            group.permissions.add(*(rows[right] for right in rights))
    return list(lacking)
