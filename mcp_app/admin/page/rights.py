"""The app's own permissions: whether the user has one, and which people have it."""

from __future__ import annotations

from typing import Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser, Group
from django.http import HttpRequest
from django.utils.translation import gettext as _

from mcp_app.auth.user_queries import active_condition, all_users, with_permission
from mcp_app.interface.rules import visible
from mcp_app.publishing.rights import lacking_sentence

MAX_NAMES: Final = 10
"""People or groups that a sentence names."""


def has_right(request: HttpRequest, right: str) -> bool:
    """Return whether the user has one of the app's own permissions."""
    user: AbstractUser | AnonymousUser = request.user
    return user.has_perm(f"mcp_app.{right}")


def whom_to_ask(request: HttpRequest, right: str) -> str:
    """Say that a permission is missing, and who has it; "" if the user has it.

    Makes at most two queries.
    """
    if has_right(request, right):
        return ""
    return f"{lacking_sentence(right)} {you_can_ask(request, right)}".strip()


def you_can_ask(request: HttpRequest, codename: str, app: str = "mcp_app") -> str:
    """Return who has a permission, as a sentence; "" if nobody is known."""
    names = right_holders(request, codename, app)
    if not names:
        return ""
    return _("You can ask: %(names)s.") % {"names": visible(", ".join(names), None)}


def right_holders(request: HttpRequest, right: str, app: str = "mcp_app") -> list[str]:
    """Return who has a permission: people, or groups if the user may not view users."""
    users = get_user_model()._meta
    if request.user.has_perm(f"{users.app_label}.view_{users.model_name}"):
        condition = with_permission(f"{app}.{right}")
        if condition is None:
            # The site cannot list them.
            return []
        people = all_users().filter(active_condition()).filter(condition)[:MAX_NAMES]
        return [person.get_username() for person in people]
    groups = Group.objects.filter(
        permissions__codename=right, permissions__content_type__app_label=app
    )
    return [str(each) for each in groups.distinct()[:MAX_NAMES]]
