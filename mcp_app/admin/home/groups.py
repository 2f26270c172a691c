"""Help for users without rights, and the button that makes the three groups."""

from __future__ import annotations

from typing import TypeVar

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from mcp_app.admin.page.concurrency import PageViews, SettledAdmin
from mcp_app.admin.page.rights import you_can_ask
from mcp_app.admin.tokens.token_pages import own_tokens_url
from mcp_app.auth.groups import GROUPS, complete_groups, missing_rights

Row = TypeVar("Row", bound=models.Model)


class GroupPages(SettledAdmin[Row]):
    """Makes the groups; lets all staff open the home page, but no other page."""

    def page_views(self) -> PageViews:
        return {"groups/": ("groups", self.groups_view), **super().page_views()}

    @method_decorator(require_POST)
    def groups_view(self, request: HttpRequest) -> HttpResponse:
        """Make or complete the three groups."""
        if not _may_make(request):
            raise PermissionDenied
        names = ", ".join(complete_groups() or GROUPS)
        message = _("Made or completed: %(names)s.") % {"names": names}
        self.message_user(request, message, messages.SUCCESS)
        self._hold_response()
        return HttpResponseRedirect(reverse("admin:app_list", args=["mcp_app"]))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _is_home(request) or super().has_module_permission(request)

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        # Django shows the page if a value is true.
        return {**super().get_model_perms(request), "home": _is_home(request)}


def _is_home(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and (match.url_name, match.kwargs) == (
        "app_list",
        {"app_label": "mcp_app"},
    )


def groups_context(request: HttpRequest) -> dict[str, object]:
    """Return whom to ask for rights, and whether groups can be made."""
    return {
        "without_rights": _whom_to_ask_for_rights(request),
        "own_url": own_tokens_url(request),
        # Offer the button only if a group or one of its permissions is missing.
        "makes_groups": _may_make(request) and bool(missing_rights()),
    }


def _may_make(request: HttpRequest) -> bool:
    """Return whether the user may make groups and change existing ones."""
    return request.user.has_perms(["auth.add_group", "auth.change_group"])


def _whom_to_ask_for_rights(request: HttpRequest) -> str:
    if request.user.has_module_perms("mcp_app"):
        return ""
    users = get_user_model()._meta
    right = f"change_{users.model_name}"
    sentence = _(
        "You have no rights here yet: ask somebody who manages users to put you into"
        " one of the groups %(names)s."
    ) % {"names": ", ".join(GROUPS)}
    return f"{sentence} {you_can_ask(request, right, users.app_label)}".strip()
