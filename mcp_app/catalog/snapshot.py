"""The catalog: the immutable snapshot of what one server offers, in one process.

Validators and encodings are made at first use and kept with their entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import orjson

from mcp_app.catalog.apps import our_apps
from mcp_app.catalog.registered_function import PlainTool, plain_tool
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.type_hints import scalar_of
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.principal import Scope
from mcp_app.interface.questions import Completion, PromptOutput, ToolOutput
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.interface.server import Key, ServerDefinition
from mcp_app.protocol import jsonrpc, results, schemas
from mcp_app.protocol.apps import is_app
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.headers import MirroredParameter, mirrored_parameters
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import Revision
from mcp_app.protocol.schema_graph import secret_members
from mcp_app.protocol.skills import SKILL_FILE, Skill
from mcp_app.protocol.uri_templates import UriTemplate

AnyDefinition = TypeVar("AnyDefinition", bound=Definition)
Output = TypeVar("Output")
Place = tuple[int, str]
"""Where an entry is in a sorted list: `Entry.place_in_list`."""

MAX_PLACE_LENGTH = 128
"""Characters of a place's text: URIs are longer than a cursor may be."""
DIGEST_OF_PLACE = 32
MAX_SELECTIONS = 32
"""How many selections of a list are kept, each with its encoded pages."""


@dataclass(slots=True, eq=False)
class Entry(Generic[AnyDefinition, Output]):
    """A definition, its runnable, and what was made from both and kept."""

    definition: AnyDefinition
    identity: str
    """The name, URI or template that is unique in its list."""
    runnable: Runnable[Output]
    _show: Callable[[AnyDefinition, Revision], JsonObject]
    _encoded: dict[str, bytes] = field(default_factory=dict)
    _validator: schemas.Validator | None = None
    _output_validator: schemas.Validator | None = None
    _mirrored: tuple[MirroredParameter, ...] | None = None
    version: int = 0
    """The number of the published version, 0 if it is as in code."""
    key: Key | None = None
    """The row's key, None if only code declares it."""
    completers: Mapping[str, Runnable[Completion]] = field(default_factory=dict)
    """Completes arguments whose suggestions come from data of the site."""
    hidden_values: Collection[str] | None = None
    """Members of arguments that are not kept; None if the call log keeps no values."""

    @property
    def place_in_list(self) -> Place:
        """Its place in lists, which are sorted by position, then by name."""
        text = name = self.definition.name
        if name != self.identity:
            text = f"{name}\n{self.identity}"
        if len(text) > MAX_PLACE_LENGTH:
            # It must fit into a cursor, and different texts must stay different.
            digest = sha256(text.encode()).hexdigest()[:DIGEST_OF_PLACE]
            text = text[: MAX_PLACE_LENGTH - DIGEST_OF_PLACE] + digest
        return self.definition.position, text

    def encoded_text(self, revision: Revision) -> bytes:
        """Return the definition as JSON text for a list of that revision."""
        version = revision.version
        if version not in self._encoded:
            entry = self._show(self.definition, revision)
            self._encoded[version] = jsonrpc.write(entry)
        return self._encoded[version]


@dataclass(slots=True, eq=False)
class ToolEntry(Entry[ToolDefinition, ToolOutput]):
    """A tool with its validators."""

    scalar: type | None = None
    """The type of which all values fit the output schema, if there is such a type."""
    _plain: dict[str, PlainTool | None] = field(default_factory=dict)

    @property
    def validator(self) -> schemas.Validator:
        if self._validator is None:
            self._validator = schemas.compile_schema(self.definition.input_schema)
        return self._validator

    @property
    def output_validator(self) -> schemas.Validator | None:
        schema = self.definition.output_schema
        if self._output_validator is None and schema is not None:
            self._output_validator = schemas.compile_schema(schema)
        return self._output_validator

    @property
    def header_parameters(self) -> tuple[MirroredParameter, ...]:
        """Parameters that HTTP headers repeat (`x-mcp-header`)."""
        if self._mirrored is None:
            self._mirrored = mirrored_parameters(self.definition.input_schema)
        return self._mirrored

    def as_plain_tool(self, revision: Revision) -> PlainTool | None:
        """Return what plain calls of the tool need; None if its calls are not plain."""
        version = revision.version
        if version not in self._plain:
            scalar = self.scalar if revision.structured_content else None
            self._plain[version] = (
                None
                if revision.routing_headers and self.header_parameters
                else plain_tool(self.definition, self.runnable, self.validator, scalar)
            )
        return self._plain[version]


