"""What the home page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_app.admin.calls.charts import format_percent, grouped_digits, hourly_bars
from mcp_app.admin.calls.filters import ANY_FAILURE
from mcp_app.admin.calls.presentation import milliseconds_text
from mcp_app.admin.home import attention
from mcp_app.admin.home.attention import ServerLine
from mcp_app.admin.home.groups import groups_context
from mcp_app.admin.page import header
from mcp_app.admin.page.concurrency import has_right, whom_to_ask, you_can_ask
from mcp_app.admin.page.deleted_rows import is_broken_somewhere, reports_on
from mcp_app.admin.page.header import LOOKS
from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import visible
from mcp_app.kinds.survey import declarations
from mcp_app.models import Server, State, Tool
from mcp_app.models.definitions import Source
from mcp_app.models.stops import Scope
from mcp_app.workbench.overview import Overview, Pace, read_overview
from mcp_app.workbench.viewer import Viewer, viewer_of

# -- steps -----------------------------------------------------------------------------
# How to begin: four steps, ticked by what is there; nothing is remembered.


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `lacking` says which permission its link needs, and whom to ask."""

    title: str
    text: str
    is_done: bool
    url: str = ""
    link: str = ""
    lacking: str = ""


def steps_to_begin(
    request: HttpRequest, done: Sequence[bool], servers: Sequence[ServerLine]
) -> list[Step]:
    """Return the four steps; asks once, and with one query, who has a permission."""
    has_code, has_tool, lets_in, connected = done
    return [
        _code_step(request, has_code),
        _tool_step(request, has_tool),
        _access_step(lets_in),
        _client_step(servers, connected),
    ]


def _code_step(request: HttpRequest, is_done: bool) -> Step:
    title = _("See what your code offers")
    if not is_done:
        text = _(
            "Nothing yet. A developer writes a function in a file mcp.py of an app:"
            " from mcp_app import mcp, and @mcp.tool above the function."
        )
        return Step(title, text, is_done=False)
    text = _("Developers declare tools, resources and prompts in Python.")
    if not request.user.has_perm("mcp_app.view_tool"):
        lacking = _needed_right(_("Can view tool"))
        return Step(title, text, is_done=True, lacking=lacking)
    url = reverse("admin:mcp_app_tool_changelist") + f"?source__exact={Source.CODE}"
    return Step(title, text, True, url, _("Tools from code"))


def _tool_step(request: HttpRequest, is_done: bool) -> Step:
    title = _("Make a tool without code")
    text = _(
        "A tool answers a question of an AI client, for example with your opening"
        " hours. Write it, look at it, publish it: clients see it at once."
    )
    if not request.user.has_perm("mcp_app.add_tool"):
        lacking = _needed_right(_("Can add tool"))
        asked = f"{lacking} {you_can_ask(request, 'add_tool')}".strip()
        return Step(title, text, is_done, lacking=asked)
    url, link = reverse("admin:mcp_app_tool_add"), _("Add a tool")
    return Step(title, text, is_done, url, link, whom_to_ask(request, "publish"))


def _needed_right(label: str) -> str:
    return _("This needs the right “%(right)s”.") % {"right": label}


def _access_step(is_done: bool) -> Step:
    return Step(
        _("Let somebody in"),
        _(
            "An access token lets one program connect as you. A public server needs"
            " none."
        ),
        is_done,
        reverse("admin:mcp_app_accesstoken_add"),
        _("Make an access token"),
    )


def _client_step(servers: Sequence[ServerLine], is_done: bool) -> Step:
    title = _("Connect a client")
    text = _(
        "Claude, ChatGPT, Cursor, VS Code and others ask for the address of a server,"
        " and for the token."
    )
    if servers:
        return Step(title, text, is_done, "#mcp-servers", _("Copy the address"))
    url = reverse("admin:mcp_app_accesstoken_add")
    link = _("Make a token: its page shows the address")
    return Step(title, text, is_done, url, link)


