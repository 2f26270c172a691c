"""The live page, with its buttons that close sessions and cancel calls."""

from __future__ import annotations

import time
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import connections, router, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from mcp_app.admin.operations.live_parts import LIVE_PARTS, Look, call_name
from mcp_app.admin.page.concurrency import PageViews, SettledAdmin
from mcp_app.admin.page.header import PAGE_MEDIA, render_page, render_part
from mcp_app.admin.page.rights import has_right
from mcp_app.invalidation import changes
from mcp_app.models import Change, Session, Stream, Worker
from mcp_app.models.history import CHANGE, DELETION, log_actions
from mcp_app.publishing.rights import lacking_sentence
from mcp_app.server.request_digests import request_key
from mcp_app.streams.event_ids import request_ids

CLOSE: Final = "delete_session"
"""The permission to close sessions and to cancel calls."""
PATIENCE_S: Final = 1.0
"""How long a request waits for a cancelled call to end."""
LOOK_S: Final = 0.05
"""How long that request sleeps before it looks again."""


class LivePages(SettledAdmin[Session]):
    """Shows calls, clients and processes; closes sessions and cancels calls."""

    def page_views(self) -> PageViews:
        return {
            "live/": ("live", self.live_view),
            "<int:key>/close/": ("close", require_POST(self.close_view)),
            "call/<int:key>/cancel/": ("cancel", require_POST(self.cancel_view)),
            **super().page_views(),
        }

    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Show the page, or one part of it if the page's script asks for that."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            "may_close": self.has_delete_permission(request),
            "lacking": lacking_sentence(CLOSE),
            "list_url": reverse("admin:mcp_app_session_changelist"),
        }
        part, look = request.GET.get("part"), Look(request)
        if part is None:
            context |= {"media": PAGE_MEDIA}
            for build in LIVE_PARTS.values():
                context |= build(look)
            return render_page(self, request, "live", _("What happens now"), context)
        if part not in LIVE_PARTS:
            raise Http404(_("This page has no such part."))
        context |= LIVE_PARTS[part](look)
        return render_part(request, f"live_{part}", context)

    def close_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Close a session in every process, as if its client had closed it."""
        self._demand_right(request)
        session = Session.objects.filter(pk=key).first()
        _total, deleted_counts = Session.objects.filter(pk=key).delete()
        if session is None or not deleted_counts.get(Session._meta.label):
            message = _("This session is closed already.")
            return self._redirect_back(request, message, messages.WARNING)
        log_actions(request.user, [session], DELETION, _("Closed."))
        self._hold_response()
        message = _("Closed. The client opens a new session when it next calls.")
        return self._redirect_back(request, message, messages.SUCCESS)

    def cancel_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Cancel a call in the process that runs it; that process tells the client."""
        self._demand_right(request)
        rows = Stream.objects.open().filter(pk=key).select_related("session")
        stream = rows.first()
        if stream is None:
            message = _("This call is over already.")
            return self._redirect_back(request, message, messages.WARNING)
        if not Worker.objects.live().filter(pk=stream.owner).exists():
            message = _(
                "Nobody runs this call any more, because its process does not respond."
            )
            return self._redirect_back(request, message, messages.WARNING)
        message = _("Cancelled a call: %(call)s.") % {"call": call_name(stream)}
        with transaction.atomic(using=router.db_for_write(Change)):
            for each in request_ids(stream.requests):
                changes.record_stop(stream.session_id, request_key(each))
            log_actions(request.user, [stream.session], CHANGE, message)
            self._hold_response()
        level = messages.SUCCESS
        message = _("Cancelled: %(call)s. Its client has been told.")
        if not self._has_ended(stream):
            level = messages.INFO
            message = _(
                "The process that runs %(call)s was told to cancel it. Look"
                " again in a moment."
            )
        message %= {"call": call_name(stream)}
        return self._redirect_back(request, message, level)

    def _has_ended(self, stream: Stream) -> bool:
        """Wait briefly for a call to end, except inside an uncommitted transaction."""
        using = router.db_for_write(Stream)
        row = Stream.objects.open().using(using).filter(pk=stream.pk)
        end = time.monotonic() + PATIENCE_S
        while row.exists():
            # No process sees the order to cancel before the transaction is committed.
            if connections[using].in_atomic_block or time.monotonic() >= end:
                return False
            time.sleep(LOOK_S)
        return True

    def _demand_right(self, request: HttpRequest) -> None:
        if not (self.has_view_permission(request) and has_right(request, CLOSE)):
            raise PermissionDenied(lacking_sentence(CLOSE))

    def _redirect_back(
        self, request: HttpRequest, message: str, level: int
    ) -> HttpResponse:
        self.message_user(request, message, level)
        return HttpResponseRedirect(reverse("admin:mcp_app_session_live"))
