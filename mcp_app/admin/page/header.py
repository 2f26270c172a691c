"""The header above every page of a row: its state in words, and the tabs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.page import broken_rows
from mcp_app.admin.page.rights import right_holders, whom_to_ask
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import uploads_of
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import DefinitionRow, PublishedRow, Session, State, Stop
from mcp_app.models.stops import WIDE, Scope
from mcp_app.publishing.row_findings import broken_reason, judge_content
from mcp_app.site_time import local_time, time_html, time_text

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


# -- stop banner -----------------------------------------------------------------------
# What is stopped now, in words, for every page of the app.

RIGHT: Final = "stop"

ROW: Final = "row"
"""The value of `back` for returning to the row's page after starting it again."""
MAX_NAMES: Final = 10
"""Rows that a sentence names."""


def active_stops(request: HttpRequest) -> list[Stop]:
    """Return the active stops, queried once per request."""
    known: list[Stop] | None = getattr(request, "mcp_stops", None)
    if known is None:
        known = list(Stop.objects.on())
        vars(request)["mcp_stops"] = known
    return known


def wide_stops(stops: Iterable[Stop]) -> list[Stop]:
    """Return the stops that affect more than one definition."""
    return [each for each in stops if each.scope in WIDE]


def stops_of_row(stops: Iterable[Stop], row: PublishedRow) -> list[Stop]:
    """Return the stops of just this server or definition."""
    return [each for each in stops if each.holds(row)]


def stops_applying_to(request: HttpRequest, row: PublishedRow) -> list[Stop]:
    """Return the stops of a row, and those of everything."""
    on = active_stops(request)
    # The page's banner shows the other wide stops: of its server, or all changes.
    everything = [each for each in on if each.scope == Scope.EVERYTHING]
    return [*stops_of_row(on, row), *everything]


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
    """Say what the stop did; true once the request that made it was answered."""
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


def serving_mark(
    request: HttpRequest, processes: int, *, asked: bool
) -> dict[str, object]:
    """Say whether clients are served: the CSS class of a mark, and its word.

    `asked` says whether a client ever asked.
    """
    look, word = ("", _("No process")) if asked else ("good", _("Ready"))
    if any(each.scope == Scope.EVERYTHING for each in active_stops(request)):
        look, word = LOOKS[State.STOPPED], str(State.STOPPED.label)
    elif processes:
        look, word = "good", _("Serving")
    return {"look": look, "word": word}


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
    names = right_holders(request, RIGHT)
    if not names:
        return _("To stop something, ask someone with the right “Can stop and start”.")
    advice = _(
        "To stop something, ask someone with the right “Can stop and start”: %(names)s."
    )
    return advice % {"names": visible(", ".join(names), None)}


# -- header ----------------------------------------------------------------------------

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


def state_strip(request: HttpRequest, row: PublishedRow) -> Strip:
    """Return the strip above the pages of a row."""
    definition = row if isinstance(row, DefinitionRow) else None
    row.broken = broken_rows.broken_reason(request, row) or why_broken(row)
    stops = stops_of_row(active_stops(request), row)
    state = State.STOPPED if stops else row.state
    return Strip(
        state=state,
        look=LOOKS[state],
        sentence=stop_sentence(stops[0]) if stops else _visibility_sentence(row),
        tokens=definition.tokens if definition else 0,
        to_fix=definition.to_fix if definition else 0,
        advices=definition.advices if definition else 0,
        stop_url=page_url(row, "stop"),
        start_url=start_url(target_of(row), back=ROW),
        stop_reason=whom_to_ask(request, "stop"),
        broken=visible(row.broken, None),
    )


def why_broken(row: PublishedRow) -> str:
    """Return why a row cannot be served as it was published; "" if it can.

    The column `broken` is as of the last save or deployment; this checks current code.
    """
    if not isinstance(row, DefinitionRow):
        return row.broken
    if row.kind == "text" and not row.from_code:
        return row.broken
    # No other row can be published under its name.
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


def row_tabs(row: PublishedRow, current: str) -> list[Tab]:
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
        "tabs": row_tabs(row, page),
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
    """Return a part of a page that its script loads again, and the time in a header."""
    at = local_time(now()).isoformat(timespec="seconds")
    path = f"admin/mcp_app/includes/{template}.html"
    return TemplateResponse(request, path, {**context}, headers={"MCP-Updated": at})


# -- people ----------------------------------------------------------------------------
# Users by the primary keys that rows store as text.

HANDLE: Final = 8
"""Characters of a digest to show as a short name."""
GREATEST: Final = 2**63 - 1
"""The greatest number that a column can hold."""


def existing_users(keys: Iterable[str]) -> QuerySet[Any]:
    """Return the users with these keys that still exist."""
    model = get_user_model()
    return model._default_manager.filter(pk__in=set(filter(_is_user_key, keys)))


def user_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the names of the users that still exist; one query."""
    return {str(user.pk): user.get_username() for user in existing_users(keys)}


def session_user_name(session: Session, names: dict[str, str]) -> str:
    """Return whose session it is: a name, the key of a deleted user, or nobody."""
    known = names.get(session.user_id, session.user_id)
    return visible(known) or _("nobody")


def client_of(session: Session) -> str:
    """Return the name that a client gives itself."""
    return visible(session.client_name) or _("a client without a name")


def _is_user_key(text: str) -> bool:
    """Return whether a text can be a primary key of the site's users."""
    field = get_user_model()._meta.pk
    try:
        key = field.to_python(text) if text else None
    except ValidationError:
        return False
    # No column holds a greater number, and some databases refuse it in a query.
    return key is not None and not (type(key) is int and abs(key) > GREATEST)