# -- overview --------------------------------------------------------------------------


def home_context(request: HttpRequest) -> dict[str, object]:
    """Return the context of the home page.

    Once all steps are done, they are shown only if the reader asks (`?begin`).
    """
    viewer = viewer_of(request.user)
    overview = read_overview(
        viewer, reports_on(request), partial(is_broken_somewhere, request)
    )
    lines = attention.server_lines(request)
    done = (
        any(map(len, declarations(mcp).values())),
        bool(overview.rows[Tool].begun),
        bool(overview.tokens.usable or overview.rows[Server].begun),
        overview.connected,
    )
    begins = not all(done) or "begin" in request.GET
    concerns = attention.list_concerns(request, viewer, overview, lines)
    most = len(concerns) if attention.ALL in request.GET else attention.MAX_CONCERNS
    return {
        "strip": _status_strip(request, viewer, overview),
        "steps": steps_to_begin(request, done, lines) if begins else [],
        "is_begun": all(done),
        "concerns": concerns[:most],
        "concern_count": len(concerns),
        "more_concerns": len(concerns[most:]),
        "calls": _call_figures(overview) if viewer.calls else None,
        "servers": lines[: attention.MAX_SERVERS],
        "has_links": any(each.links for each in lines),
        "more_servers": len(lines) > attention.MAX_SERVERS,
        **groups_context(request),
    }


def _status_strip(
    request: HttpRequest, viewer: Viewer, overview: Overview
) -> dict[str, object]:
    """Return whether clients are served, and counts of what may be viewed."""
    on = header.active_stops(request)
    look, word = LOOKS[State.PUBLISHED], _("Serving")
    if any(each.scope == Scope.EVERYTHING for each in on):
        look, word = LOOKS[State.STOPPED], str(State.STOPPED.label)
    elif not overview.processes.count:
        look, word = "", _("No process")
    may_stop = has_right(request, header.RIGHT)
    sees_servers = Server in viewer.models
    return {
        "look": look,
        "word": word,
        "servers": overview.rows[Server].published_count if sees_servers else None,
        "processes": overview.processes.count if viewer.sessions else None,
        "clients": overview.clients if viewer.sessions else None,
        "may_stop": may_stop,
        "stops_url": header.stops_url(),
        "who_may_stop": "" if may_stop else header.who_may_stop(request),
    }


def _call_figures(overview: Overview) -> dict[str, object]:
    """Return the figures of a day: numbers, bars, what was slow and what failed."""
    listed, failed = reverse("admin:mcp_app_call_changelist"), overview.failure_count
    percent = 100 * failed / max(1, overview.call_count)
    bars = hourly_bars(overview.since_ms, overview.hours) if overview.hours else ()
    return {
        "count": overview.call_count,
        "calls": grouped_digits(overview.call_count),
        "failed": grouped_digits(failed) if failed else "",
        "percent": format_percent(percent),
        "url": listed,
        "failed_url": f"{listed}?outcome={ANY_FAILURE}",
        "bars": bars,
        "slowest": [
            _pace_line(each, milliseconds_text(each.mean_ms), outcome="")
            for each in overview.paces.slowest
        ],
        "most_failing": [
            _pace_line(each, _failing_figure(each))
            for each in overview.paces.most_failing
        ],
    }


def _failing_figure(pace: Pace) -> str:
    counts = {"failed": pace.failed, "calls": pace.calls}
    digits = {name: grouped_digits(count) for name, count in counts.items()}
    return _("%(failed)s of %(calls)s") % digits


def _pace_line(pace: Pace, figure: str, **filters: str) -> dict[str, str]:
    """Return a line of what was slow, or of what failed; it leads to these calls."""
    return {
        "name": visible(pace.name),
        "kind": attention.kind_label(pace),
        "figure": figure,
        "url": attention.calls_url(pace, **filters),
    }
