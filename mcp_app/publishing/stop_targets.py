"""Finds the rows that people name to stop them, and the rows that a stop holds."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from django.db.models import Q

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import MODELS, hints_of
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.rules import text_problem, visible
from mcp_app.models import DefinitionRow, PublishedRow, Server, Stop, Tool
from mcp_app.models.stops import Scope, stop_matcher
from mcp_app.publishing.overlays import make_overlays, whole_definition

KINDS: Final[Mapping[str, str]] = {
    "tool": "tool",
    "resource": "resource",
    "template": "resourcetemplate",
    "prompt": "prompt",
    "event": "eventtype",
}
"""The models of definitions, by what people call their kind."""
ALONE: Final = (Scope.EVERYTHING.value, Scope.CHANGES.value)
"""Scopes that take no name."""
WHAT: Final = (*ALONE, Scope.SERVER.value, *KINDS)
NEAR: Final = 5
"""Names that are suggested."""
MOST_COUNTED: Final = 1_000


class TargetMissing(Exception):
    """Nothing has this name; the text says which names are like it."""


def find_target(target: str, registry: Registry) -> tuple[str, PublishedRow | None]:
    """Return the scope that a text such as `tool:weather` names, and its row, if any.

    Raises `TargetMissing`, which names the most similar names.
    """
    what, _colon, name = target.partition(":")
    if what not in WHAT:
        similar = difflib.get_close_matches(what, WHAT, 1)
        advice = f" Did you mean “{similar[0]}”?" if similar else ""
        raise TargetMissing(f"“{visible(what)}” is none of: {', '.join(WHAT)}.{advice}")
    if what in ALONE:
        if name:
            raise TargetMissing(
                f"“{what}” takes no name, but you gave “{visible(name)}”."
            )
        return what, None
    if what == Scope.SERVER:
        rows = {row.slug: row for row in Server.objects.all()}
        if name in rows:
            return what, rows[name]
        close = difflib.get_close_matches(name, rows, NEAR) or [*rows][:NEAR]
        raise TargetMissing(_missing_message(what, name, close))
    row = find_definition(KINDS[what], name, registry)
    if row is None:
        close = similar_names(KINDS[what], name)
        raise TargetMissing(_missing_message(what, name, close))
    return Scope.DEFINITION.value, row


def _missing_message(what: str, name: str, close: Sequence[str]) -> str:
    message = f"There is no {what} “{visible(name)}”."
    if close:
        message += f" Similar names: {', '.join(visible(each) for each in close)}."
    return message


def find_definition(kind: str, name: str, registry: Registry) -> DefinitionRow | None:
    """Return the row of a name or URI: the one that clients see, else a working copy.

    If code declares it and it has no row, its row is made.
    """
    if text_problem(name):
        # No name has NUL or half a surrogate pair: databases cannot look for them.
        return None
    row = _find_by_name(kind, name)
    if row is None and make_overlays(registry):
        row = _find_by_name(kind, name)
    return row


def _find_by_name(kind: str, name: str) -> DefinitionRow | None:
    model = MODELS[kind]
    served = model.identity_hash(name)
    matches = Q(published_identity=served) | Q(**{model.IDENTITY: name})
    # Some databases take different names for equal.
    rows = [
        row
        for row in model.rows().filter(matches)
        if row.published_identity == served or row.identity == name
    ]
    # The row that clients see comes first.
    rows.sort(key=lambda row: row.published_identity != served)
    return rows[0] if rows else None


def row_of_key(kind: str, key: str) -> PublishedRow | None:
    """Return the row of this kind with this key, as forms write it."""
    kinds: dict[str, type[PublishedRow]] = {"server": Server, **MODELS}
    if kind not in kinds or not re.fullmatch("[0-9]{1,18}", key):
        return None
    return kinds[kind].rows().filter(pk=int(key)).first()


def row_of_stop(stop: Stop) -> PublishedRow | None:
    """Return the row that a stop holds, or else the one that has its name now."""
    if not stop.kind:
        return None
    row = row_of_key(stop.kind, stop.ref)
    if row is not None or stop.kind not in MODELS:
        return row
    return MODELS[stop.kind].rows().filter(published_identity=stop.served_hash).first()


def similar_names(kind: str, name: str) -> list[str]:
    """Return the names or URIs of a kind that are like this one, the nearest first."""
    model = MODELS[kind]
    names = [str(each) for each in model.rows().values_list(model.IDENTITY, flat=True)]
    close = difflib.get_close_matches(name, names, NEAR)
    within = [each for each in names if name.lower() in each.lower()]
    return list(dict.fromkeys([*close, *within]))[:NEAR]


def count_changing(registry: Registry, stops: Iterable[Stop]) -> int | None:
    """Count the tools that may change something; one query.

    Tools that one of the stops holds by itself are left out.  Returns None if there are
    many tools: thousands would take seconds.
    """
    rows = [*Tool.rows().order_by().select_related("published")[: MOST_COUNTED + 1]]
    if len(rows) > MOST_COUNTED:
        return None
    is_stopped = stop_matcher(stops)
    hints = {name: each.definition.hints for name, each in registry.tools.items()}
    stopped_names: set[str] = set()
    for row in rows:
        content = row.published_content()
        name = row.name if row.from_code else content.get("name")
        if name is None or row.from_code is not (name in registry.tools):
            # The tool is unpublished, gone from the code, or hidden by a published one.
            continue
        whole = whole_definition(row, content, registry)
        of_row = hints_of(content)
        hints[name] = whole.hints if isinstance(whole, ToolDefinition) else of_row
        if is_stopped(row):
            stopped_names.add(name)
    return sum(not hints[name].read_only for name in hints if name not in stopped_names)
