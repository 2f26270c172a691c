"""The page that stops everything, or a part of it, and starts it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.operations.stop_lines import (
    search_definitions,
    search_text,
    single_lines,
    stop_lines,
)
from mcp_app.admin.page import header, stop_banner
from mcp_app.admin.page.concurrency import PageViews, SettledAdmin
from mcp_app.admin.page.header import page_url, why_broken
from mcp_app.admin.page.keys import ROW_KEY
from mcp_app.admin.publishing import comparison
from mcp_app.admin.publishing.pages import author_of
from mcp_app.interface.rules import visible
from mcp_app.models import PublishedRow, Stop
from mcp_app.models.stops import Running, Scope, scope_of
from mcp_app.publishing import services
from mcp_app.publishing.rights import require_right
from mcp_app.publishing.stop_targets import row_of_key, row_of_stop

Row = TypeVar("Row", bound=models.Model)

MAX_SINGLE_STOPS: Final = 50
"""How many individually stopped definitions the page names."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The typed values of the form, which an error shows again."""

    reason: str = ""
    running: str = Running.CANCEL
    sought: str = ""


class StopPages(SettledAdmin[Row]):
    """Stopping needs no confirmation; starting shows what comes back, and asks."""

    def page_views(self) -> PageViews:
        return {
            "stop/": ("stops", self.stops_view),
            "stop/start/": ("start_again", self.start_again_view),
            **super().page_views(),
        }

    def stops_view(self, request: HttpRequest) -> HttpResponse:
        """Show what is stopped; on POST, stop what the button names."""
        require_right(request.user, stop_banner.STOP_RIGHT)
        if request.method != "POST":
            return self._stops_page(request, Wish(sought=search_text(request.GET)))
        wish = Wish(
            reason=request.POST.get("reason", "").strip(),
            running=request.POST.get("running", Running.CANCEL),
            sought=search_text(request.POST),
        )
        target = request.POST.get("stop", "")
        if not target:
            return self._stops_page(request, wish)
        try:
            scope, row = _resolve_target(target)
            by, running, reason = author_of(request), wish.running, wish.reason
            stop = services.stop(by, scope, row, running=running, reason=reason)
        except ValidationError as error:
            for problem in error.messages:
                self.message_user(request, problem, messages.ERROR)
            return self._stops_page(request, wish)
        message = _("Stopped: %(what)s. Clients do not see it any more.")
        self.message_user(request, message % {"what": stop.what}, messages.SUCCESS)
        if stop.reason != wish.reason:
            message = _("The reason was stored in a changed form: “%(reason)s”.")
            message %= {"reason": stop.reason}
            self.message_user(request, message, messages.WARNING)
        return HttpResponseRedirect(stop_banner.stops_url())

    def _stops_page(self, request: HttpRequest, wish: Wish) -> HttpResponse:
        on = stop_banner.active_stops(request)
        single_stops = [each for each in on if each.scope == Scope.DEFINITION]
        singles = [*single_lines(single_stops)]
        context = {
            "sentences": [
                (stop_banner.stop_sentence(each), stop_banner.stop_result(each))
                for each in stop_banner.wide_stops(on)
            ],
            "boxes": [*stop_lines(on)],
            "singles": singles[:MAX_SINGLE_STOPS],
            "more": max(len(singles) - MAX_SINGLE_STOPS, 0),
            "found": [*search_definitions(wish.sought, on)],
            "wish": wish,
            "running": Running.choices,
        }
        return header.render_page(self, request, "stop", _("Stop"), context)

    def start_again_view(self, request: HttpRequest) -> HttpResponse:
        """Show what comes back; on POST, end the stops that the page showed."""
        require_right(request.user, stop_banner.STOP_RIGHT)
        if request.method == "POST":
            return self._end_stops(request)
        on = stop_banner.active_stops(request)
        target = request.GET.get("what", "")
        ending = _stops_of_target(target, on)
        if not ending:
            message = _("This is not stopped any more.")
            self.message_user(request, message, messages.WARNING)
            return HttpResponseRedirect(stop_banner.stops_url())
        context = {
            "stops": [(each.pk, stop_banner.stop_sentence(each)) for each in ending],
            "back": _restart_words(ending),
            "staying": _staying_sentence([each for each in on if each not in ending]),
            "back_url": _return_url(request.GET, ending[0]),
            "back_to": request.GET.get("back", ""),
        }
        title = _("Start again: %(what)s") % {"what": ending[0].what}
        return header.render_page(self, request, "start_again", title, context)

    def _end_stops(self, request: HttpRequest) -> HttpResponse:
        sent = request.POST.getlist("stop")
        keys = [int(each) for each in sent if ROW_KEY.fullmatch(each)]
        ended = services.start(author_of(request), keys)
        if not ended:
            message = _("Somebody has started this before you.")
            self.message_user(request, message, messages.WARNING)
            return HttpResponseRedirect(stop_banner.stops_url())
        message = _("Started again: %(what)s. %(staying)s") % {
            "what": ", ".join(dict.fromkeys(each.what for each in ended)),
            "staying": _staying_sentence(Stop.objects.on()),
        }
        self.message_user(request, message.strip(), messages.SUCCESS)
        for row in filter(None, map(row_of_stop, ended)):
            if why := why_broken(row):
                message = f"{row}: {comparison.stays_broken(why)}"
                self.message_user(request, message, messages.WARNING)
        return HttpResponseRedirect(_return_url(request.POST, ended[0]))


def _return_url(query: QueryDict, stop: Stop) -> str:
    """Return the row's page if staff came from there, else the page of stops."""
    row = row_of_stop(stop) if query.get("back") == stop_banner.ROW else None
    return stop_banner.stops_url() if row is None else page_url(row, "change")


def _resolve_target(text: str) -> tuple[str, PublishedRow | None]:
    """Return the scope and row that a button names; raise `ValidationError` if gone."""
    if text in (Scope.EVERYTHING, Scope.CHANGES):
        return text, None
    kind, _separator, ref = text.partition(":")
    row = row_of_key(kind, ref)
    if row is None:
        message = _("“%(what)s” does not exist any more: nothing was stopped.")
        raise ValidationError(message % {"what": visible(text)})
    return scope_of(row), row


def _stops_of_target(target: str, on: Sequence[Stop]) -> list[Stop]:
    """Return the stops of a target; a row is matched by its key or served name."""
    row = row_of_key(*target.split(":", 1)) if ":" in target else None
    return [
        each
        for each in on
        if target == stop_banner.stop_target(each)
        or (row is not None and each.holds(row))
    ]


def _restart_words(ending: Sequence[Stop]) -> str:
    """Say what clients see of a definition again; "" for a wider stop."""
    if ending[0].scope != Scope.DEFINITION:
        return ""
    row, name = row_of_stop(ending[0]), ending[0].what
    if row is None:
        return _("%(what)s was deleted. No client sees it.") % {"what": name}
    return f"{name}: {comparison.restart_sentence(row)}"


def _staying_sentence(on: Any) -> str:
    """Name what stays stopped; "" for nothing."""
    names = list(dict.fromkeys(each.what for each in on))
    if not names:
        return ""
    return _("These stay stopped: %(names)s.") % {"names": ", ".join(names)}
