"""The app's own permissions in words: what needs one, and who has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser, Group
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.auth.user_queries import active_condition, all_users, with_permission
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible

MAX_NAMES: Final = 10
"""People or groups that a sentence names."""
RIGHTS: Final[Mapping[str, Label]] = {
    "publish": gettext_lazy("Can publish and roll back"),
    "try": gettext_lazy("Can try in the console"),
    "try_as": gettext_lazy("Can try as another user"),
    "stop": gettext_lazy("Can stop and start"),
    "behind": gettext_lazy("Can change what stands behind a definition"),
    "grant": gettext_lazy("Can change who may use it"),
    "bundle": gettext_lazy("Can import and export bundles"),
    "delete_session": gettext_lazy("Can delete session"),
    "cancel_task": gettext_lazy("Can cancel tasks"),
    "end_eventsubscription": gettext_lazy("Can end event subscriptions"),
    "manage_tokens": gettext_lazy("Can manage everyone's access tokens"),
    "view_call": gettext_lazy("Can see calls"),
    "view_values": gettext_lazy("Can see values of calls"),
}
NEEDS: Final[Mapping[str, Label]] = {
    "add_tool": gettext_lazy("This needs the right “Can add tool”."),
    "publish": gettext_lazy("Publishing needs the right “%(right)s”."),
    "stop": gettext_lazy("Stopping and starting needs the right “%(right)s”."),
    "try": gettext_lazy("Trying needs the right “%(right)s”."),
}


def has_right(request: HttpRequest, right: str) -> bool:
    """Return whether the user has one of the app's own permissions."""
    user: AbstractUser | AnonymousUser = request.user
    return user.has_perm(f"mcp_app.{right}")


def lacking_sentence(right: str) -> str:
    """Return the sentence for a user who lacks a permission."""
    needs = NEEDS.get(right, gettext_lazy("This needs the right “%(right)s”."))
    return str(needs) % {"right": RIGHTS.get(right, "")}


def whom_to_ask(request: HttpRequest, right: str) -> str:
    """Return what needs a permission, and who has it; "" for a user who has it.

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
        return _people_with_right(f"{app}.{right}")
    groups = Group.objects.filter(
        permissions__codename=right, permissions__content_type__app_label=app
    )
    return [str(each) for each in groups.distinct()[:MAX_NAMES]]


def _people_with_right(right: str) -> list[str]:
    """Return the people who have a permission; none if the site cannot list them."""
    having = with_permission(right)
    if having is None:
        return []
    people = all_users().filter(active_condition()).filter(having)[:MAX_NAMES]
    return [each.get_username() for each in people]
