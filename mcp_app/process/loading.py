"""Loads the catalogs of all servers from code and rows, and keeps them up to date.

Only the entries that a change names are loaded again.  Every other entry stays the same
object, with its compiled validators and cached encodings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_app.catalog import row_loader, snapshot
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import (
    ServedVersion,
    StoredDefinition,
    StoredOverlay,
    UnreadableRow,
    apply_overlay,
)
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Catalog, Entry
from mcp_app.catalog.stops import SERVER_OFF, Halt, Stops, cancelling, retry_after_s
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.questions import Completion
from mcp_app.interface.server import Key, ServerDefinition
from mcp_app.invalidation import changes
from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.kinds import KindError, complete_definition, completers_of, usable_kinds
from mcp_app.protocol.errors import RequestRefused, SwitchedOff
from mcp_app.server.own_tools import own_tools

logger = logging.getLogger("mcp_app.catalog")

Make = Callable[[Any, Runnable[Any]], Entry[Any, Any]]
CatalogPlace: TypeAlias = tuple[str, str]
"""The name of a list ("tools") and the identity of an entry in it."""
_Entries: TypeAlias = dict[str, dict[str, Entry[Any, Any] | None]]

_LISTS: Mapping[type[Definition], tuple[str, Make]] = {
    ToolDefinition: ("tools", snapshot.tool_entry),
    ResourceDefinition: ("resources", snapshot.resource_entry),
    ResourceTemplateDefinition: ("templates", snapshot.template_entry),
    PromptDefinition: ("prompts", snapshot.prompt_entry),
    EventDefinition: ("events", snapshot.event_entry),
}
_LIST_OF_KIND = {kind: name for name, kind in row_loader.LISTS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """An entry that servers may offer; `entry` is None if it cannot be served."""

    place: CatalogPlace
    entry: Entry[Any, Any] | None
    key: Key | None = None
    version: ServedVersion | None = None
    overlay: bool = False
    broken: str = ""

    def is_stopped(self, stops: Stops) -> bool:
        return self.entry is not None and bool(
            stops.of_definition(
                self.entry.definition, self.key, _place_key(*self.place)
            )
        )


class Catalogs:
    """The catalogs of all servers; `load_changes` blocks, and never runs twice at once.

    If loading fails, the old catalogs stay in place.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kinds = usable_kinds(registry)
        self._completers: dict[tuple[str, str], Runnable[Completion]] = {
            reference: function.completion_runnable()
            for reference, function in registry.completers.items()
        }
        self._declared = {offer.place: offer for offer in _declared_offers(registry)}
        self._rows: Mapping[Key, _Offer] = {}
        self._of_staff: Mapping[CatalogPlace, _Offer] = {}
        self._overlays: Mapping[CatalogPlace, _Offer] = {}
        self._servers: Mapping[str, ServerDefinition] = {}
        self.stops = Stops()
        self.by_slug: Mapping[str, Catalog] = {}
        """The catalogs of the servers that are not stopped."""
        self.stopped: frozenset[str] = frozenset()

    def serving(self, slug: str) -> Catalog:
        """Return the catalog of a server; raise 404 without it, 503 if stopped."""
        catalog = self.find_catalog(slug)
        if catalog is None:
            raise RequestRefused(404, f"There is no MCP server {slug!r} here.")
        return catalog

    def find_catalog(self, slug: str) -> Catalog | None:
        """Return the catalog of a server, None without it; raise 503 if stopped."""
        catalog = self.by_slug.get(slug)
        if catalog is None:
            self.check_not_stopped(slug)
        return catalog

    def check_not_stopped(self, slug: str) -> None:
        """Raise 503 if people have stopped a server."""
        # If everything is stopped, the answer does not tell which servers there are.
        if slug in self.stopped or self.stops.everything:
            raise SwitchedOff(SERVER_OFF, retry_after=retry_after_s())

    @property
    def ask_to_sign_in(self) -> bool:
        """Whether any server here requires people to sign in."""
        return not all(each.public for each in self.by_slug.values())

    def personal_lists(self, slug: str) -> Iterable[str]:
        """Return the lists of a server that differ from user to user."""
        catalog = self.by_slug.get(slug)
        return () if catalog is None else catalog.personal_lists

    def load_changes(self, change_set: ChangeSet) -> None:
        # A changed server may offer overlays that were made without a change row.
        all_rows = change_set.everything or bool(change_set.refs_of_kind("server"))
        servers = row_loader.load_servers() if all_rows else self._servers
        stops = self.stops
        refs = {kind: set(change_set.refs_of_kind(kind)) for kind in row_loader.MODELS}
        if change_set.everything or change_set.refs_of_kind(changes.STOP):
            stops = row_loader.load_stops()
            # Stops may name overlays that were inserted without a change row.
            for kind, ref in stops.rows.keys() - self._rows.keys():
                if kind in refs:
                    refs[kind].add(ref)
        if all_rows:
            # "*" stands for every row of a kind.
            refs = {kind: {"*"} for kind in refs}
        # Only `_load_rows` can still fail, and it reads before it changes anything.
        places = self._load_rows({kind: each for kind, each in refs.items() if each})
        places |= self._places_with_other_stops(stops)
        self.stops = stops
        self.stopped = frozenset(
            slug for slug, server in servers.items() if stops.of_server(server)
        )
        self.by_slug = {
            slug: self._updated_catalog(server, places)
            for slug, server in servers.items()
            if slug not in self.stopped
        }
        self._servers = servers

    def cancelling_stops(
        self, server: ServerDefinition, entry: Entry[Any, Any] | None
    ) -> Iterator[Halt]:
        """Yield the stops that cancel a call of this entry at this server."""
        yield from cancelling(self.stops.of_server(server))
        if entry is not None and (self.stops.changes or self.stops.rows):
            name, _ = _LISTS[type(entry.definition)]
            place_key = _place_key(name, entry.identity)
            yield from cancelling(
                self.stops.of_definition(entry.definition, entry.key, place_key)
            )

    def _places_with_other_stops(self, stops: Stops) -> set[CatalogPlace]:
        if stops == self.stops:
            return set()
        return {
            offer.place
            for offer in map(self._offer_at_place, {**self._of_staff, **self._declared})
            if offer is not None
            and offer.is_stopped(stops) is not offer.is_stopped(self.stops)
        }

    def missing_overlays(self) -> list[CatalogPlace]:
        return [place for place in self._declared if place not in self._overlays]

    # -- rows -------------------------------------------------------------------

    def _load_rows(self, refs: Mapping[str, Collection[str]]) -> set[CatalogPlace]:
        """Load the changed rows; return the places whose entries may differ now."""
        rows = dict(self._rows)
        changed = dict(self._changed_rows(refs))
        old_offers = [rows.pop(key) for key in changed if key in rows]
        new_offers = {
            each.key: self._offer_of_row(each, changed[each.key])
            for each in row_loader.load_rows(
                [key for key, version in changed.items() if version is not None]
            )
        }
        if not old_offers and not new_offers:
            return set()
        rows.update(new_offers)
        of_staff, overlays = dict(self._of_staff), dict(self._overlays)
        for offer in old_offers:
            by_place = overlays if offer.overlay else of_staff
            if by_place.get(offer.place) is offer:  # else another offer has the place
                del by_place[offer.place]
        for offer in new_offers.values():
            (overlays if offer.overlay else of_staff)[offer.place] = offer
        self._rows, self._of_staff, self._overlays = rows, of_staff, overlays
        return {offer.place for offer in (*old_offers, *new_offers.values())}

    def _changed_rows(
        self, refs: Mapping[str, Collection[str]]
    ) -> Iterator[tuple[Key, ServedVersion | None]]:
        """Yield the rows whose served version changed, with the new one or None."""
        for kind, names in refs.items():
            versions = row_loader.served_versions(kind, names)
            offers = {
                key: offer
                for key, offer in self._rows.items()
                if key[0] == kind and ("*" in names or key[1] in names)
            }
            for key in {**offers, **versions}:
                before = offers[key].version if key in offers else None
                if versions.get(key) != before:
                    yield key, versions.get(key)

    def broken_rows(self) -> Iterator[tuple[Key, ServedVersion, str]]:
        """Yield key, version and reason of the rows that cannot be served here."""
        for key, offer in self._rows.items():
            if offer.broken:
                yield key, offer.version or 0, offer.broken

    def _offer_of_row(
        self,
        each: row_loader.StoredRow | UnreadableRow,
        version: ServedVersion | None,
    ) -> _Offer:
        if isinstance(each, StoredOverlay):
            return self._offer_of_overlay(each, version)
        if isinstance(each, UnreadableRow):
            return _broken_offer(each.key, version, each.reason)
        try:
            entry = self._build_entry(each)
        except KindError as error:
            logger.warning("%s is not served: %s", each.row_label, error.message)
            return _broken_offer(each.key, version, error.message)
        name = _LIST_OF_KIND[each.key[0]]
        return _Offer((name, entry.identity), entry, each.key, version)

    def entry_of(self, each: row_loader.StoredRow) -> tuple[str, Entry[Any, Any]]:
        """Return the list and the entry of a row's content; raise `KindError`."""
        name = _LIST_OF_KIND[each.key[0]]
        if not isinstance(each, StoredOverlay):
            return name, self._build_entry(each)
        offer = self._offer_of_overlay(each, None)
        if offer.entry is None:
            raise KindError(offer.broken)
        return name, offer.entry

    def _build_entry(self, each: StoredDefinition[Definition]) -> Entry[Any, Any]:
        each = complete_definition(each, self._kinds)
        kind = self._kinds.get(each.kind)
        if kind is None:
            raise KindError(f"There is no kind {each.kind!r}.")
        runnable = kind.definition_runnable(each.definition, each.config, each.uploads)
        _, make = _LISTS[type(each.definition)]
        entry = make(each.definition, runnable)
        entry.version, entry.key = each.version, each.key
        entry.completers = completers_of(each.definition, self._registry)
        return entry

    def _offer_of_overlay(
        self, each: StoredOverlay, version: ServedVersion | None
    ) -> _Offer:
        place = (_LIST_OF_KIND[each.key[0]], each.identity)
        declared = self._declared.get(place)
        entry = None
        if declared is not None and declared.entry is not None:
            _, make = _LISTS[type(declared.entry.definition)]
            definition = apply_overlay(declared.entry.definition, each.content)
            entry = make(definition, declared.entry.runnable)
            entry.version, entry.key = each.version, each.key
        broken = "" if entry is not None else f"{each.identity} is not in its code."
        return _Offer(place, entry, each.key, version, overlay=True, broken=broken)

    # -- servers ----------------------------------------------------------------

    def _updated_catalog(
        self, server: ServerDefinition, changed_places: set[CatalogPlace]
    ) -> Catalog:
        catalog = self.by_slug.get(server.slug)
        if catalog is None or catalog.server != server:
            return self._new_catalog(server)
        offered: _Entries = {}
        stopped: _Entries = {}
        for place in changed_places:
            name, identity = place
            entry, is_stopped = self._offered_at_place(place, server)
            offered.setdefault(name, {})[identity] = None if is_stopped else entry
            stopped.setdefault(name, {})[identity] = entry if is_stopped else None
        return catalog.with_changes(offered, stopped)

    def _new_catalog(self, server: ServerDefinition) -> Catalog:
        lists: dict[str, list[Any]] = {name: [] for name in snapshot.LISTS}
        stopped: _Entries = {name: {} for name in snapshot.LISTS}
        for place in {**self._of_staff, **self._declared}:
            name, identity = place
            entry, is_stopped = self._offered_at_place(place, server)
            if entry is not None and is_stopped:
                stopped[name][identity] = entry
            elif entry is not None:
                lists[name].append(entry)
        return Catalog(
            server,
            completers=self._completers,
            stopped=stopped,
            own_tools=own_tools,
            **lists,
        )

    def _offered_at_place(
        self, place: CatalogPlace, server: ServerDefinition
    ) -> tuple[Entry[Any, Any] | None, bool]:
        """Return what a server offers at a place, and whether a stop applies to it."""
        offer = self._offer_at_place(place)
        if offer is None or (entry := offer.entry) is None:
            return None, False
        if not server.offers_definition(entry.definition.tags, offer.key):
            return None, False
        return entry, offer.is_stopped(self.stops)

    def _offer_at_place(self, place: CatalogPlace) -> _Offer | None:
        """Return the offer at a place: a row of staff never hides a declaration."""
        if place in self._declared:
            return self._overlays.get(place) or self._declared[place]
        return self._of_staff.get(place)


