"""The content of the home page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_app.admin.calls.charts import grouped_digits, hourly_chart, percentile_bound
from mcp_app.admin.calls.filters import ANY_FAILURE, ANY_REFUSAL
from mcp_app.admin.calls.presentation import milliseconds_text
from mcp_app.admin.home import attention
from mcp_app.admin.home.groups import groups_context
from mcp_app.admin.page import stop_banner
from mcp_app.admin.page.broken_rows import is_broken_somewhere, reports_on
from mcp_app.admin.page.header import serving_mark
from mcp_app.admin.page.rights import has_right
from mcp_app.interface.rules import visible
from mcp_app.models import Server, Tool
from mcp_app.publishing.rights import lacking_sentence
from mcp_app.workbench.overview import Overview, Pace, read_overview
from mcp_app.workbench.viewer import Viewer, viewer_of

# -- steps -----------------------------------------------------------------------------
# How to begin: three steps. Their ticks follow from the rows; nothing is stored.


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `lacking` says which permission the user lacks for its link."""

    title: str
    is_done: bool
    url: str = ""
    link: str = ""
    text: str = ""
    lacking: str = ""


def steps_to_begin(
    request: HttpRequest, done: Sequence[bool], servers: Sequence[dict[str, Any]]
) -> list[Step]:
    """Return the steps; asks the database nothing."""
    has_tool, lets_in, connected = done
    token_url = reverse("admin:mcp_app_accesstoken_add")
    link = _("Make an access token")
    access = Step(_("Let somebody in"), lets_in, token_url, link)
    url, link = token_url, _("Make a token: its page shows the address")
    text = ""
    if servers:
        url, link = servers[0]["connect_url"], _("Connect")
        text = _("has the line for yours.")
    return [
        _tool_step(request, has_tool),
        access,
        Step(_("Connect a client"), connected, url, link, text),
    ]


def _tool_step(request: HttpRequest, is_done: bool) -> Step:
    url, title = "", _("Make a tool, and publish it")
    if may_add := has_right(request, "add_tool"):
        url = reverse("admin:mcp_app_tool_add")
    if is_done:
        return Step(title, is_done, url, _("Add another tool"))
    right = "publish" if may_add else "add_tool"
    lacking = "" if has_right(request, right) else lacking_sentence(right)
    return Step(title, is_done, url, _("Add a tool"), lacking=lacking)


# -- overview --------------------------------------------------------------------------


def home_context(request: HttpRequest, models: str = "") -> dict[str, object]:
    """Return the context of the home page; `models` is Django's own list, as HTML.

    The steps are hidden once all are done.
    """
    viewer = viewer_of(request.user)
    overview = read_overview(
        viewer, len(reports_on(request)), partial(is_broken_somewhere, request)
    )
    lines = attention.server_lines(request)
    done = (
        bool(overview.rows[Tool].begun),
        bool(overview.tokens["usable"] or overview.rows[Server].begun),
        overview.connected,
    )
    concerns = attention.list_concerns(request, viewer, overview)
    limit = len(concerns) if attention.ALL in request.GET else attention.MAX_CONCERNS
    return {
        "strip": _status_strip(request, viewer, overview),
        "steps": [] if all(done) else steps_to_begin(request, done, lines),
        "done_count": sum(done),
        "concerns": concerns[:limit],
        "concern_count": len(concerns),
        "more_concerns": len(concerns[limit:]),
        "calls": _call_figures(overview) if viewer.calls else None,
        "servers": lines[: attention.MAX_SERVERS],
        "more_servers": len(lines) > attention.MAX_SERVERS,
        **groups_context(request),
        "models": models,
    }


def _status_strip(
    request: HttpRequest, viewer: Viewer, overview: Overview
) -> dict[str, object]:
    """Return whether clients are served, and the counts that the user may view."""
    count, asked = overview.processes, overview.connected
    may_stop = has_right(request, stop_banner.STOP_RIGHT)
    sees_servers = Server in viewer.models
    return {
        **serving_mark(request, count, asked=asked),
        "is_ready": not (count or asked),
        "servers": overview.rows[Server].published_count if sees_servers else None,
        "processes": count if viewer.sessions else None,
        "clients": overview.clients,
        "may_stop": may_stop,
        "stops_url": stop_banner.stops_url(),
        "who_may_stop": "" if may_stop else stop_banner.who_may_stop(request),
    }


def _call_figures(overview: Overview) -> dict[str, object]:
    """Return the figures of a day: numbers, bars, and the most called definitions."""
    listed, failed = reverse("admin:mcp_app_call_changelist"), overview.failure_count
    refused = overview.refusal_count
    return {
        "count": overview.call_count,
        "calls": grouped_digits(overview.call_count),
        "failed": grouped_digits(failed) if failed else "",
        "url": listed,
        "failed_url": f"{listed}?outcome={ANY_FAILURE}",
        "refused": grouped_digits(refused) if refused else "",
        "refused_url": f"{listed}?outcome={ANY_REFUSAL}",
        "chart": hourly_chart(overview.since_ms, overview.hours),
        "most_called": [_pace_line(each) for each in overview.paces.most_called],
    }


def _pace_line(pace: Pace) -> dict[str, str]:
    """Return the line of a most called definition, with the URL of its calls."""
    longest = percentile_bound(pace.durations, 95, pace.longest_us)
    return {
        "name": visible(pace.name),
        "kind": attention.kind_label(pace),
        "calls": grouped_digits(pace.calls),
        "failed": grouped_digits(pace.failed),
        "most": milliseconds_text(longest or 0),
        "url": attention.calls_url(pace, outcome=""),
    }
