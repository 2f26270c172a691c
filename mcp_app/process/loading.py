"""Catalogs of what code declares and staff published, brought up to date by news.

What a change names is loaded; every other entry stays the same object, with the
validators and encodings that were made for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_app.catalog import snapshot, stored
from mcp_app.catalog.overlays import overlaid
from mcp_app.catalog.registered import RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Catalog, Entry
from mcp_app.catalog.stops import Halt, Stops, cancelling
from mcp_app.catalog.stored import ServedVersion, StoredDefinition, StoredOverlay
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.results import Completion
from mcp_app.interface.server import Key, ServerDefinition
from mcp_app.kinds import KindError, kinds_of
from mcp_app.wakeup import changes
from mcp_app.wakeup.news import News

logger = logging.getLogger("mcp_app.catalog")

Make = Callable[[Any, Runnable[Any]], Entry[Any, Any]]
Place: TypeAlias = tuple[str, str]
"""A list ("tools") and the identity of an entry there."""
_Entries: TypeAlias = dict[str, dict[str, Entry[Any, Any] | None]]

_LISTS: Mapping[type[Definition], tuple[str, Make]] = {
    ToolDefinition: ("tools", snapshot.tool_entry),
    ResourceDefinition: ("resources", snapshot.resource_entry),
    ResourceTemplateDefinition: ("templates", snapshot.template_entry),
    PromptDefinition: ("prompts", snapshot.prompt_entry),
}
_LIST_OF_KIND = {kind: name for name, kind in stored.LISTS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """An entry that servers may offer; None where it cannot be served.

    It is `off` where the switch of its row is.
    """

    place: Place
    entry: Entry[Any, Any] | None
    key: Key | None = None
    version: ServedVersion = (None, True)
    overlay: bool = False
    off: bool = False

    def is_stopped(self, stops: Stops) -> bool:
        """Whether people have switched it off, in whatever way."""
        if self.off or self.entry is None:
            return self.off
        return bool(stops.of(self.entry.definition, self.key, _name(*self.place)))

    def on(self, server: ServerDefinition) -> Entry[Any, Any] | None:
        """Return the entry where the server offers it."""
        if self.entry is None:
            return None
        offered = server.offers(self.entry.definition.tags, self.key)
        return self.entry if offered else None


class Catalogs:
    """The catalogs of all servers; `load` blocks, and is called by one at a time.

    Where loading fails, everything stays as it was.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kinds = kinds_of(registry)
        self._completers = _completers(registry)
        self._declared = {
            offer.place: offer for offer in map(_declared, _declarations(registry))
        }
        self._rows: Mapping[Key, _Offer] = {}
        self._here: Mapping[Place, _Offer] = {}
        """What staff made, by its place."""
        self._overlays: Mapping[Place, _Offer] = {}
        self._servers: Mapping[str, ServerDefinition] = {}
        self.stops = Stops()
        self.by_slug: Mapping[str, Catalog] = {}
        """The catalogs of the servers that are switched on."""
        self.stopped: frozenset[str] = frozenset()
        """The slugs of those that are switched off."""

    def load(self, news: News) -> None:
        """Bring everything up to date that the news name."""
        servers = self._servers
        if news.everything or news.refs("server"):
            servers = stored.load_servers()
        stops = self.stops
        if news.everything or news.refs(changes.STOP):
            stops = stored.load_stops()
        # A server may have chosen a row of code that nobody was told of.
        everything = news.everything or bool(news.refs("server"))
        refs = {
            kind: {"*"} if everything else news.refs(kind) | self._unknown(stops, kind)
            for kind in stored.MODELS
        }
        # From here on nothing is read any more that could fail.
        touched = self._load_rows({kind: each for kind, each in refs.items() if each})
        touched |= self._stopped_anew(stops)
        self.stops = stops
        self.stopped = frozenset(
            slug
            for slug, server in servers.items()
            if not server.enabled or stops.of_server(server)
        )
        self.by_slug = {
            slug: self._catalog(server, touched)
            for slug, server in servers.items()
            if slug not in self.stopped
        }
        self._servers = servers

    def halts(
        self, server: ServerDefinition, entry: Entry[Any, Any] | None
    ) -> Iterator[Halt]:
        """Yield the stops that cancel a call at a server, of this entry.

        Both are as they were when the call began: since then they may have been
        renamed or deleted, and what runs is still theirs.
        """
        yield from cancelling(self.stops.of_server(server))
        if entry is not None and (self.stops.changes or self.stops.rows):
            name, _ = _LISTS[type(entry.definition)]
            named = _name(name, entry.identity)
            yield from cancelling(self.stops.of(entry.definition, entry.key, named))

    def _unknown(self, stops: Stops, kind: str) -> set[str]:
        """Return which rows are stopped that were not loaded.

        An overlay that changes nothing is made without telling anybody.
        """
        if stops is self.stops:
            return set()
        unknown = stops.rows.keys() - self._rows.keys()
        return {ref for each, ref in unknown if each == kind}

    def _stopped_anew(self, stops: Stops) -> set[Place]:
        """Return the places where something is stopped, or is so no more."""
        if stops == self.stops:
            return set()
        return {
            offer.place
            for offer in map(self._at, {**self._here, **self._declared})
            if offer is not None
            and offer.is_stopped(stops) is not offer.is_stopped(self.stops)
        }

    def missing_overlays(self) -> list[Place]:
        """Return what code declares without a row for what staff may change."""
        return [place for place in self._declared if place not in self._overlays]

    # -- rows -------------------------------------------------------------------

    def _load_rows(self, refs: Mapping[str, Iterable[str]]) -> set[Place]:
        """Load what changed, and return the places where something may be new."""
        rows = dict(self._rows)
        changed = dict(self._changed(refs))
        gone = [rows.pop(key) for key in changed if key in rows]
        loaded = {
            each.key: self._offer(each, changed[each.key])
            for each in stored.load(
                self._registry, [key for key, now in changed.items() if now]
            )
        }
        if not gone and not loaded:
            return set()
        rows.update(loaded)
        here, overlays = dict(self._here), dict(self._overlays)
        for offer in gone:
            by_place = overlays if offer.overlay else here
            if by_place.get(offer.place) is offer:
                del by_place[offer.place]
        for offer in loaded.values():
            (overlays if offer.overlay else here)[offer.place] = offer
        self._rows, self._here, self._overlays = rows, here, overlays
        return {offer.place for offer in (*gone, *loaded.values())}

    def _changed(
        self, refs: Mapping[str, Iterable[str]]
    ) -> Iterator[tuple[Key, ServedVersion | None]]:
        """Yield the rows that are served in another version now, or no more."""
        for kind, names in refs.items():
            now = stored.served_versions(kind, names, stopped=True)
            known = _named(self._rows, kind, names)
            for key in (*known, *(key for key in now if key not in known)):
                before = known[key].version if key in known else None
                if now.get(key) != before:
                    yield key, now.get(key)

    def _offer(self, each: stored.Stored, version: ServedVersion | None) -> _Offer:
        version = version or (None, True)
        off = not version[1]
        if isinstance(each, StoredOverlay):
            return self._overlay(each, version)
        run = self._runnable(each)
        name, make = _LISTS[type(each.definition)]
        if run is None:
            identity = each.key[1]
            return _Offer((name, f"\n{identity}"), None, each.key, version)
        entry = make(each.definition, run)
        entry.version, entry.key = each.version, each.key
        return _Offer((name, entry.identity), entry, each.key, version, off=off)

    def _overlay(self, each: StoredOverlay, version: ServedVersion) -> _Offer:
        place = (_LIST_OF_KIND[each.key[0]], each.identity)
        declared = self._declared.get(place)
        entry = None
        if declared is not None and declared.entry is not None:
            _, make = _LISTS[type(declared.entry.definition)]
            definition = overlaid(declared.entry.definition, each.content)
            entry = make(definition, declared.entry.runnable)
            entry.version, entry.key = each.version, each.key
        off = not each.enabled
        return _Offer(place, entry, each.key, version, overlay=True, off=off)

    def _runnable(self, each: StoredDefinition[Definition]) -> Runnable[Any] | None:
        """Return what runs behind a row; None where it cannot be served here."""
        kind = self._kinds.get(each.kind)
        if kind is None:
            logger.warning("%s is left out: there is no kind %r.", each.row, each.kind)
            return None
        try:
            return kind.runnable(each.definition, each.config, each.uploads)
        except KindError as error:
            logger.warning("%s is left out: %s", each.row, error.message)
            return None

    # -- servers ----------------------------------------------------------------

    def _catalog(self, server: ServerDefinition, touched: set[Place]) -> Catalog:
        known = self.by_slug.get(server.slug)
        if known is None or known.server != server:
            return self._new(server)
        offered: _Entries = {}
        stopped: _Entries = {}
        for place in touched:
            name, identity = place
            entry, off = self._offered(place, server)
            offered.setdefault(name, {})[identity] = None if off else entry
            stopped.setdefault(name, {})[identity] = entry if off else None
        return known.changed(offered, stopped)

    def _new(self, server: ServerDefinition) -> Catalog:
        lists: dict[str, list[Any]] = {name: [] for name in snapshot.LISTS}
        stopped: _Entries = {name: {} for name in snapshot.LISTS}
        for place in {**self._here, **self._declared}:
            name, identity = place
            entry, off = self._offered(place, server)
            if entry is not None and off:
                stopped[name][identity] = entry
            elif entry is not None:
                lists[name].append(entry)
        return Catalog(server, completers=self._completers, stopped=stopped, **lists)

    def _offered(
        self, place: Place, server: ServerDefinition
    ) -> tuple[Entry[Any, Any] | None, bool]:
        """Return what a server has at a place, and whether that is switched off."""
        offer = self._at(place)
        if offer is None:
            return None, False
        return offer.on(server), offer.is_stopped(self.stops)

    def _at(self, place: Place) -> _Offer | None:
        """Return what has a name: a row never hides what code declares."""
        if place in self._declared:
            return self._overlays.get(place) or self._declared[place]
        return self._here.get(place)


