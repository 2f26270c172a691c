"""The lines of the page of stops, from the active stops (`on`), and its search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import models
from django.http import QueryDict
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.page import stop_banner
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import MODELS
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import one_line, visible
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.kinds.survey import declarations
from mcp_app.models import DefinitionRow, Server, Session, Stop
from mcp_app.models.definitions import Source
from mcp_app.models.fields import digest
from mcp_app.models.stops import Scope
from mcp_app.protocol.uri_templates import URI_LENGTH
from mcp_app.publishing.stop_targets import count_changing

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
    """Something that one can stop: its button sends `target`; `stops` name just it."""

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


def stop_lines(on: Sequence[Stop]) -> Iterator[Line]:
    """Yield a box each for all changing tools, each server, and everything."""
    everything = [each for each in on if each.scope == Scope.EVERYTHING]
    note = f" {_('Stopped with everything.')}" if everything else ""
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
        about=f"{about}{note}",
        button=_("Stop what changes things"),
        target=Scope.CHANGES,
        stops=[each for each in on if each.scope == Scope.CHANGES],
        is_off=bool(everything),
    )
    clients = _client_counts()
    for server in Server.rows().filter(published__isnull=False):
        yield Line(
            title=_("Server %(name)s") % {"name": server},
            about=f"{_server_summary(server, clients)}{note}",
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
    # Import here: processes that serve clients load the admin, but no `workbench`.
    from mcp_app.workbench.overview import calling_clients  # noqa: PLC0415

    counted = Session.objects.recent().order_by().values_list("server")
    counts = Counter(dict(counted.annotate(count=models.Count("pk"))))
    callers = calling_clients(int(now().timestamp() * 1_000))
    counts.update(caller.server for caller in callers if not caller.session)
    return counts


def single_lines(on: Sequence[Stop]) -> Iterator[Line]:
    """Yield the individually stopped definitions, also those whose row is deleted."""
    by_target: dict[str, list[Stop]] = {}
    for each in on:
        by_target.setdefault(stop_banner.stop_target(each), []).append(each)
    for target, stops in by_target.items():
        yield Line(stops[0].what, stops[0].kind, "", target, stops)


def search_text(query: QueryDict) -> str:
    """Return the search text, cut and cleaned as names and URIs are."""
    return one_line(query.get("q", "")[:URI_LENGTH], URI_LENGTH)


def search_definitions(wanted: str, on: Sequence[Stop]) -> Iterator[Line]:
    """Yield the served definitions that match and are not stopped; one query."""
    if not wanted:
        return
    stopped_targets = {stop_banner.stop_target(each) for each in on}
    names = {(each.kind, each.served_hash) for each in on}
    first, *others = (
        model.rows()
        .order_by()
        .filter(_text_condition(model, wanted), _served_condition(model, wanted))
        .annotate(kind_name=models.Value(kind), identity_now=models.F(model.IDENTITY))
        .values_list(*COLUMNS)
        for kind, model in MODELS.items()
    )
    for row in first.union(*others).order_by("name")[:MAX_MATCHES]:
        kind, pk, name, title, identity, published = row
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
    condition = models.Q(published_identity=model.identity_hash(wanted))
    for column in ("name", "title", model.IDENTITY):
        condition |= models.Q(**{f"{column}__icontains": wanted})
    return condition


def _served_condition(model: type[DefinitionRow], wanted: str) -> models.Q:
    """Match rows that are served: from code, published, or named like a declaration."""
    declared = declarations(mcp)[str(model._meta.model_name)]
    folded = wanted.casefold()
    names = [name for name in declared if folded in name.casefold()][:MAX_MATCHES]
    is_declared = models.Q(**{f"{model.IDENTITY}__in": names})
    served = models.Q(source=Source.CODE) | models.Q(published__isnull=False)
    return served | is_declared
