"""The working copy of a definition, offered beside what is published, to one trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mcp_app.auth.principals import lets_anyone_in
from mcp_app.catalog.row_loader import (
    StoredOverlay,
    StoredRow,
    demands_of,
    load_servers,
    stored_definition,
    tags_of,
)
from mcp_app.catalog.snapshot import Catalog, Entry
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import DefinitionRow
from mcp_app.process.loading import Catalogs


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """What a row would serve if it were published now."""

    stored: StoredRow
    demands: AccessRequirements = NO_REQUIREMENTS
    """What the published version demands."""

    @classmethod
    def of_definition_row(cls, row: DefinitionRow) -> WorkingCopy:
        """Return that of a row; raise ValueError if its columns do not fit.  Blocks."""
        published = {} if row.published is None else row.published.read()
        demands = demands_of(published)
        if row.from_code:
            key = row.kind_of_row, str(row.pk)
            stored = StoredOverlay(key, row.identity, row.working_content())
            return cls(stored, demands)
        return cls(stored_definition(row), demands)

    def catalog_overlay(self, catalogs: Catalogs) -> Callable[[Catalog], Catalog]:
        """Return what puts it into a catalog instead of what is published.

        Raises `KindError` if it cannot be served.  It demands what it demands itself
        and what the published version does, wherever that is offered: an edit that
        nobody has published takes no demand away.  A stop of the definition itself
        does not hold it, others do.
        """
        name, entry = catalogs.entry_of(self.stored)
        demands = entry.definition.demands.combined_with(self.demands)
        entry.definition = replace(entry.definition, demands=demands)
        return lambda catalog: _with_working_copy(catalog, name, entry, catalogs)


def _with_working_copy(
    catalog: Catalog, name: str, entry: Entry[Any, Any], catalogs: Catalogs
) -> Catalog:
    known = (*catalog.offered[name], *catalog.stopped.get(name, {}).values())
    # What a server offers of the same row, stopped or not.
    changes: dict[str, Entry[Any, Any] | None] = {
        each.identity: None for each in known if each.key == entry.key
    }
    is_stopped = catalogs.stops.changes and not entry.definition.only_reads
    offered, stopped = (None, entry) if is_stopped else (entry, None)
    return catalog.with_changes(
        {name: {**changes, entry.identity: offered}},
        {name: {**changes, entry.identity: stopped}},
    )


def servers_for(
    row: DefinitionRow, admits: Callable[[ServerDefinition], bool]
) -> list[ServerDefinition]:
    """Return the published servers, those that offer the row first.  Blocks.

    Among them those come first that let the person in, which `admits` says; public ones
    come last, because nobody is asked there who they are.
    """
    content = row.working_content() if row.published is None else row.published.read()
    key, tags = (row.kind_of_row, str(row.pk)), tags_of(content)

    def server_order(server: ServerDefinition) -> tuple[bool, bool, bool, str]:
        offers = server.offers_definition(tags, key)
        opens = lets_anyone_in(server) and admits(server)
        return not offers, not opens, server.is_public, server.slug

    return sorted(load_servers().values(), key=server_order)
