"""Concurrent edits: the second user to save gets a message and loses nothing."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from django.apps import apps
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser, Group
from django.core.exceptions import BadRequest
from django.db import connections, models, router
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.page import deleted_rows
from mcp_app.admin.page.keys import primary_key_of
from mcp_app.auth.permissions import active_condition, all_users, with_permission
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.invalidation.workers import hold_after_commit
from mcp_app.models.changes import WatchedRow

# -- compat ----------------------------------------------------------------------------
# The base of all admin pages: django-unfold's if the site uses it, else Django's.
#
# Without its own base class, unfold's pages have fields without borders.

HAS_UNFOLD: Final = apps.is_installed("unfold")
"""Whether the site uses django-unfold."""

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
elif HAS_UNFOLD:
    from unfold.admin import ModelAdmin
else:
    from django.contrib.admin import ModelAdmin

FORM_STYLES: Final = () if HAS_UNFOLD else ("admin/css/forms.css",)
"""The style sheets of forms that are not on a page of Django's for one row."""
OBJECT_TOOL: Final = "div" if HAS_UNFOLD else "li"
"""The element of an entry of a list's object tools: Django's are a list."""

__all__ = ["FORM_STYLES", "HAS_UNFOLD", "OBJECT_TOOL", "ModelAdmin"]


# -- rights ----------------------------------------------------------------------------
# The app's own permissions in words: what needs one, and who has it.

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


# -- concurrency -----------------------------------------------------------------------

AnyRow = TypeVar("AnyRow", bound=models.Model)
Row = TypeVar("Row", bound=WatchedRow)

MAX_DELETION_MESSAGES: Final = 10
"""Rows of which a message says that they are deleted."""

if TYPE_CHECKING:

    class TypedAdmin(ModelAdmin[AnyRow]): ...

else:
    # Django's class takes no type arguments at run time.
    class TypedAdmin(ModelAdmin, Generic[AnyRow]): ...


def _utf8_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer 400 to a form in another encoding.

    Some encodings can express lone surrogates, which no page or database can hold.
    """

    @wraps(view)
    def checking_view(
        request: HttpRequest, *positional: Any, **keywords: Any
    ) -> HttpResponse:
        encoding = request.encoding
        if encoding and codecs.lookup(encoding).name != "utf-8":
            raise BadRequest(f"The form must be in UTF-8, not in {encoding}.")
        return view(request, *positional, **keywords)

    return checking_view


class SettledAdmin(TypedAdmin[AnyRow]):
    """Answers a change only when every worker knows of it.

    Actions open their own transactions, if any; the other views run in one.
    """

    object_tool = OBJECT_TOOL

    @property
    def urls(self) -> list[URLPattern]:
        """All views of the model, which accept only UTF-8."""
        patterns: list[URLPattern] = self.get_urls()
        for pattern in patterns:
            pattern.callback = _utf8_only(pattern.callback)
        return patterns

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Return whether the query string may filter a list like this.

        Of its own columns only the list's filters are allowed: other lookups go to the
        database unchecked, and a bad regex or a NUL would cause a server error.
        """
        name, _separator, how = lookup.partition("__")
        if name not in {field.name for field in self.opts.get_fields()}:
            return super().lookup_allowed(lookup, value, request)
        if name not in self.list_filter or how not in ("", "exact"):
            return False
        choices = dict(self.opts.get_field(name).flatchoices)  # type: ignore[union-attr]
        return value in choices

    def save_model(
        self, request: HttpRequest, obj: AnyRow, form: ModelForm[AnyRow], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        self._hold_response()

    def delete_model(self, request: HttpRequest, obj: AnyRow) -> None:
        super().delete_model(request, obj)
        self._hold_response()

    def response_action(
        self,
        request: HttpRequest,
        queryset: models.QuerySet[Any],
        *positional: Any,
        **named: Any,
    ) -> HttpResponse | None:
        if not self._are_there(request):
            return None
        response = super().response_action(request, queryset, *positional, **named)
        self._hold_response()
        return response

    def _are_there(self, request: HttpRequest) -> bool:
        """Return whether any chosen row still exists; say who deleted the others."""
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if request.POST.get("select_across") == "1":
            return True
        keys = [primary_key_of(self.model, text) for text in chosen]
        if None in keys:
            message = _("Your choice is not in this list. Choose again.")
            self.message_user(request, message, messages.ERROR)
            return False
        gone = list(deleted_rows.sentences(self.model, keys))
        for sentence in gone[:MAX_DELETION_MESSAGES]:
            self.message_user(request, sentence, messages.ERROR)
        return len(set(keys)) > len(gone) or not keys

    def _hold_response(self) -> None:
        hold_after_commit(router.db_for_write(self.model))


class LockingAdmin(SettledAdmin[Row]):
    """Locks the row while a POST compares its version and saves it."""

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Row | None:
        # An empty `from_field` means the primary key.
        row = super().get_object(request, object_id, from_field or None)
        if row is None or request.method != "POST":
            return row
        rows = self.model._default_manager.all()
        if not connections[rows.db].in_atomic_block:
            return row
        return rows.select_for_update().filter(pk=row.pk).first()


# -- bulk deletion ---------------------------------------------------------------------
# Lists without Django's action for deleting rows, because they have their own.


class NoBulkDeletion(TypedAdmin[AnyRow]):
    """Removes the action `delete_selected`."""

    def get_actions(
        self, request: HttpRequest, action_location: Any = None
    ) -> dict[str, Any]:
        # Django has the second argument since 6.1.
        place = {} if action_location is None else {"action_location": action_location}
        actions = super().get_actions(request, **place)
        actions.pop("delete_selected", None)
        return actions
