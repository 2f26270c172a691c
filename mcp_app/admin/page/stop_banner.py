"""What is stopped now, in words, for every page of the app."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.page.rights import right_holders
from mcp_app.interface.rules import visible
from mcp_app.models import PublishedRow, Stop
from mcp_app.models.stops import WIDE, Scope
from mcp_app.site_time import time_html

STOP_RIGHT: Final = "stop"
ROW: Final = "row"
"""The value of `back` in a URL: after a row is started, return to its page."""
MAX_NAMES: Final = 10
"""How many names a sentence has."""


def active_stops(request: HttpRequest) -> list[Stop]:
    """Return the active stops, queried once per request."""
    stops: list[Stop] | None = getattr(request, "mcp_stops", None)
    if stops is None:
        stops = list(Stop.objects.on())
        vars(request)["mcp_stops"] = stops
    return stops


def wide_stops(stops: Iterable[Stop]) -> list[Stop]:
    """Return the stops that affect more than one definition."""
    return [stop for stop in stops if stop.scope in WIDE]


def stops_of_row(stops: Iterable[Stop], row: PublishedRow) -> list[Stop]:
    """Return the stops of just this server or definition."""
    return [stop for stop in stops if stop.holds(row)]


def target_of(row: PublishedRow) -> str:
    """Return the name of a row in forms and URLs."""
    return f"{row.kind_of_row}:{row.pk}"


def stop_target(stop: Stop) -> str:
    """Return the name of what is stopped in forms and URLs: a row or a scope."""
    return f"{stop.kind}:{stop.ref}" if stop.kind else stop.scope


def stop_sentence(stop: Stop) -> SafeString:
    """Say what is stopped, since when, by whom, and why."""
    wording = {
        Scope.EVERYTHING.value: _("Everything is stopped since {since}, by {who}."),
        Scope.CHANGES.value: _(
            "All tools that change things are stopped since {since}, by {who}."
        ),
        Scope.SERVER.value: _("The server {what} is stopped since {since}, by {who}."),
    }.get(stop.scope, _("{what} is stopped since {since}, by {who}."))
    who = visible(stop.by_name) or _("an unknown person")
    first = format_html(wording, what=stop.what, since=time_html(stop.at), who=who)
    if not stop.reason:
        return first
    why = _("Why: “{reason}”.")
    return format_html("{} {}", first, format_html(why, reason=visible(stop.reason)))


def stop_result(stop: Stop) -> str:
    """Say what the stop did; the text is final once its request was answered."""
    if not stop.cancels:
        calls = _("Calls that were running when it was stopped may finish.")
    elif stop.cancelled:
        calls = ngettext(
            "%(count)d running call was cancelled.",
            "%(count)d running calls were cancelled.",
            stop.cancelled,
        ) % {"count": stop.cancelled}
    else:
        calls = ""
    return f"{_('Clients do not see it any more.')} {calls}".strip()


def stops_url() -> str:
    return reverse("admin:mcp_app_server_stops")


def start_url(target: str, *, back: str = "") -> str:
    """Return the URL of the page that asks before something is started again.

    With `back=ROW`, that page leads back to the row.
    """
    url = f"{reverse('admin:mcp_app_server_start_again')}?what={target}"
    return f"{url}&back={back}" if back else url


def who_may_stop(request: HttpRequest) -> str:
    """Say who can stop; name people only to users who may view users."""
    names = right_holders(request, STOP_RIGHT)
    if not names:
        return _("To stop something, ask someone with the right “Can stop and start”.")
    advice = _(
        "To stop something, ask someone with the right “Can stop and start”: %(names)s."
    )
    return advice % {"names": visible(", ".join(names), None)}
