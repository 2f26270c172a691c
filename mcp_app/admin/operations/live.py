"""The live page, with its buttons that close sessions and cancel calls."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from django.contrib import messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import connections, router, transaction
from django.forms.widgets import Media, Script
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.timezone import now
from django.utils.translation import gettext as _

from mcp_app.admin.operations.live_rows import PARTS, call_name
from mcp_app.admin.page.concurrency import SettledAdmin
from mcp_app.admin.page.rights import lacking, may
from mcp_app.invalidation import changes
from mcp_app.models import Change, Session, Stream, Worker
from mcp_app.server import identity
from mcp_app.streams.final_message import request_ids

MEDIA: Final = Media(
    css={"all": ["mcp_app/admin.css"]},
    js=[Script("mcp_app/admin.js", defer=True)],  # type: ignore[list-item]
)
CLOSE: Final = "delete_session"
"""The permission to close sessions and to cancel calls."""
PATIENCE_S: Final = 1.0
"""How long a request waits for a cancelled call to end."""
LOOK_S: Final = 0.05


class LivePages(SettledAdmin[Session]):
    """Shows processes, calls and sessions; closes sessions and cancels calls."""

    def get_urls(self) -> list[URLPattern]:
        wrap, name = self.admin_site.admin_view, "mcp_app_session"
        return [
            path("live/", wrap(self.live_view), name=f"{name}_live"),
            path("<int:key>/close/", wrap(self.close_view), name=f"{name}_close"),
            path(
                "call/<int:key>/cancel/", wrap(self.cancel_view), name=f"{name}_cancel"
            ),
            *super().get_urls(),
        ]

    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Show the page, or one part of it if the page's script asks for that."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            "may_close": self.has_delete_permission(request),
            "lacking": lacking(CLOSE),
            "list_url": reverse("admin:mcp_app_session_changelist"),
        }
        part = request.GET.get("part")
        if part is None:
            return self._live_page(request, context)
        if part not in PARTS:
            raise Http404(_("This page has no such part."))
        template = f"admin/mcp_app/includes/live_{part}.html"
        return TemplateResponse(request, template, {**context, **PARTS[part]()})

    def _live_page(
        self, request: HttpRequest, context: Mapping[str, object]
    ) -> HttpResponse:
        both = {
            **self.admin_site.each_context(request),
            **context,
            "opts": self.opts,
            "media": MEDIA,
            "title": _("What happens now"),
            "updated": now(),
            "parts": {name: shown() for name, shown in PARTS.items()},
        }
        return TemplateResponse(request, "admin/mcp_app/live.html", both)

    def close_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Close a session in every process, as if its client had closed it."""
        if refused := self._refused(request):
            return refused
        session = Session.objects.filter(pk=key).first()
        if session is None or not self._closed(request, session):
            said = _("This session is closed already.")
            return self._back(request, said, messages.WARNING)
        said = _("Closed. The client opens a new session when it next calls.")
        return self._back(request, said, messages.SUCCESS)

    def _closed(self, request: HttpRequest, session: Session) -> bool:
        """Close a session and log it; return whether it was still open."""
        _total, gone = Session.objects.filter(pk=session.pk).delete()
        if not gone.get(Session._meta.label):
            return False
        LogEntry.objects.log_actions(
            str(request.user.pk), [session], DELETION, _("Closed."), single_object=True
        )
        self._hold()
        return True

    def cancel_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Cancel a call in whichever process runs it; that process tells its client."""
        if refused := self._refused(request):
            return refused
        rows = Stream.objects.open().filter(pk=key).select_related("session")
        stream = rows.first()
        if stream is None:
            said = _("This call is over already.")
            return self._back(request, said, messages.WARNING)
        if not Worker.objects.live().filter(pk=stream.owner).exists():
            said = _(
                "Nobody runs this call any more, because its process does not respond."
            )
            return self._back(request, said, messages.WARNING)
        self._cancel(request, stream)
        if self._is_over(stream):
            said = _("Cancelled: %(call)s. Its client has been told.")
            level = messages.SUCCESS
        else:
            said = _(
                "The process that runs %(call)s was told to cancel it. Look"
                " again in a moment."
            )
            level = messages.INFO
        return self._back(request, said % {"call": call_name(stream)}, level)

    def _cancel(self, request: HttpRequest, stream: Stream) -> None:
        with transaction.atomic(using=router.db_for_write(Change)):
            for each in request_ids(stream.requests):
                changes.record_stop(stream.session_id, identity.key(each))
            said = _("Cancelled a call: %(call)s.") % {"call": call_name(stream)}
            LogEntry.objects.log_actions(
                str(request.user.pk), [stream.session], CHANGE, said, single_object=True
            )
            self._hold()

    def _is_over(self, stream: Stream) -> bool:
        """Wait briefly for a call to end, except inside an uncommitted transaction."""
        using = router.db_for_write(Stream)
        row = Stream.objects.open().using(using).filter(pk=stream.pk)
        end = time.monotonic() + PATIENCE_S
        while row.exists():
            if connections[using].in_atomic_block or time.monotonic() >= end:
                return False
            time.sleep(LOOK_S)
        return True

    def _refused(self, request: HttpRequest) -> HttpResponse | None:
        """Return 405 unless it is a POST, else None; raise 403 if not allowed."""
        if not (self.has_view_permission(request) and may(request, CLOSE)):
            raise PermissionDenied(lacking(CLOSE))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        return None

    def _back(self, request: HttpRequest, said: str, level: int) -> HttpResponse:
        self.message_user(request, said, level)
        return HttpResponseRedirect(reverse("admin:mcp_app_session_live"))
