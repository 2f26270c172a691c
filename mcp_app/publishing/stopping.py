"""What people want to stop, by the names that they know."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final

from django.db.models import Q

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import MODELS, hints_of
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.rules import text_problem
from mcp_app.models import DefinitionRow, Stop, Tool
from mcp_app.models.stops import row_is_held
from mcp_app.publishing.overlays import make_overlays, whole_definition

NEAR: Final = 5
"""Names that are suggested."""


def find_definition(kind: str, name: str, registry: Registry) -> DefinitionRow | None:
    """Return the row of a name or URI: the one that clients see, else a working copy.

    What code declares has a row from then on.
    """
    if text_problem(name):
        # Nothing is called so, and databases cannot look for NUL or half a pair.
        return None
    found = _named(kind, name)
    if found is None and make_overlays(registry):
        found = _named(kind, name)
    return found


def _named(kind: str, name: str) -> DefinitionRow | None:
    model = MODELS[kind]
    seen = Q(published_identity=model.identity_hash(name))
    rows: Any = model.rows().filter(seen | Q(**{model.IDENTITY: name}))
    # Some databases take names for equal that are not.
    served, others = model.identity_hash(name), []
    for row in rows:
        if row.published_identity == served:
            return row  # type: ignore[no-any-return]
        if row.identity == name:
            others.append(row)
    return next(iter(others), None)


def near(kind: str, name: str) -> list[str]:
    """Return names or URIs of a kind that are like this one, the most alike first."""
    model = MODELS[kind]
    names = [str(each) for each in model.rows().values_list(model.IDENTITY, flat=True)]
    close = difflib.get_close_matches(name, names, NEAR)
    within = [each for each in names if name.lower() in each.lower()]
    return list(dict.fromkeys([*close, *within]))[:NEAR]


def count_changing(registry: Registry, stops: Iterable[Stop]) -> int:
    """Count the tools that do not say that they only read; one query.

    Those that one of the stops holds by itself are left out.
    """
    is_held = row_is_held(stops)
    hints = {name: each.definition.hints for name, each in registry.tools.items()}
    held: set[str] = set()
    for row in Tool.rows().order_by().select_related("published"):
        content = {} if row.published is None else row.published.read()
        name = row.name if row.from_code else content.get("name")
        if name is None or row.from_code is not (name in registry.tools):
            # It is not published, not in the code any more, or hidden by what is.
            continue
        whole = whole_definition(row, content, registry)
        if isinstance(whole, ToolDefinition):
            hints[name] = whole.hints
        else:
            hints[name] = hints_of(content)
        if is_held(row):
            held.add(name)
    return sum(not hints[name].read_only for name in hints if name not in held)
