"""The working copy of a definition, offered beside what is published, to one trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_app.catalog.row_loader import (
    StoredOverlay,
    StoredRow,
    load_servers,
    stored_definition,
    tags_of,
)
from mcp_app.catalog.snapshot import Catalog, Entry
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import DefinitionRow
from mcp_app.process.loading import Catalogs

LISTS: Final[Mapping[str, str]] = {
    "tool": "tools",
    "resource": "resources",
    "resourcetemplate": "templates",
    "prompt": "prompts",
}


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """What a row would serve if it were published now."""

    stored: StoredRow

    @classmethod
    def of(cls, row: DefinitionRow) -> WorkingCopy:
        """Return that of a row; raise ValueError if its columns do not fit.  Blocks."""
        if row.from_code:
            key = row.kind_of_row, str(row.pk)
            return cls(StoredOverlay(key, row.identity, row.working_content()))
        return cls(stored_definition(row))

    def overlay(self, catalogs: Catalogs) -> Callable[[Catalog], Catalog]:
        """Return what puts it into a catalog instead of what is published.

        Raises `KindError` if it cannot be served.  It demands what it demands itself
        and what the published version does: an edit that nobody has published takes no
        demand away.  A stop of the definition itself does not hold it, others do.
        """
        name, entry = catalogs.entry_of(self.stored)
        return lambda catalog: _with(catalog, name, entry, catalogs)


def _with(
    catalog: Catalog, name: str, entry: Entry[Any, Any], catalogs: Catalogs
) -> Catalog:
    published = _published(catalog, name, entry)
    definition = entry.definition
    changes: dict[str, Entry[Any, Any] | None] = {}
    if published is not None:
        demands = definition.demands.and_also(published.definition.demands)
        entry.definition = definition = replace(definition, demands=demands)
        changes[published.identity] = None
    is_stopped = catalogs.stops.changes and not definition.only_reads
    offered, stopped = (None, entry) if is_stopped else (entry, None)
    return catalog.changed(
        {name: {**changes, entry.identity: offered}},
        {name: {**changes, entry.identity: stopped}},
    )


def _published(
    catalog: Catalog, name: str, entry: Entry[Any, Any]
) -> Entry[Any, Any] | None:
    """Return what a server offers of the same row, stopped or not."""
    of_row = (
        each
        for each in (*catalog.offered[name], *catalog.stopped.get(name, {}).values())
        if each.key == entry.key
    )
    return next(of_row, None)


def servers_for(row: DefinitionRow) -> list[ServerDefinition]:
    """Return the published servers, those that offer the row first.  Blocks."""
    content = row.working_content() if row.published is None else row.published.read()
    key, tags = (row.kind_of_row, str(row.pk)), tags_of(content)
    servers = load_servers().values()
    order = {each.slug: not each.offers(tags, key) for each in servers}
    return sorted(servers, key=lambda each: (order[each.slug], each.slug))
