"""The admin page of sessions: who is connected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.operations.live import LivePages
from mcp_app.admin.page.bulk_deletion import NoBulkDeletion
from mcp_app.admin.page.people import client_of, session_user_name, user_names
from mcp_app.admin.page.unfold import FixedRows
from mcp_app.models import Session
from mcp_app.site_time import time_html, unix_time


class SessionList(ChangeList):
    """Reads the users of a page with one query."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        names = user_names(session.user_id for session in self.result_list)
        for session in self.result_list:
            session.shown_user = session_user_name(session, names)


@admin.register(Session)
class SessionAdmin(NoBulkDeletion[Session], FixedRows[Session], LivePages):
    change_list_template = "admin/mcp_app/sessions.html"
    list_display = ["client", "user", "server", "revision", "last_seen", "opened"]
    search_fields = ["client_info", "server"]
    show_full_result_count = False
    ordering = ["-seen_ms"]
    fields = ["client", "user", "server", "revision", "last_seen", "opened"]

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return SessionList

    @admin.display(description=_("client"), ordering="client_info")
    def client(self, session: Session) -> str:
        return client_of(session)

    @admin.display(description=_("user"))
    def user(self, session: Session) -> str:
        if not hasattr(session, "shown_user"):
            names = user_names([session.user_id])
            session.shown_user = session_user_name(session, names)  # type: ignore[attr-defined]
        return str(session.shown_user)  # type: ignore[attr-defined]

    @admin.display(description=_("last seen"), ordering="seen_ms")
    def last_seen(self, session: Session) -> str:
        return time_html(unix_time(session.seen_ms / 1000))

    @admin.display(description=_("opened"), ordering="created_ms")
    def opened(self, session: Session) -> str:
        return time_html(unix_time(session.created_ms / 1000))

    def get_deleted_objects(
        self, objs: Iterable[Session], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Name only the sessions, not their messages: there may be a million."""
        names = [str(each) for each in objs]
        return names, {str(self.opts.verbose_name_plural): len(names)}, set(), []

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        session = self.get_object(request, object_id)
        allowed = session is not None and self.has_delete_permission(request, session)
        if request.method == "POST" and allowed:
            # Delete the messages first, in parts: one transaction could take too long.
            Session.objects.filter(pk=object_id).empty()
        return super().delete_view(request, object_id, extra_context)