@dataclass(slots=True, eq=False)
class TemplateEntry(Entry[ResourceTemplateDefinition, object]):
    """A resource template with its pattern."""

    _pattern: UriTemplate | None = None

    @property
    def uri_pattern(self) -> UriTemplate:
        if self._pattern is None:
            self._pattern = UriTemplate.parse(self.definition.uri_template)
        return self._pattern


@dataclass(slots=True, eq=False)
class EventEntry(Entry[EventDefinition, Sequence[Occurred]]):
    """An event type; its runnable chooses the events that a subscriber is told.

    The runnable takes what `bind` returns, and the `occurrences` in their order.
    """

    @property
    def validator(self) -> schemas.Validator:
        if self._validator is None:
            self._validator = schemas.compile_schema(self.definition.input_schema)
        return self._validator


ResourceEntry = Entry[ResourceDefinition, object]
PromptEntry = Entry[PromptDefinition, PromptOutput]


def tool_entry(definition: ToolDefinition, run: Runnable[ToolOutput]) -> ToolEntry:
    scalar = scalar_of(definition.output_schema)
    show, hidden = results.tool_to_wire, definition.hidden_values
    if hidden is not None:
        hidden = secret_members(definition.input_schema, hidden)
    return ToolEntry(
        definition, definition.name, run, show, hidden_values=hidden, scalar=scalar
    )


def resource_entry(
    definition: ResourceDefinition, run: Runnable[object]
) -> ResourceEntry:
    return Entry(definition, definition.uri, run, results.resource_to_wire)


def template_entry(
    definition: ResourceTemplateDefinition, run: Runnable[object]
) -> TemplateEntry:
    return TemplateEntry(
        definition, definition.uri_template, run, results.template_to_wire
    )


def prompt_entry(
    definition: PromptDefinition, run: Runnable[PromptOutput]
) -> PromptEntry:
    return Entry(definition, definition.name, run, results.prompt_to_wire)


def event_entry(
    definition: EventDefinition, run: Runnable[Sequence[Occurred]]
) -> EventEntry:
    # The list entry also depends on the transport, so it is made elsewhere.
    return EventEntry(definition, definition.name, run, lambda *_: {})


@dataclass(slots=True, eq=False)
class Page:
    """One page of a list: JSON text of an array, and where the next one begins.

    `result` is the whole encoded result, kept after it is first made.
    """

    items: orjson.Fragment
    next: Place | None
    result: bytes | None = None


class VisibilityKey(NamedTuple):
    """Callers with equal keys see the same entries; `met` are the demands they meet."""

    met: frozenset[AccessRequirements]
    scope: Scope | None


