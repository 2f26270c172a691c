"""The header above every page of a row: its state in words, and the tabs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.page import broken_rows, stop_banner
from mcp_app.admin.page.rights import whom_to_ask
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import uploads_of
from mcp_app.interface.labels import Label
from mcp_app.interface.rules import visible
from mcp_app.models import DefinitionRow, PublishedRow, State
from mcp_app.publishing.findings import broken, judge_content
from mcp_app.site_time import local_time

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
"""Their own pages, which stand after the form."""

MEANS: Final[Mapping[State, Label]] = {
    State.UNPUBLISHED: gettext_lazy("Clients do not see it."),
    State.PUBLISHED: gettext_lazy("Clients see exactly this."),
    State.CHANGED: gettext_lazy("The working copy differs from what clients see."),
    State.STOPPED: gettext_lazy("Somebody has stopped it. Clients do not see it."),
    State.BROKEN: gettext_lazy("Not served: the code behind it is missing."),
}


@dataclass(frozen=True, slots=True)
class Tab:
    label: Label
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Strip:
    """A row's state; `look` is its CSS class, and counts are of the working copy."""

    state: State
    look: str
    sentence: str
    tokens: int
    to_fix: int
    advices: int
    stop_url: str
    start_url: str
    stop_reason: str
    """Why the user may neither stop nor start it; "" if they may."""
    broken: str = ""
    """Why clients do not see it although it is published."""

    @property
    def stopped(self) -> bool:
        return self.state == State.STOPPED


def page_url(row: PublishedRow, page: str, *more: object) -> str:
    """Return the URL of one of a row's own pages."""
    return reverse(f"admin:mcp_app_{row.kind_of_row}_{page}", args=[row.pk, *more])


def strip(request: HttpRequest, row: PublishedRow) -> Strip:
    """Return the strip above the pages of a row."""
    definition = row if isinstance(row, DefinitionRow) else None
    row.broken = broken_rows.broken_reason(request, row) or why_broken(row)
    held = stop_banner.of_row(stop_banner.stops_on(request), row)
    state = State.STOPPED if held else row.state
    return Strip(
        state=state,
        look=LOOKS[state],
        sentence=stop_banner.sentence(held[0]) if held else _sentence(row),
        tokens=definition.tokens if definition else 0,
        to_fix=definition.to_fix if definition else 0,
        advices=definition.advices if definition else 0,
        stop_url=page_url(row, "stop"),
        start_url=stop_banner.start_url(
            stop_banner.target_of(row), back=stop_banner.ROW
        ),
        stop_reason=whom_to_ask(request, "stop"),
        broken=visible(row.broken, None),
    )


def why_broken(row: PublishedRow) -> str:
    """Return why a row cannot be served as it was published; "" if it can.

    The column `broken` is as of the last save or deployment; this checks current code.
    """
    if not isinstance(row, DefinitionRow) or not _depends_on_code(row):
        return row.broken
    # No other row can be published under its name.
    content = row.working_content()
    working = judge_content(row, content, mcp, uploads_of(content))
    return broken(row, mcp, working)


def _depends_on_code(row: DefinitionRow) -> bool:
    return row.from_code or row.kind != "text"


def _sentence(row: PublishedRow) -> str:
    """Say what clients see now."""
    if row.broken:
        return visible(row.broken, None)
    if row.published is None:
        if isinstance(row, DefinitionRow) and row.from_code:
            return _("Clients see the definition from the code.")
        return str(MEANS[State.UNPUBLISHED])
    version = row.published
    return _("Clients see version %(number)d: %(author)s published it on %(at)s") % {
        "number": version.number,
        "author": version.author_name or _("a command"),
        "at": date_format(local_time(version.created), "SHORT_DATETIME_FORMAT"),
    }


def tabs(row: PublishedRow, current: str) -> list[Tab]:
    """Return the pages of a row."""
    pages = {
        "change": gettext_lazy("Edit"),
        **(OF_DEFINITIONS if isinstance(row, DefinitionRow) else OF_SERVERS),
        "publish": gettext_lazy("Publish"),
        "history": gettext_lazy("History"),
        "who": gettext_lazy("Who can see it"),
    }
    return [
        Tab(label, page_url(row, page), page == current)
        for page, label in pages.items()
    ]


def frame(
    admin: ModelAdmin[Any], request: HttpRequest, row: PublishedRow, page: str
) -> dict[str, object]:
    """Return the context that the templates of a row's pages share."""
    opts = admin.opts
    return {
        **admin.admin_site.each_context(request),
        "opts": opts,
        "original": row,
        "row": row,
        "strip": strip(request, row),
        "tabs": tabs(row, page),
        "publish_url": page_url(row, "publish"),
        "media": admin.media,
        "subtitle": str(row),
    }
