"""The header above every page of a row: its state in words, and the tabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.forms.widgets import Media, Script
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.page import broken_rows, stop_banner
from mcp_app.admin.page.rights import has_right, whom_to_ask
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import uploads_of
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import DefinitionRow, PublishedRow, State
from mcp_app.models.stops import Scope
from mcp_app.publishing.row_findings import broken_reason, judge_content
from mcp_app.site_time import local_time, time_text

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


LOOKS: Final[Mapping[State, str]] = {
    State.UNPUBLISHED: "",
    State.PUBLISHED: "good",
    State.CHANGED: "warn",
    State.STOPPED: "stopped",
    State.BROKEN: "bad",
}
"""The CSS class of a state's mark (shape and color); its word is shown beside it."""

OF_DEFINITIONS: Final[Mapping[str, Label]] = {"try": gettext_lazy("Try it")}
OF_SERVERS: Final[Mapping[str, Label]] = {
    "seen": gettext_lazy("What clients see"),
    "connect": gettext_lazy("Connect"),
    "check": gettext_lazy("Check"),
}
"""The extra pages of a model's rows; their tabs follow the tab of the form."""

PAGE_MEDIA: Final = Media(
    css={"all": ["mcp_app/admin.css"]},
    js=[Script("mcp_app/admin.js", defer=True)],  # type: ignore[list-item]
)
"""The CSS and scripts of a page without a form."""

MEANS: Final[Mapping[State, Label]] = {
    State.UNPUBLISHED: gettext_lazy("Clients do not see it."),
    State.PUBLISHED: gettext_lazy("Clients see exactly this."),
    State.CHANGED: gettext_lazy("The working copy differs from what clients see."),
    State.STOPPED: gettext_lazy("Somebody has stopped it. Clients do not see it."),
    State.BROKEN: gettext_lazy("Not served: the code behind it is missing."),
}


def page_url(row: PublishedRow, page: str, *arguments: object) -> str:
    """Return the URL of one of a row's own pages."""
    return reverse(f"admin:mcp_app_{row.kind_of_row}_{page}", args=[row.pk, *arguments])


def state_strip(request: HttpRequest, row: PublishedRow) -> dict[str, Any]:
    """Return the strip above a row's pages: its state, counts of the working copy."""
    # Set it first: `row.state` reads it.
    row.broken = broken_rows.broken_reason(request, row) or why_broken(row)
    stops = stop_banner.stops_of_row(stop_banner.active_stops(request), row)
    state, target = State.STOPPED if stops else row.state, stop_banner.target_of(row)
    text = stop_banner.stop_sentence(stops[0]) if stops else _visibility_sentence(row)
    return {
        "state": state,
        "look": LOOKS[state],
        "sentence": text,
        # Only definitions have these.
        **{name: getattr(row, name, 0) for name in ("tokens", "to_fix", "advices")},
        "stopped": state == State.STOPPED,
        "stop_url": page_url(row, "stop"),
        "start_url": stop_banner.start_url(target, back=stop_banner.ROW),
        # Why the user may not stop and start the row; "" if they may.
        "stop_reason": whom_to_ask(request, "stop"),
        # Why clients do not see the row although it is published.
        "broken": visible(row.broken, None),
    }


def why_broken(row: PublishedRow) -> str:
    """Return why the published version of a row cannot be served; "" if it can.

    The column `broken` is as old as the last save or deployment, so check again, unless
    the row is a text, which depends on no code.
    """
    if not isinstance(row, DefinitionRow):
        return row.broken
    if row.kind == "text" and not row.from_code:
        return row.broken
    # Names of other rows need no check: two published rows never have the same name.
    content = row.working_content()
    working = judge_content(row, content, mcp, uploads_of(content))
    return broken_reason(row, mcp, working)


def _visibility_sentence(row: PublishedRow) -> str:
    """Say what clients see now."""
    if row.broken:
        return visible(row.broken, None)
    if row.published is None:
        if isinstance(row, DefinitionRow) and row.from_code:
            return _("Clients see the definition from the code.")
        return str(MEANS[State.UNPUBLISHED])
    version = row.published
    return _("Clients see version %(number)d: %(author)s published it (%(at)s)") % {
        "number": version.number,
        "author": version.author_name or _("a command"),
        "at": time_text(version.created),
    }


def serving_mark(
    request: HttpRequest, processes: int, *, asked: bool
) -> dict[str, object]:
    """Say whether clients are served: the CSS class of a mark, and its word.

    `asked` says whether a client ever sent a request: before, no process is needed.
    """
    look, word = ("", _("No process")) if asked else ("good", _("Ready"))
    stops = stop_banner.active_stops(request)
    if any(stop.scope == Scope.EVERYTHING for stop in stops):
        look, word = LOOKS[State.STOPPED], str(State.STOPPED.label)
    elif processes:
        look, word = "good", _("Serving")
    return {"look": look, "word": word}


def row_tabs(
    row: PublishedRow, current: str, *, calls: bool = False
) -> list[dict[str, Any]]:
    """Return the tabs of a row; with `calls`, also the tab of its calls."""
    pages = {
        "change": gettext_lazy("Edit"),
        **(OF_DEFINITIONS if isinstance(row, DefinitionRow) else OF_SERVERS),
        "publish": gettext_lazy("Publish"),
        "history": gettext_lazy("History"),
        "who": gettext_lazy("Who can see it"),
    }
    if calls and isinstance(row, DefinitionRow):
        pages["calls"] = gettext_lazy("Calls")
    return [
        {"label": label, "url": page_url(row, page), "current": page == current}
        for page, label in pages.items()
    ]


def row_page_context(
    admin: ModelAdmin[Any], request: HttpRequest, row: PublishedRow, page: str
) -> dict[str, object]:
    """Return the context that the templates of a row's pages share."""
    opts = admin.opts
    return {
        **admin.admin_site.each_context(request),
        "opts": opts,
        "original": row,
        "row": row,
        "strip": state_strip(request, row),
        "tabs": row_tabs(row, page, calls=has_right(request, "view_call")),
        "publish_url": page_url(row, "publish"),
        "media": admin.media,
        "subtitle": str(row),
    }


def render_page(
    admin: ModelAdmin[Any],
    request: HttpRequest,
    template: str,
    title: str,
    context: Mapping[str, object],
) -> TemplateResponse:
    """Return a page of the admin that belongs to no row."""
    vars(request)["current_app"] = admin.admin_site.name
    shared = {
        **admin.admin_site.each_context(request),
        "opts": admin.opts,
        "media": admin.media,
        "title": title,
        **context,
    }
    return TemplateResponse(request, f"admin/mcp_app/{template}.html", shared)


def render_part(
    request: HttpRequest, template: str, context: Mapping[str, object]
) -> TemplateResponse:
    """Return a part of a page for its script; the header `MCP-Updated` has the time."""
    at = local_time(now()).isoformat(timespec="seconds")
    path = f"admin/mcp_app/includes/{template}.html"
    return TemplateResponse(request, path, {**context}, headers={"MCP-Updated": at})