class Listing:
    """The entries of one list in their order, page by page."""

    def __init__(
        self,
        entries: Iterable[Entry[Any, Any]],
        page_size: int,
        also: Iterable[AccessRequirements] = (),
    ) -> None:
        """Show the entries; what callers see depends also on the demands `also`."""
        places = {entry.place_in_list: entry for entry in entries}
        self._places = sorted(places)
        self._entries = [places[place] for place in self._places]
        self._page_size = page_size
        self._pages: dict[tuple[str, int], Page] = {}
        self._selections: dict[VisibilityKey, Listing] = {}
        self._demands = Counter([*map(_entry_demands, self._entries), *also])

    @property
    def is_restricted(self) -> bool:
        """Whether the list differs from user to user."""
        return bool(self.demands)

    @cached_property
    def demands(self) -> frozenset[AccessRequirements]:
        """All demands that a caller must meet to see the whole list."""
        return frozenset(self._demands) - {NO_REQUIREMENTS}

    def visible_part(
        self, by: VisibilityKey, visible: Callable[[Entry[Any, Any]], bool]
    ) -> Listing:
        """Return the part of the list that callers with the key `by` see.

        The parts that were last used are kept.
        """
        if not self.is_restricted and by.scope is None:
            return self
        # Demands of other lists make no difference.
        by = VisibilityKey(by.met & self.demands, by.scope)
        listing = self._selections.pop(by, None)
        if listing is None:
            listing = Listing(filter(visible, self._entries), self._page_size)
            if len(self._selections) >= MAX_SELECTIONS:
                del self._selections[next(iter(self._selections))]
        # `_selections` is in the order of last use.
        self._selections[by] = listing
        return listing

    def with_changes(
        self, old: Iterable[Entry[Any, Any]], new: Iterable[Entry[Any, Any]]
    ) -> Listing:
        """Return the list without the `old` entries and with the `new` ones.

        This copies two lists, and does no other work for entries that stay.
        """
        result = Listing((), self._page_size)
        result._places, result._entries = self._places.copy(), self._entries.copy()
        result._demands = self._demands.copy()
        for entry in old:
            at = bisect_left(result._places, entry.place_in_list)
            del result._places[at], result._entries[at]
            result._demands -= Counter([_entry_demands(entry)])
        for entry in new:
            at = bisect_left(result._places, entry.place_in_list)
            result._places.insert(at, entry.place_in_list)
            result._entries.insert(at, entry)
            result._demands[_entry_demands(entry)] += 1
        return result

    def __iter__(self) -> Iterator[Entry[Any, Any]]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def page_after(self, revision: Revision, after: Place | None) -> Page:
        """Return the page that follows a place; None stands for the beginning."""
        start = self._start_of_page(after)
        key = (revision.version, start)
        if key in self._pages:
            return self._pages[key]
        entries, end = self.entries_after(after)
        texts = b",".join([entry.encoded_text(revision) for entry in entries])
        page = Page(orjson.Fragment(b"[" + texts + b"]"), end)
        # Clients may send any place, so only pages at our own places are kept.
        if start % self._page_size == 0:
            self._pages[key] = page
        return page

    def entries_after(
        self, after: Place | None
    ) -> tuple[Sequence[Entry[Any, Any]], Place | None]:
        """Return the entries of the page after a place, and the place where it ends.

        The place is None if nothing follows.
        """
        start = self._start_of_page(after)
        entries = self._entries[start : start + self._page_size]
        has_next = start + self._page_size < len(self._entries)
        return entries, entries[-1].place_in_list if has_next else None

    def _start_of_page(self, after: Place | None) -> int:
        return 0 if after is None else bisect_right(self._places, after)

    def first_result(self, revision: Revision) -> bytes | None:
        """Return the encoded result of the first page, if it is kept."""
        page = self._pages.get((revision.version, 0))
        return None if page is None else page.result


def _entry_demands(entry: Entry[Any, Any]) -> AccessRequirements:
    demands: AccessRequirements = entry.definition.demands
    return demands


@dataclass(frozen=True, slots=True)
class TemplateMatch:
    """A resource that a URI names, with the variables of its template."""

    entry: Entry[Any, Any]
    variables: JsonObject
    stopped: bool = False
    """Whether people have switched it off."""


OwnTools: TypeAlias = Callable[
    [
        ServerDefinition,
        Sequence[ToolEntry],
        Sequence[EventEntry],
        Sequence[ResourceEntry],
    ],
    Sequence[ToolEntry],
]
"""Makes our own tools for a server that has these tools, event types and skills."""
Changes: TypeAlias = Mapping[str, Mapping[str, Entry[Any, Any] | None]]
"""The new entries of a server by list and identity; None removes an entry."""
LISTS = ("tools", "resources", "templates", "prompts", "events")