def _broken_offer(key: Key, version: ServedVersion | None, reason: str) -> _Offer:
    """Return the offer of a row that cannot be served, at a place that no entry has."""
    # No identity has a line break, so no entry has this place.
    place = (_LIST_OF_KIND[key[0]], f"\n{key[1]}")
    return _Offer(place, None, key, version, broken=reason)


def _place_key(list_name: str, identity: str) -> Key:
    """Return the key by which stops name a place: its kind and its identity."""
    return row_loader.LISTS[list_name], identity


def _declared_offers(registry: Registry) -> Iterator[_Offer]:
    makers: list[tuple[Mapping[str, Any], Callable[[Any], Any]]] = [
        (registry.tools, lambda function: function.tool_runnable()),
        (registry.resources, lambda function: function.resource_runnable()),
        (registry.templates, RegisteredFunction.resource_runnable),
        (registry.prompts, RegisteredFunction.prompt_runnable),
    ]
    for declarations, make_runnable in makers:
        for declared in declarations.values():
            name, make = _LISTS[type(declared.definition)]
            entry = make(declared.definition, make_runnable(declared.function))
            yield _Offer((name, entry.identity), entry)
    for event in registry.events.values():
        yield _Offer(
            ("events", event.definition.name),
            snapshot.event_entry(event.definition, event.run),
        )
