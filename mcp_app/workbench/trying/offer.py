"""What is offered to one trial: the working copy, or one row and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from mcp_app.auth.principals import lets_anyone_in
from mcp_app.catalog.row_loader import (
    StoredOverlay,
    StoredRow,
    demands_of,
    load_servers,
    stored_definition,
    tags_of,
)
from mcp_app.catalog.snapshot import Catalog, Entry, TemplateEntry
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.interface.server import Key, ServerDefinition
from mcp_app.kinds import KindError
from mcp_app.models import DefinitionRow
from mcp_app.process.loading import Catalogs
from mcp_app.protocol.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """What a row would serve if it were published now."""

    stored: StoredRow
    demands: AccessRequirements = NO_REQUIREMENTS
    """The demands of the published version."""

    @classmethod
    def of_definition_row(cls, row: DefinitionRow) -> WorkingCopy:
        """Return a row's working copy; raise ValueError if it does not fit.  Blocks."""
        demands = demands_of(row.published_content())
        if row.from_code:
            key = row.kind_of_row, str(row.pk)
            stored = StoredOverlay(key, row.identity, row.working_content())
            return cls(stored, demands)
        return cls(stored_definition(row), demands)

    def catalog_overlay(self, catalogs: Catalogs) -> Callable[[Catalog], Catalog]:
        """Return a function that puts it into a catalog instead of what is published.

        Raises `KindError` if it cannot be served.  The demands of the published version
        hold beside its own: an edit that nobody has published takes no demand away.
        A stop of this definition does not stop the working copy; other stops do.
        """
        name, entry = catalogs.entry_of(self.stored)
        demands = entry.definition.demands.combined_with(self.demands)
        entry.definition = replace(entry.definition, demands=demands)
        return lambda catalog: _with_working_copy(catalog, name, entry, catalogs)


def _with_working_copy(
    catalog: Catalog, name: str, entry: Entry[Any, Any], catalogs: Catalogs
) -> Catalog:
    entries = (*catalog.offered[name], *catalog.stopped.get(name, {}).values())
    # The server's entries of this row, stopped or not.
    changes: dict[str, Entry[Any, Any] | None] = {
        each.identity: None for each in entries if each.key == entry.key
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

    Among these, servers that let the person in (`admits`) come first; public ones come
    last, because nobody is asked there who they are.
    """
    content = row.working_content() if row.published is None else row.published.read()
    key, tags = (row.kind_of_row, str(row.pk)), tags_of(content)

    def server_order(server: ServerDefinition) -> tuple[bool, bool, bool, str]:
        # `sorted` puts False first, so conditions for coming first are negated.
        offers = server.offers_definition(tags, key)
        opens = lets_anyone_in(server) and admits(server)
        return not offers, not opens, server.is_public, server.slug

    return sorted(load_servers().values(), key=server_order)


@dataclass(frozen=True, slots=True)
class TriedRow:
    """The row that is tried, by its key.

    A definition in code has no key in catalogs until its row changes something.
    """

    key: Key
    from_code: bool

    def restrict_catalog(
        self, catalog: Catalog, method: str, params: JsonObject
    ) -> Catalog:
        """Return a catalog in which it alone can answer a request.

        Raises `KindError` if something else comes before it.
        """
        answering = [*answering_entries(catalog, method, params)]
        if not answering:
            return catalog
        (name, first), *rest = answering
        if not self._is_own_entry(first, catalog, name):
            raise KindError(
                _("At this server another definition answers this request: “%(name)s”.")
                % {"name": first.definition.name}
            )
        for name, entry in rest:
            # This entry would answer callers who may not see the first one.
            removals = {name: {entry.identity: None}}
            catalog = catalog.with_changes(removals, removals)
        return catalog

    def _is_own_entry(
        self, entry: Entry[Any, Any], catalog: Catalog, name: str
    ) -> bool:
        if entry.key is None and self.from_code:
            # Our tools that search have no key either, but belong to no row.
            stopped = catalog.stopped.get(name, {}).values()
            return any(each is entry for each in (*catalog.offered[name], *stopped))
        return entry.key == self.key


def answering_entries(
    catalog: Catalog, method: str, params: JsonObject
) -> Iterator[tuple[str, Entry[Any, Any]]]:
    """Yield the list and the entry of all that may answer, in the order of trial."""
    if method == "resources/read":
        for match in catalog.matches_of_uri(str(params.get("uri", ""))):
            is_template = isinstance(match.entry, TemplateEntry)
            yield ("templates" if is_template else "resources"), match.entry
        return
    reference: JsonObject = params.get("ref", {})
    name, identity = "prompts", str(reference.get("name", params.get("name")))
    if method == "tools/call":
        name, identity = "tools", str(params.get("name"))
    elif method == "events/poll":
        name, identity = "events", str(params.get("name"))
    elif "uri" in reference:
        name, identity = "templates", str(reference["uri"])
    entries: Mapping[str, Entry[Any, Any]] = getattr(catalog, name)
    entry = entries.get(identity) or catalog.switched_off(name, identity)
    if entry is not None:
        yield name, entry
