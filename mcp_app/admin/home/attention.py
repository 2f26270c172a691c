"""Definitions that clients do not see as they are, for the home page: one query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Case, CharField, IntegerField, Q, QuerySet, Value, When
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_app.admin.page.broken_rows import broken_rows_of, is_broken_somewhere
from mcp_app.admin.page.header import LOOKS, MEANS
from mcp_app.interface.rules import visible
from mcp_app.models import (
    DefinitionRow,
    Prompt,
    Resource,
    ResourceTemplate,
    State,
    Tool,
)
from mcp_app.models.definitions import Source
from mcp_app.models.stops import is_stopped

MODELS: Final[Sequence[type[DefinitionRow]]] = (
    Tool,
    Resource,
    ResourceTemplate,
    Prompt,
)
MOST: Final = 8
"""Definitions that the page names."""
ORDER: Final = (State.BROKEN, State.CHANGED, State.UNPUBLISHED)


@dataclass(frozen=True, slots=True)
class Concern:
    """A definition that clients do not see, or see otherwise than it is here."""

    state: State
    name: str
    kind: str
    sentence: str
    url: str
    link: str

    @property
    def look(self) -> str:
        return LOOKS[self.state]


def concerns(request: HttpRequest) -> list[Concern]:
    """Return at most one definition more than the page names, the worst first."""
    rows = [_rows(request, model) for model in MODELS if _may_view(request, model)]
    if not rows:
        return []
    found = rows[0].union(*rows[1:], all=True).order_by("place", "kind_name", "pk")
    return [_concern(request, *row) for row in found[: MOST + 1]]


def _may_view(request: HttpRequest, model: type[DefinitionRow]) -> bool:
    return request.user.has_perm(f"mcp_app.view_{model._meta.model_name}")


def _rows(request: HttpRequest, model: type[DefinitionRow]) -> QuerySet[Any, Any]:
    """Return place, kind, key, title, name and reason of rows that need care."""
    rows: Any = model.rows()
    states = rows.with_states(is_stopped(model)).order_by()
    is_broken = Q(reckoned_state=State.BROKEN) | (
        is_broken_somewhere(request, model) & ~Q(reckoned_state=State.STOPPED)
    )
    place = Case(
        When(is_broken, then=0),
        When(reckoned_state=State.CHANGED, then=1),
        # What code declares is served without a version.
        When(Q(reckoned_state=State.UNPUBLISHED, source=Source.HERE), then=2),
        output_field=IntegerField(),
    )
    kind = Value(str(model._meta.model_name), output_field=CharField())
    needing = states.annotate(place=place, kind_name=kind).filter(place__isnull=False)
    columns = ("place", "kind_name", "pk", "title", "name", "broken")
    found: QuerySet[Any, Any] = needing.values_list(*columns)
    return found


def _concern(
    request: HttpRequest,
    place: int,
    kind: str,
    pk: int,
    title: str,
    name: str,
    why: str,
) -> Concern:
    state = ORDER[place]
    reasons = broken_rows_of(request).get((kind, str(pk)), {}).values()
    reason = next(iter(reasons), "") or visible(why, None)
    is_broken = state is State.BROKEN
    return Concern(
        state=state,
        name=visible(title or name, None),
        kind=str(_model_of(kind)._meta.verbose_name),
        sentence=reason if is_broken else str(MEANS[state]),
        url=reverse(
            f"admin:mcp_app_{kind}_{'change' if is_broken else 'publish'}", args=[pk]
        ),
        link=_("Open it") if is_broken else _("Publish…"),
    )


def _model_of(kind: str) -> type[DefinitionRow]:
    return next(model for model in MODELS if model._meta.model_name == kind)


def lists(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """Yield name and address of the lists that the user may see, worst rows first."""
    for model in MODELS:
        if _may_view(request, model):
            url = reverse(f"admin:mcp_app_{model._meta.model_name}_changelist")
            yield str(model._meta.verbose_name_plural), url
