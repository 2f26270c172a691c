"""What needs the reader's attention, in words: the most urgent first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.access.conditions import method_label
from mcp_app.admin.calls.filters import ANY_FAILURE, KINDS, LAST_HOUR
from mcp_app.admin.calls.outcome_help import MEANINGS
from mcp_app.admin.page import header, stop_banner
from mcp_app.admin.page.header import LOOKS, page_url
from mcp_app.admin.page.rights import has_right
from mcp_app.auth.resources import server_url
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.models import OpenApiDocument, Server, State
from mcp_app.models.stops import stop_matcher
from mcp_app.models.tasks import Status
from mcp_app.site_time import unix_time
from mcp_app.workbench.overview import Overview, Pace
from mcp_app.workbench.viewer import Viewer

# -- servers ---------------------------------------------------------------------------
# The servers with their addresses, for the home page: one query.

MAX_SERVERS: Final = 20
"""Servers that the page shows."""


def server_lines(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the servers that the user may see, at most one more than are shown."""
    if not request.user.has_perm("mcp_app.view_server"):
        return []
    is_stopped = stop_matcher(stop_banner.active_stops(request))
    pages = header.OF_SERVERS.items()
    rows = Server.objects.select_related("published").defer("published__content")
    lines = []
    for row in rows.order_by("pk")[: MAX_SERVERS + 1]:
        state = State.STOPPED if is_stopped(row) else row.state
        line = {
            "name": str(row),
            "slug": row.slug,
            "url": page_url(row, "change"),
            "address": server_url(row.slug, request.build_absolute_uri("/")),
            "state": state,
            "look": LOOKS[state],
            # The labels of its methods of authentication.
            "ways": ", ".join(map(method_label, row.access_names)),
            "connect_url": page_url(row, "connect"),
            "links": [(label, page_url(row, page)) for page, label in pages],
        }
        lines.append(line)
    return lines


# -- attention -------------------------------------------------------------------------

MAX_CONCERNS: Final = 8
"""Lines that the page shows, unless the reader asks for all."""
ALL: Final = "all"
"""The query parameter that asks for all lines."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link; screen readers read `about` after the label, "" if it is not needed."""

    label: str
    url: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Concern:
    """A line: the CSS class and word of its mark, what it is about, and a sentence."""

    look: str
    word: str
    sentence: str
    links: Sequence[Link]
    name: str = ""
    kind: str = ""


def list_concerns(
    request: HttpRequest, viewer: Viewer, overview: Overview
) -> list[Concern]:
    """Return everything that needs attention; asks the database nothing."""
    return [
        *_decision_concerns(overview.undecided),
        *_no_process(viewer, overview),
        *_state_concerns(viewer, overview, State.BROKEN),
        *map(_failing_concern, overview.paces.failing),
        *_task_concerns(overview.late_tasks),
        *_receiver_concerns(overview.failing_receivers),
        *_upstream_concerns(request, overview.upstreams),
        *_stop_concerns(request, viewer),
        *_state_concerns(viewer, overview, State.CHANGED),
        *_state_concerns(viewer, overview, State.UNPUBLISHED),
        *_token_concerns(viewer, overview),
    ]


def _decision_concerns(begun_ms: Sequence[int]) -> Iterator[Concern]:
    """Yield a line for the calls that the viewer may approve, the oldest first."""
    if not begun_ms:
        return
    sentence = ngettext(
        "%(count)d call waits for your approval, for %(age)s.",
        "%(count)d calls wait for your approval, the oldest for %(age)s.",
        len(begun_ms),
    )
    age = timesince(unix_time(begun_ms[0] / 1_000), depth=1)
    values = {"count": len(begun_ms), "age": age}
    url = f"{reverse('admin:mcp_app_task_changelist')}?status__exact={Status.APPROVAL}"
    links = [Link(_("Show them"), url, _("calls that wait for approval"))]
    yield Concern("warn", _("Waiting"), sentence % values, links)


def _task_concerns(count: int) -> Iterator[Concern]:
    if not count:
        return
    sentence = ngettext(
        "%(count)d task waits for more than two minutes: %(reason)s",
        "%(count)d tasks wait for more than two minutes: %(reason)s",
        count,
    )
    reasons = {
        "here": _("no process has a place free."),
        "worker": _("no worker has a place free. Start one: manage.py mcp_worker"),
    }
    reason = reasons.get(mcp_settings.tasks, _("no worker of the site's queue ran it."))
    url = f"{reverse('admin:mcp_app_task_changelist')}?status={Status.WORKING}"
    links = [Link(_("Show the tasks"), url)]
    values = {"count": count, "reason": reason}
    yield Concern("warn", _("Waiting"), sentence % values, links)


def _receiver_concerns(count: int) -> Iterator[Concern]:
    if count:
        sentence = ngettext(
            "%(count)d receiver of events has failed for an hour.",
            "%(count)d receivers of events have failed for an hour.",
            count,
        )
        url = f"{reverse('admin:mcp_app_eventsubscription_changelist')}?state=failing"
        links = [Link(_("Show the subscriptions"), url)]
        look = LOOKS[State.BROKEN]
        yield Concern(look, _("Failing"), sentence % {"count": count}, links)


