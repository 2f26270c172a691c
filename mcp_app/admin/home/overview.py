"""What the home page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_app.admin.calls.charts import day_bars, grouped_digits, percents
from mcp_app.admin.calls.filters import ANY_FAILURE
from mcp_app.admin.calls.presentation import in_words
from mcp_app.admin.home import attention, servers
from mcp_app.admin.home.steps import progress, steps
from mcp_app.admin.page import stop_banner
from mcp_app.admin.page.broken_rows import is_broken_somewhere, reports_on
from mcp_app.admin.page.header import LOOKS
from mcp_app.admin.page.rights import may
from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import visible
from mcp_app.models import Server, State
from mcp_app.models.stops import Scope
from mcp_app.workbench.overview import Overview, Pace, read_overview
from mcp_app.workbench.viewer import Viewer, viewer_of


@dataclass(frozen=True, slots=True)
class Strip:
    """The first line: whether clients are served, and counts of what may be viewed."""

    look: str
    word: str
    servers: int | None
    processes: int | None
    clients: int | None
    may_stop: bool
    stops_url: str
    who_may_stop: str


@dataclass(frozen=True, slots=True)
class PaceLine:
    """A line of what was slow, or of what failed; `url` leads to these calls."""

    name: str
    kind: str
    figure: str
    url: str


def overview(request: HttpRequest) -> dict[str, object]:
    """Return the context of the home page.

    Once all steps are done, they are shown only if the reader asks (`?begin`).
    """
    viewer = viewer_of(request.user)
    found = read_overview(
        viewer, reports_on(request), partial(is_broken_somewhere, request)
    )
    lines = servers.server_lines(request)
    done = progress(mcp, found)
    begins = not done.is_complete or "begin" in request.GET
    concerns = attention.concerns(request, viewer, found, lines)
    most = len(concerns) if attention.ALL in request.GET else attention.MOST
    return {
        "strip": _strip(request, viewer, found),
        "steps": steps(request, done, lines) if begins else [],
        "is_begun": done.is_complete,
        "concerns": concerns[:most],
        "concern_count": len(concerns),
        "more_concerns": len(concerns[most:]),
        "calls": _calls(found) if viewer.calls else None,
        "servers": lines[: servers.MOST],
        "has_links": any(each.links for each in lines),
        "more_servers": len(lines) > servers.MOST,
    }


def _strip(request: HttpRequest, viewer: Viewer, found: Overview) -> Strip:
    on = stop_banner.stops_on(request)
    look, word = LOOKS[State.PUBLISHED], _("Serving")
    if any(each.scope == Scope.EVERYTHING for each in on):
        look, word = LOOKS[State.STOPPED], str(State.STOPPED.label)
    elif not found.processes.count:
        look, word = "", _("No process")
    may_stop = may(request, stop_banner.RIGHT)
    sees_servers = Server in viewer.models
    return Strip(
        look=look,
        word=word,
        servers=found.rows[Server].published if sees_servers else None,
        processes=found.processes.count if viewer.sessions else None,
        clients=found.clients if viewer.sessions else None,
        may_stop=may_stop,
        stops_url=stop_banner.stops_url(),
        who_may_stop="" if may_stop else stop_banner.who_may(request),
    )


def _calls(found: Overview) -> dict[str, object]:
    """Return the figures of a day: numbers, bars, what was slow and what failed."""
    listed = reverse("admin:mcp_app_call_changelist")
    return {
        "count": found.calls,
        "calls": grouped_digits(found.calls),
        "failed": grouped_digits(found.failed) if found.failed else "",
        "percent": percents(100 * found.failed / max(1, found.calls)),
        "url": listed,
        "failed_url": f"{listed}?outcome={ANY_FAILURE}",
        "bars": day_bars(found.since_ms, found.hours) if found.hours else (),
        "slowest": _slowest(found.paces.slowest),
        "most_failing": _most_failing(found.paces.most_failing),
    }


def _slowest(paces: Sequence[Pace]) -> list[PaceLine]:
    return [
        PaceLine(
            name=visible(each.name),
            kind=attention.kind_of(each),
            figure=in_words(each.mean_ms),
            url=attention.calls_url(each, outcome=""),
        )
        for each in paces
    ]


def _most_failing(paces: Sequence[Pace]) -> list[PaceLine]:
    said = _("%(failed)s of %(calls)s")
    return [
        PaceLine(
            name=visible(each.name),
            kind=attention.kind_of(each),
            figure=said
            % {
                "failed": grouped_digits(each.failed),
                "calls": grouped_digits(each.calls),
            },
            url=attention.calls_url(each),
        )
        for each in paces
    ]
