"""The admin page of sessions: who is connected, and a way to end it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from mcp_app.admin.locking import SettledAdmin
from mcp_app.models import Session


class SessionList(ChangeList):
    """Reads the users of a page with one query."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        users = _users({session.user_id for session in self.result_list})
        for session in self.result_list:
            session.shown_user = users.get(session.user_id, session.user_id)


def _users(keys: set[str]) -> dict[str, str]:
    model = get_user_model()
    rows = model._default_manager.filter(pk__in=filter(_is_key, keys))
    return {str(user.pk): user.get_username() for user in rows}


def _is_key(text: str) -> bool:
    """Whether a text can be a primary key of the site's users."""
    key = get_user_model()._meta.pk
    try:
        return bool(text) and key.to_python(text) is not None
    except ValidationError:
        return False


@admin.register(Session)
class SessionAdmin(SettledAdmin[Session]):
    list_display = ["client", "user", "server", "revision", "last_seen", "opened"]
    search_fields = ["client_info", "server"]
    show_full_result_count = False
    ordering = ["-seen_ms"]
    actions = ["end_sessions"]
    fields = ["client", "user", "server", "revision", "last_seen", "opened"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Session | None = None
    ) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return SessionList

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @admin.display(description=_("client"), ordering="client_info")
    def client(self, session: Session) -> str:
        return session.client_name or str(_("a client without a name"))

    @admin.display(description=_("user"))
    def user(self, session: Session) -> str:
        if not hasattr(session, "shown_user"):
            session.shown_user = _users({session.user_id}).get(session.user_id, "")  # type: ignore[attr-defined]
        return session.shown_user or str(_("nobody"))  # type: ignore[attr-defined]

    @admin.display(description=_("last seen"), ordering="seen_ms")
    def last_seen(self, session: Session) -> datetime:
        return datetime.fromtimestamp(session.seen_ms / 1000, UTC)

    @admin.display(description=_("opened"), ordering="created_ms")
    def opened(self, session: Session) -> datetime:
        return datetime.fromtimestamp(session.created_ms / 1000, UTC)

    @admin.action(description=_("End the chosen sessions"), permissions=["delete"])
    def end_sessions(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        with transaction.atomic():
            LogEntry.objects.log_actions(
                str(request.user.pk), queryset, DELETION, change_message="Ended."
            )
            count = queryset.count()
            queryset.delete()
        message = ngettext("%d session was ended.", "%d sessions were ended.", count)
        self.message_user(request, message % count, messages.SUCCESS)
