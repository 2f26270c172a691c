"""The app's own permissions in words: what needs one, and who has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser, Group
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.auth.permission_queries import active, users, with_permission
from mcp_app.interface.labels import Label
from mcp_app.interface.rules import visible

MOST_NAMED: Final = 10
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
    "manage_tokens": gettext_lazy("Can manage everyone's access tokens"),
    "view_call": gettext_lazy("Can see calls"),
}
NEEDS: Final[Mapping[str, Label]] = {
    "publish": gettext_lazy("Publishing needs the right “%(right)s”."),
    "stop": gettext_lazy("Stopping and starting needs the right “%(right)s”."),
    "try": gettext_lazy("Trying needs the right “%(right)s”."),
}


def may(request: HttpRequest, right: str) -> bool:
    """Return whether the user has one of the app's own permissions."""
    user: AbstractUser | AnonymousUser = request.user
    return user.has_perm(f"mcp_app.{right}")


def lacking(right: str) -> str:
    """Return the sentence for a user who lacks a permission."""
    needs = NEEDS.get(right, gettext_lazy("This needs the right “%(right)s”."))
    return str(needs) % {"right": RIGHTS[right]}


def whom_to_ask(request: HttpRequest, right: str) -> str:
    """Return what needs a permission, and who has it; "" for a user who has it.

    Makes at most two queries.
    """
    if may(request, right):
        return ""
    return f"{lacking(right)} {you_can_ask(request, right)}".strip()


def you_can_ask(request: HttpRequest, codename: str) -> str:
    """Return who has a permission of the app, as a sentence; "" if nobody is known."""
    names = holders(request, codename)
    if not names:
        return ""
    return _("You can ask: %(names)s.") % {"names": visible(", ".join(names), None)}


def holders(request: HttpRequest, right: str) -> list[str]:
    """Return who has a permission: people, or groups if the user may not view users."""
    users = get_user_model()._meta
    if request.user.has_perm(f"{users.app_label}.view_{users.model_name}"):
        return _people(right)
    groups = Group.objects.filter(
        permissions__codename=right, permissions__content_type__app_label="mcp_app"
    )
    return [str(each) for each in groups.distinct()[:MOST_NAMED]]


def _people(right: str) -> list[str]:
    """Return the people who have a permission; none if the site cannot list them."""
    having = with_permission(f"mcp_app.{right}")
    if having is None:
        return []
    people = users().filter(active()).filter(having)[:MOST_NAMED]
    return [each.get_username() for each in people]
