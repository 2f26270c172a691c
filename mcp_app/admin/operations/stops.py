"""The page that stops everything, or a part of it, and starts it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.page import header, stop_banner
from mcp_app.admin.page.concurrency import PageViews, SettledAdmin
from mcp_app.admin.page.header import page_url, why_broken
from mcp_app.admin.page.keys import ROW_KEY
from mcp_app.admin.publishing import comparison
from mcp_app.admin.publishing.pages import author_of
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import MODELS
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import one_line, visible
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.kinds.survey import declarations
from mcp_app.models import DefinitionRow, PublishedRow, Server, Session, Stop
from mcp_app.models.definitions import Source
from mcp_app.models.fields import digest
from mcp_app.models.stops import Running, Scope, scope_of
from mcp_app.protocol.uri_templates import URI_LENGTH
from mcp_app.publishing import services
from mcp_app.publishing.rights import require_right
from mcp_app.publishing.stop_targets import count_changing, row_of_key, row_of_stop

Row = TypeVar("Row", bound=models.Model)

MAX_SINGLE_STOPS: Final = 50
"""How many individually stopped definitions the page names."""
MAX_MATCHES: Final = 20
"""How many definitions a search finds."""
COLUMNS: Final = (
    "kind_name",
    "pk",
    "name",
    "title",
    "identity_now",
    "published_identity",
)


@dataclass(frozen=True, slots=True)
class Line:
    """Something to stop: its button sends `target`; `stops` are its own stops."""

    title: str
    about: str
    button: str
    target: str
    stops: Sequence[Stop] = ()
    is_off: bool = False
    """Whether a stop of everything applies to the target."""

    @property
    def state(self) -> Label:
        return _("Stopped") if self.stops or self.is_off else _("Serving")

    @property
    def look(self) -> str:
        return "stopped" if self.stops or self.is_off else "good"

    @property
    def notes(self) -> list[str]:
        """Sentences: who stopped it, when and why, and what the stop did."""
        return [
            text
            for stop in self.stops
            for text in (stop_banner.stop_sentence(stop), stop_banner.stop_result(stop))
        ]

    @property
    def start_url(self) -> str:
        return stop_banner.start_url(self.target) if self.stops else ""


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
        by_itself = [each for each in on if each.scope == Scope.DEFINITION]
        singles = [*_single_lines(by_itself)]
        context = {
            "sentences": [
                (stop_banner.stop_sentence(each), stop_banner.stop_result(each))
                for each in stop_banner.wide_stops(on)
            ],
            "boxes": [*_stop_lines(on)],
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


# -- what can be stopped ------------------------------------------------------------


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


def _stop_lines(on: Sequence[Stop]) -> Iterator[Line]:
    """Yield a box each for all changing tools, each server, and everything."""
    everything = _stops_in_scope(on, Scope.EVERYTHING)
    count = count_changing(mcp, on)
    about = _("Tools that only read go on.")
    if count is not None:
        about = ngettext(
            "%(count)d tool. Tools that only read go on.",
            "%(count)d tools. Tools that only read go on.",
            count,
        ) % {"count": count}
    yield Line(
        title=_("All tools that change things"),
        about=_with_everything(about, everything),
        button=_("Stop what changes things"),
        target=Scope.CHANGES,
        stops=_stops_in_scope(on, Scope.CHANGES),
        is_off=bool(everything),
    )
    clients = _client_counts()
    for server in Server.rows().filter(published__isnull=False):
        yield Line(
            title=_("Server %(name)s") % {"name": server},
            about=_with_everything(_server_summary(server, clients), everything),
            button=_("Stop %(name)s") % {"name": server},
            target=f"server:{server.pk}",
            stops=stop_banner.stops_of_row(on, server),
            is_off=bool(everything),
        )
    yield Line(
        title=_("Everything"),
        about=_("No client can do anything. The site itself goes on."),
        button=_("Stop everything"),
        target=Scope.EVERYTHING,
        stops=everything,
    )


def _with_everything(about: str, everything: Sequence[Stop]) -> str:
    return f"{about} {_('Stopped with everything.')}" if everything else about


def _stops_in_scope(on: Sequence[Stop], scope: str) -> list[Stop]:
    return [each for each in on if each.scope == scope]


def _server_summary(server: Server, clients: Mapping[str, int]) -> str:
    address = "/mcp" if server.slug == DEFAULT_SLUG else f"/mcp/{server.slug}"
    count = clients.get(server.slug, 0)
    summary = ngettext(
        "%(address)s, %(count)d client in the last 15 minutes.",
        "%(address)s, %(count)d clients in the last 15 minutes.",
        count,
    )
    return summary % {"address": address, "count": count}


def _client_counts() -> Counter[str]:
    """Count the clients of the last 15 minutes at each server, by its slug."""
    # Import here: processes that serve clients load the admin, but not this.
    from mcp_app.workbench.overview import calling_clients  # noqa: PLC0415

    counted = Session.objects.recent().order_by().values_list("server")
    counts = Counter(dict(counted.annotate(count=models.Count("pk"))))
    callers = calling_clients(int(now().timestamp() * 1_000))
    counts.update(caller.server for caller in callers if not caller.session)
    return counts


def _single_lines(on: Sequence[Stop]) -> Iterator[Line]:
    """Yield the individually stopped definitions, also those whose row is deleted."""
    by_target: dict[str, list[Stop]] = {}
    for each in on:
        by_target.setdefault(stop_banner.stop_target(each), []).append(each)
    for target, stops in by_target.items():
        yield Line(stops[0].what, stops[0].kind, "", target, stops)


# -- starting again -----------------------------------------------------------------


def _restart_words(ending: Sequence[Stop]) -> str:
    """Say what clients see of a definition again; "" for a wider stop."""
    if ending[0].scope != Scope.DEFINITION:
        return ""
    row, what = row_of_stop(ending[0]), ending[0].what
    if row is None:
        return _("%(what)s was deleted. No client sees it.") % {"what": what}
    return f"{what}: {comparison.restart_sentence(row)}"


def _staying_sentence(on: Any) -> str:
    """Name what stays stopped; "" for nothing."""
    names = list(dict.fromkeys(each.what for each in on))
    if not names:
        return ""
    return _("These stay stopped: %(names)s.") % {"names": ", ".join(names)}


# -- the search for definitions -----------------------------------------------------
# It looks in the working copy, or for the name that clients use.


def search_text(query: QueryDict) -> str:
    """Return the search text, cut and cleaned as names and URIs are."""
    return one_line(query.get("q", "")[:URI_LENGTH], URI_LENGTH)


def search_definitions(wanted: str, on: Sequence[Stop]) -> Iterator[Line]:
    """Yield the visible definitions that match and are not stopped; one query."""
    if not wanted:
        return
    stopped_targets = {stop_banner.stop_target(each) for each in on}
    names = {(each.kind, each.served_hash) for each in on}
    first, *rest = (
        model.rows()
        .order_by()
        .filter(_text_condition(model, wanted), _served_condition(model, wanted))
        .annotate(kind_name=models.Value(kind), identity_now=models.F(model.IDENTITY))
        .values_list(*COLUMNS)
        for kind, model in MODELS.items()
    )
    for each in first.union(*rest).order_by("name")[:MAX_MATCHES]:
        kind, pk, name, title, identity, published = each
        target = f"{kind}:{pk}"
        if target in stopped_targets or (kind, published or digest(identity)) in names:
            continue
        display_name = visible(title or name, None)
        label = str(MODELS[kind]._meta.verbose_name)
        about = f"{label} · {visible(identity, None)}"
        button = _("Stop %(name)s") % {"name": display_name}
        yield Line(display_name, about, button, target)


def _text_condition(model: type[DefinitionRow], wanted: str) -> models.Q:
    """Match words of the working copy, or exactly the name that clients use."""
    served = models.Q(published_identity=model.identity_hash(wanted))
    for each in ("name", "title", model.IDENTITY):
        served |= models.Q(**{f"{each}__icontains": wanted})
    return served


def _served_condition(model: type[DefinitionRow], wanted: str) -> models.Q:
    """Match rows that are served: from code, published, or named like a declaration."""
    declared = declarations(mcp)[str(model._meta.model_name)]
    letters = wanted.casefold()
    close = [each for each in declared if letters in each.casefold()][:MAX_MATCHES]
    declared_here = models.Q(**{f"{model.IDENTITY}__in": close})
    served = models.Q(source=Source.CODE) | models.Q(published__isnull=False)
    return served | declared_here