def _name(list_name: str, identity: str) -> Key:
    """Return what stops call what is at a place: its kind, and its identity."""
    return stored.LISTS[list_name], identity


def _named(
    rows: Mapping[Key, _Offer], kind: str, refs: Iterable[str]
) -> Mapping[Key, _Offer]:
    if "*" in refs:
        return {key: offer for key, offer in rows.items() if key[0] == kind}
    keys = [(kind, ref) for ref in refs]
    return {key: rows[key] for key in keys if key in rows}


def _declarations(registry: Registry) -> Iterator[tuple[Definition, Runnable[Any]]]:
    makers: list[tuple[Mapping[str, Any], Callable[[RegisteredFunction], Any]]] = [
        (registry.tools, RegisteredFunction.tool_runnable),
        (registry.resources, RegisteredFunction.resource_runnable),
        (registry.templates, RegisteredFunction.resource_runnable),
        (registry.prompts, RegisteredFunction.prompt_runnable),
    ]
    for declarations, make in makers:
        for declared in declarations.values():
            yield declared.definition, make(declared.function)


def _declared(declaration: tuple[Definition, Runnable[Any]]) -> _Offer:
    definition, run = declaration
    name, make = _LISTS[type(definition)]
    entry = make(definition, run)
    return _Offer((name, entry.identity), entry)


def _completers(registry: Registry) -> dict[tuple[str, str], Runnable[Completion]]:
    return {
        reference: function.completion_runnable()
        for reference, function in registry.completers.items()
    }
