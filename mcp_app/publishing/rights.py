"""The app's own permissions: their words, who needs one, and for which changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from django.apps import apps
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext_lazy

from mcp_app.interface.definitions import Label
from mcp_app.kinds.registry import is_guarded
from mcp_app.models import Tool
from mcp_app.protocol.json_types import JsonObject

Person: TypeAlias = AbstractUser
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
    "approve_task": gettext_lazy("Can approve calls"),
    "end_eventsubscription": gettext_lazy("Can end event subscriptions"),
    "manage_tokens": gettext_lazy("Can manage everyone's access tokens"),
    "view_call": gettext_lazy("Can see calls"),
    "view_values": gettext_lazy("Can see values of calls"),
}
NEEDS: Final[Mapping[str, Label]] = {
    "publish": gettext_lazy("Publishing needs the right “%(right)s”."),
    "stop": gettext_lazy("Stopping and starting needs the right “%(right)s”."),
    "try": gettext_lazy("Trying needs the right “%(right)s”."),
}
WHO_COLUMNS: Final = ("access", "listed", *Tool.WHO)
"""Columns that say who may use a server or a definition; each row has some of them."""


def lacking_sentence(right: str) -> str:
    """Return the sentence for a user who lacks a permission."""
    needs = NEEDS.get(right, gettext_lazy("This needs the right “%(right)s”."))
    # Django's own: “Can view tool”.
    action, _underscore, name = right.partition("_")
    model = apps.all_models["mcp_app"].get(name)
    label = model and f"Can {action} {model._meta.verbose_name}"
    return str(needs) % {"right": RIGHTS.get(right, label or right)}


def require_right(by: Person | AnonymousUser | None, right: str) -> None:
    """Raise `PermissionDenied` if a person lacks a right; the command line has all."""
    if by is not None and not by.has_perm(f"mcp_app.{right}"):
        raise PermissionDenied(lacking_sentence(right))


def runs_another(before: JsonObject, after: JsonObject) -> bool:
    """Return whether a change needs *Can change what stands behind a definition*."""
    kinds = {before.get("kind"), after.get("kind")}
    guarded = any(kind and is_guarded(kind) for kind in kinds)
    return guarded and _differs_in_any(("kind", "config"), before, after)


def lets_others(before: JsonObject, after: JsonObject) -> bool:
    """Return whether a change needs *Can change who may use it*."""
    return _differs_in_any(WHO_COLUMNS, before, after)


def _differs_in_any(
    names: Sequence[str], before: JsonObject, after: JsonObject
) -> bool:
    # A content may have an empty value, or leave its column out: both mean the same.
    return any(
        (before.get(name) or None) != (after.get(name) or None) for name in names
    )
