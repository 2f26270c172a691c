"""The search for single definitions to stop, by working copy or by served name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import models
from django.http import QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.page import stop_banner
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import MODELS
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import one_line, visible
from mcp_app.kinds.survey import declarations
from mcp_app.models import DefinitionRow, Stop
from mcp_app.models.definitions import Source
from mcp_app.models.fields import digest
from mcp_app.protocol.uri_templates import URI_LENGTH

MAX_MATCHES: Final = 20
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
    """Whether a stop of everything applies to it."""

    @property
    def state(self) -> Label:
        return _("Stopped") if self.stops or self.is_off else _("Serving")

    @property
    def look(self) -> str:
        return "stopped" if self.stops or self.is_off else "good"

    @property
    def notes(self) -> list[str]:
        """Who stopped it, when and why, and what the stop did."""
        return [
            text
            for stop in self.stops
            for text in (stop_banner.stop_sentence(stop), stop_banner.stop_result(stop))
        ]

    @property
    def start_url(self) -> str:
        return stop_banner.start_url(self.target) if self.stops else ""


def search_text(query: QueryDict) -> str:
    """Return the search text, cut and cleaned as names and URIs are."""
    return one_line(query.get("q", "")[:URI_LENGTH], URI_LENGTH)


def search_definitions(wanted: str, on: Sequence[Stop]) -> Iterator[Line]:
    """Yield the visible definitions that match and are not stopped; one query."""
    if not wanted:
        return
    stopped_targets = {stop_banner.stop_target(each) for each in on}
    names = {(each.kind, each.served_hash) for each in on}
    one, *others = (
        model.rows()
        .order_by()
        .filter(_text_condition(model, wanted), _served_condition(model, wanted))
        .annotate(kind_name=models.Value(kind), identity_now=models.F(model.IDENTITY))
        .values_list(*COLUMNS)
        for kind, model in MODELS.items()
    )
    for each in one.union(*others).order_by("name")[:MAX_MATCHES]:
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
    """Match what is served: by code, as published, or a draft of a declared name."""
    declared = declarations(mcp)[str(model._meta.model_name)]
    letters = wanted.casefold()
    close = [each for each in declared if letters in each.casefold()][:MAX_MATCHES]
    declared_here = models.Q(**{f"{model.IDENTITY}__in": close})
    served = models.Q(source=Source.CODE) | models.Q(published__isnull=False)
    return served | declared_here
