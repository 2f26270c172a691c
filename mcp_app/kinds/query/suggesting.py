"""Suggestions from data of the site, by references such as “{{shop.Customer.email}}”.

Values come from rows that the caller may see.  Their fields must be opened both to be
shown and as filters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.db import router
from django.db.models import Case, IntegerField, Value, When

from mcp_app.auth.permissions import Holder
from mcp_app.catalog.open_models import FieldKind, OpenModels
from mcp_app.catalog.outputs import completion
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.suggestions import (
    fitting_suggestions,
    is_reference,
    suggestions_of,
)
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import Definition
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.questions import Completion
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.comparisons import condition
from mcp_app.kinds.query.kind import lookup_runnable
from mcp_app.kinds.query.scoping import Path, Scopes, resolve_path
from mcp_app.pools.statement_time import TimeIsUp, time_limit
from mcp_app.protocol.json_types import JsonObject
from mcp_app.site_time import local_date

MAX_SUGGESTIONS: Final = 100
SECONDS: Final = 1.0
SHORTEST: Final = 2
"""Values are suggested only if at least this many characters are typed."""
_REFERENCE: Final = re.compile(
    r"\{\{ *([A-Za-z_]\w*\.[A-Za-z_]\w*)\.([A-Za-z_]\w*) *\}\}"
)


def referenced_path(reference: str, opened: OpenModels) -> Path:
    """Return the field that a suggestion names; raise `KindError`."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise KindError(
            f"“{reference}” names no field. Write app, model and field, such as"
            " {{shop.Customer.email}}."
        )
    model = opened.get(match[1])
    if model is None:
        raise KindError(f"“{reference}”: no code opens the model “{match[1]}”.")
    # This raises if the field may not be shown; the path is that for filters.
    resolve_path(match[2], model, opened, "fields")
    path = resolve_path(match[2], model, opened, "filters")
    if path.field.kind not in (FieldKind.TEXT, FieldKind.CHOICE):
        raise KindError(f"“{reference}” is a {path.field.kind.value}, and no text.")
    return path


def completers_of(
    definition: Definition, registry: Registry
) -> Mapping[str, Runnable[Completion]]:
    """Return completers by name, for names with suggestions from fields."""
    completers = {}
    for name, texts in suggestions_of(definition).items():
        references = [text for text in texts if is_reference(text)]
        if references:
            paths = [referenced_path(each, registry.open_models) for each in references]
            fixed = [text for text in texts if not is_reference(text)]
            completer = _Looking(fixed, paths, registry)
            completers[name] = lookup_runnable(
                completer.complete, _bind_typed_text, completion
            )
    return completers


def _bind_typed_text(arguments: JsonObject) -> dict[str, object]:
    return {"typed": arguments["value"]}


@dataclass(frozen=True)
class _Looking:
    """Completes from fixed suggestions, then from values of fields."""

    fixed: Sequence[str]
    paths: Sequence[Path]
    registry: Registry

    def complete(self, *, ctx: SyncContext, typed: str) -> Completion:
        """Return fitting suggestions; a field that takes too long is left out."""
        values = list(fitting_suggestions(self.fixed, typed).values)
        if len(typed) >= SHORTEST:
            for path in self.paths:
                values += self._suggested_values(ctx, path, typed)
        return Completion(list(dict.fromkeys(values))[:MAX_SUGGESTIONS])

    def _suggested_values(self, ctx: SyncContext, path: Path, typed: str) -> list[str]:
        holder = Holder(ctx.principal, ctx.server, self.registry.rules)
        needed = {permission for permission in path.permissions if permission}
        if not all(map(holder.has_permission, needed)):
            return []
        using = router.db_for_read(path.owner.model)
        access_request = AccessRequest(
            principal=ctx.principal, server=ctx.server, user=holder.user
        )
        try:
            with time_limit(using, SECONDS):
                return self._fitting_values(path, Scopes(access_request, using), typed)
        except TimeIsUp:
            return []

    def _fitting_values(self, path: Path, scopes: Scopes, typed: str) -> list[str]:
        """Return values that contain a text; those that begin with it come first."""
        fits = partial(condition, path.field, value=typed, today=local_date())
        column = path.field.source.attname
        first = When(fits("istartswith"), then=Value(0))
        rows = scopes.rows(path.owner).filter(fits("icontains"))
        ranked = rows.annotate(
            mcp_rank=Case(first, default=Value(1), output_field=IntegerField())
        )
        ranked_values = ranked.values_list("mcp_rank", column).distinct()
        best = ranked_values.order_by("mcp_rank", column)[:MAX_SUGGESTIONS]
        return [str(value) for _rank, value in best]