def _upstream_concerns(
    request: HttpRequest, documents: Sequence[OpenApiDocument]
) -> Iterator[Concern]:
    # The page of differences requires the same rights.
    if not (has_right(request, "behind") and has_right(request, "add_tool")):
        return
    for row in documents:
        sentence = ngettext(
            "%(count)d tool there differs from what was taken over, or is gone.",
            "%(count)d tools there differ from what was taken over, or are gone.",
            row.differing,
        )
        url = reverse("admin:mcp_app_tool_openapi_again", args=[row.pk])
        links = [Link(_("See what changed"), url, row.title)]
        text = sentence % {"count": row.differing}
        yield Concern("warn", _("Changed there"), text, links, name=row.title)


def _failing_concern(pace: Pace) -> Concern:
    sentence = _(
        "%(failed)d of %(calls)d calls in the last 15 minutes failed: %(how)s."
    )
    how = str(MEANINGS[pace.outcome].label).lower()
    values = {"failed": pace.failed, "calls": pace.calls, "how": how}
    name = visible(pace.name)
    return Concern(
        look=LOOKS[State.BROKEN],
        word=_("Failing"),
        name=name,
        kind=kind_label(pace),
        sentence=sentence % values,
        links=[Link(_("Show the calls"), calls_url(pace, when=LAST_HOUR), name)],
    )


def kind_label(pace: Pace) -> str:
    """Return the label of a called kind, for the middle of a sentence."""
    return str(KINDS.get(pace.kind, visible(pace.kind))).lower()


def calls_url(pace: Pace, outcome: str = ANY_FAILURE, when: str = "") -> str:
    """Return the URL of the list of these calls, by default of the failed ones."""
    parts = {"kind": pace.kind, "name": pace.name, "outcome": outcome, "when": when}
    query = urlencode({name: value for name, value in parts.items() if value})
    return f"{reverse('admin:mcp_app_call_changelist')}?{query}"


def _stop_concerns(request: HttpRequest, viewer: Viewer) -> Iterator[Concern]:
    may_stop = has_right(request, stop_banner.STOP_RIGHT)
    names = {str(model._meta.model_name) for model in viewer.models}
    for stop in stop_banner.active_stops(request):
        if stop.kind and stop.kind not in names:
            continue
        links = []
        if may_stop:
            url = stop_banner.start_url(stop_banner.stop_target(stop))
            links = [Link(_("Start again…"), url, stop.what)]
        elif stop.kind:
            url = reverse(f"admin:mcp_app_{stop.kind}_change", args=[stop.ref])
            links = [Link(_("Open it"), url, stop.what)]
        yield Concern(
            look=LOOKS[State.STOPPED],
            word=str(State.STOPPED.label),
            sentence=stop_banner.stop_sentence(stop),
            links=links,
        )


def _no_process(viewer: Viewer, overview: Overview) -> Iterator[Concern]:
    # Before the first client connects, no process is needed.
    if viewer.sessions and overview.connected and not overview.processes:
        sentence = _(
            "No process serves clients now. One starts with the next request; if that"
            " gets no answer, start the site."
        )
        link = Link(_("What happens now"), reverse("admin:mcp_app_session_live"))
        yield Concern("warn", _("No process"), sentence, [link])


def _state_concerns(
    viewer: Viewer, overview: Overview, state: State
) -> Iterator[Concern]:
    """Yield a line for all rows in a state, with a link for each kind."""
    total, links = 0, []
    for model in viewer.models:
        if count := overview.rows[model].states[state]:
            total += count
            label = f"{model._meta.verbose_name_plural} ({count})"
            url = reverse(f"admin:mcp_app_{model._meta.model_name}_changelist")
            links.append(Link(label, f"{url}?state={state.value}"))
    if not total:
        return
    sentence = {
        State.BROKEN: ngettext(
            "%(count)d is published, but no client sees it: its page says why.",
            "%(count)d are published, but no client sees them: their pages say why.",
            total,
        ),
        State.CHANGED: ngettext(
            "%(count)d working copy differs from what clients see.",
            "%(count)d working copies differ from what clients see.",
            total,
        ),
        State.UNPUBLISHED: ngettext(
            "%(count)d draft that clients do not see.",
            "%(count)d drafts that clients do not see.",
            total,
        ),
    }[state]
    yield Concern(LOOKS[state], str(state.label), sentence % {"count": total}, links)


def _token_concerns(viewer: Viewer, overview: Overview) -> Iterator[Concern]:
    count = overview.tokens["ending"]
    if not count:
        return
    sentence = ngettext(
        "%(count)d access token ends within 7 days.",
        "%(count)d access tokens end within 7 days.",
        count,
    )
    if not viewer.tokens:
        sentence = ngettext(
            "%(count)d of your access tokens ends within 7 days.",
            "%(count)d of your access tokens end within 7 days.",
            count,
        )
    url = reverse("admin:mcp_app_accesstoken_changelist")
    links = [Link(_("Show them"), f"{url}?kind=token&state=soon", _("access tokens"))]
    yield Concern("warn", _("Soon"), sentence % {"count": count}, links)