class Catalog:
    """What one server offers; never changed, only replaced."""

    tools: Mapping[str, ToolEntry]
    resources: Mapping[str, ResourceEntry]
    templates: Mapping[str, TemplateEntry]
    prompts: Mapping[str, PromptEntry]
    events: Mapping[str, EventEntry]
    stopped: Mapping[str, Mapping[str, Entry[Any, Any]]]
    """The entries that people have switched off, by list and identity: they are looked
    up only if no entry is offered."""

    def __init__(
        self,
        server: ServerDefinition,
        *,
        completers: Mapping[tuple[str, str], Runnable[Completion]] | None = None,
        stopped: Changes | None = None,
        own_tools: OwnTools = lambda *_: (),
        **entries: Iterable[Any],
    ) -> None:
        """Offer the `entries`, by the name of their list."""
        self.server = server
        self._make_own_tools = own_tools
        self.stopped = _merged_entries({}, stopped or {})
        self.public = server.is_public
        self.completers = completers or {}
        for name in LISTS:
            setattr(self, name, _by_identity(entries.get(name, ())))
        self.offered: Mapping[str, Listing] = {
            name: Listing(getattr(self, name).values(), server.page_size)
            for name in LISTS
        }
        """All entries, also tools that clients find only by searching."""
        self._complete_catalog()

    def _complete_catalog(self) -> None:
        self.skills = _skill_entries(self.resources)
        """The resources that are skills."""
        stopped = _skill_entries(self.stopped.get("resources", {}))
        self.has_skills = bool(self.skills or stopped)
        skills = Listing(self.skills.values(), self.server.page_size)
        self.listings = {**self.offered, "skills": skills}
        """What the lists show."""
        self._add_own_tools()
        self._add_own_apps()
        demands = {self.server.demands}
        for listed in self.offered.values():
            demands |= listed.demands
        for entries in self.stopped.values():
            demands.update(map(_entry_demands, entries.values()))
        self.demands = frozenset(demands - {NO_REQUIREMENTS})
        """All demands that a caller must meet to use the server and see all of it."""
        self.restricted = bool(self.demands)
        self.open = self.public and not self.restricted
        """Whether everybody may use it without a sign-in."""
        self.task_tools = frozenset(
            each.identity
            for each in (*self.tools.values(), *self.stopped.get("tools", {}).values())
            if each.definition.can_be_task
        )
        """The tools whose calls can run in the background."""
        self.has_tasks = bool(self.task_tools)
        self.has_events = bool(self.events or self.stopped.get("events"))
        self._info: dict[str, orjson.Fragment] = {}
        self._ends: dict[str, bytes] = {}

    def _add_own_tools(self) -> None:
        tools = [*self.offered["tools"]]
        events = [*self.offered["events"]]
        skills = [*self.skills.values()]
        made = self._make_own_tools(self.server, tools, events, skills)
        extra = {entry.identity: entry for entry in made}
        # Our own tools of an earlier catalog are left out.
        self.tools = {**_by_identity(tools), **extra}
        if not extra:
            return
        listed = (
            tool for tool in tools if self.server.lists_tool(tool.definition.tags)
        )
        visible_tools = Listing(
            [each for each in listed if each.identity not in extra] + [*extra.values()],
            self.server.page_size,
            # A caller who sees no event type does not see the tool that waits for
            # events; one who sees no skill does not see the tool that reads skills.
            self.offered["events"].demands | self.listings["skills"].demands,
        )
        self.listings = {**self.listings, "tools": visible_tools}

    def _add_own_apps(self) -> None:
        """Add our pages that tools show, unless the site has a page of that address."""
        listed, tags = self.offered["resources"], dict[str, frozenset[str]]()
        for tool in self.offered["tools"]:
            if uri := tool.definition.app:
                tags[uri] = tags.get(uri, frozenset()) | tool.definition.tags
        resources: dict[str, ResourceEntry] = _by_identity(listed)
        pages = (resource_entry(*each) for each in our_apps(tags))
        own_pages = [page for page in pages if page.identity not in resources]
        if own_pages:
            resources |= _by_identity(own_pages)
            listing = listed.with_changes((), own_pages)
            self.listings = {**self.listings, "resources": listing}
        self.resources = resources
        self.has_apps = any(
            is_app(page.definition.mime_type) for page in resources.values()
        )

    @property
    def personal_lists(self) -> Sequence[str]:
        """The lists that differ from user to user, by the names that clients know."""
        restricted = [name for name in LISTS if self.listings[name].is_restricted]
        # For clients, the templates belong to the resources.
        names = ("resources" if name == "templates" else name for name in restricted)
        return tuple(dict.fromkeys(names))

    def with_changes(self, changes: Changes, stopped: Changes | None = None) -> Catalog:
        """Return the catalog with some entries replaced; the others are the same.

        `stopped` has entries that are switched off from now on; None switches one on.
        """
        result = copy(self)
        result.stopped = _merged_entries(self.stopped, stopped or {})
        listings = dict(self.offered)
        for name, entries in changes.items():
            before: Mapping[str, Entry[Any, Any]] = getattr(self, name)
            if name in ("tools", "resources"):
                # Without the tools and pages that we add.
                before = {each.identity: each for each in self.offered[name]}
            differing = {
                identity: entry
                for identity, entry in entries.items()
                if entry is not before.get(identity)
            }
            if differing:
                old = [before[identity] for identity in differing if identity in before]
                new = filter(None, differing.values())
                listings[name] = listings[name].with_changes(old, new)
                setattr(result, name, _replace_entries(before, differing))
        same = all(listings[name] is self.offered[name] for name in LISTS)
        if same and result.stopped == self.stopped:
            return self
        result.offered = listings
        result._complete_catalog()
        return result

    def matches_of_uri(self, uri: str) -> Iterator[TemplateMatch]:
        """Yield what a URI may name: a resource, skills' files, templates that fit.

        Switched-off entries are among them, so that no other entry answers instead.
        """
        entry = self.resources.get(uri)
        stopped = self.stopped.get("resources", {}).get(uri)
        if entry is not None:
            yield TemplateMatch(entry, {})
        elif stopped is not None:
            yield TemplateMatch(stopped, {}, stopped=True)
        for owner, skill, off in self.skills_around(uri):
            if uri in skill.paths and owner.identity != uri:
                yield TemplateMatch(owner, {"path": skill.paths[uri]}, stopped=off)
        for template in self._templates():
            variables = template.uri_pattern.match(uri)
            if variables is not None:
                off = self.templates.get(template.identity) is not template
                yield TemplateMatch(template, variables, stopped=off)

    def skills_around(self, uri: str) -> Iterator[tuple[ResourceEntry, Skill, bool]]:
        """Yield the skills in whose folder a URI may be, the innermost first.

        The last member of each tuple says whether the skill is switched off.
        """
        stopped = self.stopped.get("resources", {})
        folder = uri if self.has_skills else ""
        while folder:
            address = f"{folder}/{SKILL_FILE}"
            entry = self.resources.get(address) or stopped.get(address)
            if entry is not None and (skill := entry.runnable.skill) is not None:
                yield entry, skill, address not in self.resources
            folder = folder.rpartition("/")[0]

    def _templates(self) -> Iterable[TemplateEntry]:
        listed: Iterable[Entry[Any, Any]] = self.listings["templates"]
        if stopped := self.stopped.get("templates"):
            both = (*listed, *stopped.values())
            listed = sorted(both, key=lambda each: each.place_in_list)
        return cast("Iterable[TemplateEntry]", listed)

    def switched_off(self, name: str, identity: str) -> Entry[Any, Any] | None:
        """Return the switched-off entry of this list and identity, if there is one."""
        return self.stopped.get(name, {}).get(identity)

    def has_switched_off(self, entry: Entry[Any, Any]) -> bool:
        """Whether an entry with this identity and type is switched off."""
        return any(
            entry.identity in entries
            and type(entries[entry.identity].definition) is type(entry.definition)
            for entries in self.stopped.values()
        )

    def result_end(self, revision: Revision) -> bytes:
        """Return the text that ends each result: common members, if any, and "}"."""
        end = self._ends.get(revision.version)
        if end is None:
            members = results.complete_result({}, revision, self.server_info(revision))
            end = b"," + jsonrpc.write(members)[1:] if members else b"}"
            self._ends[revision.version] = end
        return end

    def server_info(self, revision: Revision) -> orjson.Fragment:
        """Return the server's `Implementation`, encoded."""
        version = revision.version
        if version not in self._info:
            implementation = self.server.implementation()
            members = revision.known_members("implementation", implementation)
            self._info[version] = orjson.Fragment(jsonrpc.write(members))
        return self._info[version]


