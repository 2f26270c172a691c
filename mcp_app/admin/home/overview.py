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
from mcp_app.admin.page import header
from mcp_app.admin.page.concurrency import has_right, whom_to_ask, you_can_ask
from mcp_app.admin.page.deleted_rows import is_broken_somewhere, reports_on
from mcp_app.admin.page.header import LOOKS
from mcp_app.catalog.registry import Registry, mcp
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


@dataclass(frozen=True, slots=True)
class Progress:
    """Which of the four steps are done."""

    has_code: bool
    has_tool: bool
    lets_in: bool
    connected: bool

    @property
    def is_complete(self) -> bool:
        return self.has_code and self.has_tool and self.lets_in and self.connected


def read_progress(registry: Registry, overview: Overview) -> Progress:
    """Return what is done."""
    return Progress(
        has_code=any(map(len, declarations(registry).values())),
        has_tool=bool(overview.rows[Tool].begun),
        lets_in=bool(overview.tokens.usable or overview.rows[Server].begun),
        connected=overview.connected,
    )


def steps_to_begin(
    request: HttpRequest, done: Progress, servers: Sequence[ServerLine]
) -> list[Step]:
    """Return the four steps; asks once, and with one query, who has a permission."""
    return [
        _code_step(request, done.has_code),
        _tool_step(request, done.has_tool),
        _access_step(done.lets_in),
        _client_step(servers, done.connected),
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
        return Step(
            title, text, is_done=True, lacking=_needed_right(_("Can view tool"))
        )
    url = reverse("admin:mcp_app_tool_changelist") + f"?source__exact={Source.CODE}"
    return Step(title, text, True, url, _("Tools from code"))


def _tool_step(request: HttpRequest, is_done: bool) -> Step:
    title = _("Make a tool without code")
    text = _(
        "A tool answers a question of an AI client, for example with your opening"
        " hours. Write it, look at it, publish it: clients see it at once."
    )
    if not request.user.has_perm("mcp_app.add_tool"):
        lacking = (
            f"{_needed_right(_('Can add tool'))} {you_can_ask(request, 'add_tool')}"
        )
        return Step(title, text, is_done, lacking=lacking.strip())
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


def home_context(request: HttpRequest) -> dict[str, object]:
    """Return the context of the home page.

    Once all steps are done, they are shown only if the reader asks (`?begin`).
    """
    viewer = viewer_of(request.user)
    overview = read_overview(
        viewer, reports_on(request), partial(is_broken_somewhere, request)
    )
    lines = attention.server_lines(request)
    done = read_progress(mcp, overview)
    begins = not done.is_complete or "begin" in request.GET
    concerns = attention.list_concerns(request, viewer, overview, lines)
    most = len(concerns) if attention.ALL in request.GET else attention.MAX_CONCERNS
    return {
        "strip": _status_strip(request, viewer, overview),
        "steps": steps_to_begin(request, done, lines) if begins else [],
        "is_begun": done.is_complete,
        "concerns": concerns[:most],
        "concern_count": len(concerns),
        "more_concerns": len(concerns[most:]),
        "calls": _call_figures(overview) if viewer.calls else None,
        "servers": lines[: attention.MAX_SERVERS],
        "has_links": any(each.links for each in lines),
        "more_servers": len(lines) > attention.MAX_SERVERS,
    }


def _status_strip(request: HttpRequest, viewer: Viewer, overview: Overview) -> Strip:
    on = header.active_stops(request)
    look, word = LOOKS[State.PUBLISHED], _("Serving")
    if any(each.scope == Scope.EVERYTHING for each in on):
        look, word = LOOKS[State.STOPPED], str(State.STOPPED.label)
    elif not overview.processes.count:
        look, word = "", _("No process")
    may_stop = has_right(request, header.RIGHT)
    sees_servers = Server in viewer.models
    return Strip(
        look=look,
        word=word,
        servers=overview.rows[Server].published_count if sees_servers else None,
        processes=overview.processes.count if viewer.sessions else None,
        clients=overview.clients if viewer.sessions else None,
        may_stop=may_stop,
        stops_url=header.stops_url(),
        who_may_stop="" if may_stop else header.who_may_stop(request),
    )


def _call_figures(overview: Overview) -> dict[str, object]:
    """Return the figures of a day: numbers, bars, what was slow and what failed."""
    listed = reverse("admin:mcp_app_call_changelist")
    return {
        "count": overview.call_count,
        "calls": grouped_digits(overview.call_count),
        "failed": grouped_digits(overview.failure_count)
        if overview.failure_count
        else "",
        "percent": format_percent(
            100 * overview.failure_count / max(1, overview.call_count)
        ),
        "url": listed,
        "failed_url": f"{listed}?outcome={ANY_FAILURE}",
        "bars": hourly_bars(overview.since_ms, overview.hours)
        if overview.hours
        else (),
        "slowest": _slowest_lines(overview.paces.slowest),
        "most_failing": _most_failing(overview.paces.most_failing),
    }


def _slowest_lines(paces: Sequence[Pace]) -> list[PaceLine]:
    return [
        PaceLine(
            name=visible(each.name),
            kind=attention.kind_label(each),
            figure=milliseconds_text(each.mean_ms),
            url=attention.calls_url(each, outcome=""),
        )
        for each in paces
    ]


def _most_failing(paces: Sequence[Pace]) -> list[PaceLine]:
    wording = _("%(failed)s of %(calls)s")
    return [
        PaceLine(
            name=visible(each.name),
            kind=attention.kind_label(each),
            figure=wording
            % {
                "failed": grouped_digits(each.failed),
                "calls": grouped_digits(each.calls),
            },
            url=attention.calls_url(each),
        )
        for each in paces
    ]