def _skill_entries(entries: Mapping[str, ResourceEntry]) -> dict[str, ResourceEntry]:
    """Return the skills among these resources, as the list of skills shows them."""
    return {
        uri: _skill_entry(entry, skill)
        for uri, entry in entries.items()
        if (skill := entry.runnable.skill) is not None
    }


def _skill_entry(resource: ResourceEntry, skill: Skill) -> ResourceEntry:
    definition, run = resource.definition, resource.runnable
    return Entry(definition, resource.identity, run, lambda *_: skill.entry)


def _by_identity(entries: Iterable[Any]) -> dict[str, Any]:
    return {entry.identity: entry for entry in entries}


def _merged_entries(
    lists: Mapping[str, Mapping[str, Entry[Any, Any]]], changes: Changes
) -> Any:
    """Return entries by list after changes, without empty lists."""
    both = {
        name: _replace_entries(lists.get(name, {}), changes.get(name, {}))
        for name in (*lists, *changes)
    }
    return {name: entries for name, entries in both.items() if entries}


def _replace_entries(
    entries: Mapping[str, Entry[Any, Any]],
    differing: Mapping[str, Entry[Any, Any] | None],
) -> dict[str, Entry[Any, Any]]:
    both = {**entries, **differing}
    return {identity: entry for identity, entry in both.items() if entry is not None}
