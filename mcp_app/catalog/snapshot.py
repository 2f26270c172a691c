"""The catalog: the immutable snapshot of what one server offers, in one process.

Validators and encodings are made at first use and kept with their entry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, TypeVar

import orjson

from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.scalars import scalar_of
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.results import Completion, PromptOutput, ToolOutput
from mcp_app.interface.server import ServerDefinition
from mcp_app.protocol import jsonrpc, listing, results, schemas
from mcp_app.protocol.headers import MirroredParameter, mirrored_parameters
from mcp_app.protocol.jsonrpc import JsonObject
from mcp_app.protocol.revisions import Revision
from mcp_app.protocol.uri_templates import UriTemplate

Defined = TypeVar("Defined", bound=Definition)
Output = TypeVar("Output")
Place = tuple[int, str]

LONGEST_PLACE = 128
"""Characters of a place's text: URIs are longer than a cursor may be."""
DIGEST_OF_PLACE = 32


def _short(text: str) -> str:
    """Return a text that fits into a cursor; different ones stay different."""
    if len(text) <= LONGEST_PLACE:
        return text
    digest = sha256(text.encode()).hexdigest()[:DIGEST_OF_PLACE]
    return text[: LONGEST_PLACE - DIGEST_OF_PLACE] + digest


@dataclass(slots=True, eq=False)
class Entry(Generic[Defined, Output]):
    """A definition, what runs behind it, and what was made of both so far."""

    definition: Defined
    identity: str
    """The name, URI or template that is unique in its list."""
    runnable: Runnable[Output]
    _show: Callable[[Defined, Revision], JsonObject]
    _encoded: dict[str, bytes] = field(default_factory=dict)
    _validator: schemas.Validator | None = None
    _output_validator: schemas.Validator | None = None
    _mirrored: tuple[MirroredParameter, ...] | None = None

    @property
    def place(self) -> Place:
        """Where lists have it: by position, then by name."""
        definition = self.definition
        if definition.name == self.identity:
            return definition.position, _short(definition.name)
        return definition.position, _short(f"{definition.name}\n{self.identity}")

    def encoded(self, revision: Revision) -> bytes:
        """Return the definition as JSON text for a list of that revision."""
        version = revision.version
        text = self._encoded.get(version)
        if text is None:
            text = jsonrpc.write(self._show(self.definition, revision))
            self._encoded[version] = text
        return text


@dataclass(slots=True, eq=False)
class ToolEntry(Entry[ToolDefinition, ToolOutput]):
    """A tool with its validators."""

    scalar: type | None = None
    """The type whose values surely fit the output schema, if there is one."""

    @property
    def validator(self) -> schemas.Validator:
        if self._validator is None:
            self._validator = schemas.compile(self.definition.input_schema)
        return self._validator

    @property
    def output_validator(self) -> schemas.Validator | None:
        schema = self.definition.output_schema
        if self._output_validator is None and schema is not None:
            self._output_validator = schemas.compile(schema)
        return self._output_validator

    @property
    def mirrored(self) -> tuple[MirroredParameter, ...]:
        """Parameters that HTTP headers repeat (`x-mcp-header`)."""
        if self._mirrored is None:
            self._mirrored = mirrored_parameters(self.definition.input_schema)
        return self._mirrored


ResourceEntry = Entry[ResourceDefinition, object]
TemplateEntry = Entry[ResourceTemplateDefinition, object]
PromptEntry = Entry[PromptDefinition, PromptOutput]


def tool_entry(definition: ToolDefinition, run: Runnable[ToolOutput]) -> ToolEntry:
    entry = ToolEntry(definition, definition.name, run, listing.tool)
    entry.scalar = scalar_of(definition.output_schema)
    return entry


def resource_entry(
    definition: ResourceDefinition, run: Runnable[object]
) -> ResourceEntry:
    return Entry(definition, definition.uri, run, listing.resource)


def template_entry(
    definition: ResourceTemplateDefinition, run: Runnable[object]
) -> TemplateEntry:
    return Entry(definition, definition.uri_template, run, listing.resource_template)


def prompt_entry(
    definition: PromptDefinition, run: Runnable[PromptOutput]
) -> PromptEntry:
    return Entry(definition, definition.name, run, listing.prompt)


@dataclass(slots=True, eq=False)
class Page:
    """One page of a list: JSON text of an array, and where the next one begins.

    `result` is the whole encoded result, once somebody has made it.
    """

    items: orjson.Fragment
    next: Place | None
    result: bytes | None = None


class Listing:
    """The entries of one list in their order, page by page."""

    def __init__(self, entries: Iterable[Entry[Any, Any]], page_size: int) -> None:
        self._entries: Sequence[Entry[Any, Any]] = sorted(
            entries, key=lambda entry: entry.place
        )
        self._places = [entry.place for entry in self._entries]
        self._page_size = page_size
        self._pages: dict[tuple[str, int], Page] = {}
        self.restricted = any(entry.definition.permission for entry in self._entries)
        """Whether the list differs from user to user."""

    def __iter__(self) -> Iterable[Entry[Any, Any]]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def page(
        self,
        revision: Revision,
        after: Place | None,
        visible: Callable[[Entry[Any, Any]], bool],
    ) -> Page:
        """Return the page that follows a place; None stands for the beginning."""
        start = 0 if after is None else bisect_right(self._places, after)
        if self.restricted:
            return self._filtered(revision, start, visible)
        key = (revision.version, start)
        page = self._pages.get(key)
        if page is None:
            page = self._made(revision, self._entries[start:])
            # Clients choose the place, so only the places of our own pages are kept.
            if start % self._page_size == 0:
                self._pages[key] = page
        return page

    def first_result(self, revision: Revision) -> bytes | None:
        """Return the encoded result of the first page, where it was made for all."""
        page = self._pages.get((revision.version, 0))
        return None if page is None else page.result

    def _filtered(
        self,
        revision: Revision,
        start: int,
        visible: Callable[[Entry[Any, Any]], bool],
    ) -> Page:
        shown: list[Entry[Any, Any]] = []
        for entry in self._entries[start:]:
            if visible(entry):
                shown.append(entry)
                if len(shown) > self._page_size:
                    break
        return self._made(revision, shown)

    def _made(self, revision: Revision, entries: Sequence[Entry[Any, Any]]) -> Page:
        shown = entries[: self._page_size]
        texts = b",".join([entry.encoded(revision) for entry in shown])
        more = len(entries) > len(shown)
        return Page(
            orjson.Fragment(b"[" + texts + b"]"), shown[-1].place if more else None
        )


@dataclass(frozen=True, slots=True)
class Matched:
    """A resource that a URI names, with the variables of its template."""

    entry: Entry[Any, Any]
    variables: JsonObject


class Catalog:
    """What one server offers; never changed, only replaced."""

    def __init__(
        self,
        server: ServerDefinition,
        *,
        tools: Iterable[ToolEntry] = (),
        resources: Iterable[ResourceEntry] = (),
        templates: Iterable[TemplateEntry] = (),
        prompts: Iterable[PromptEntry] = (),
        completers: Mapping[tuple[str, str], Runnable[Completion]] | None = None,
    ) -> None:
        self.server = server
        self.public = server.public
        self.tools = {entry.identity: entry for entry in tools}
        self.resources = {entry.identity: entry for entry in resources}
        self.templates = {entry.identity: entry for entry in templates}
        self.prompts = {entry.identity: entry for entry in prompts}
        self.completers = dict(completers or {})
        self.listings: Mapping[str, Listing] = {
            "tools": Listing(self.tools.values(), server.page_size),
            "resources": Listing(self.resources.values(), server.page_size),
            "templates": Listing(self.templates.values(), server.page_size),
            "prompts": Listing(self.prompts.values(), server.page_size),
        }
        self.restricted = any(each.restricted for each in self.listings.values())
        self.open = self.public and not self.restricted
        """Whether nobody need say who asks."""
        self._patterns = [
            (UriTemplate.parse(uri_template), entry)
            for uri_template, entry in self.templates.items()
        ]
        self._info: dict[str, orjson.Fragment] = {}
        self._ends: dict[str, bytes] = {}

    def match(self, uri: str) -> Matched | None:
        """Return what a URI names: a resource, else the first template that fits."""
        entry = self.resources.get(uri)
        if entry is not None:
            return Matched(entry, {})
        for pattern, template in self._patterns:
            variables = pattern.match(uri)
            if variables is not None:
                return Matched(template, variables)
        return None

    def result_end(self, revision: Revision) -> bytes:
        """Return the text that ends each object of results: "}", or more before it."""
        end = self._ends.get(revision.version)
        if end is None:
            members = results.complete({}, revision, self.server_info(revision))
            end = b"," + jsonrpc.write(members)[1:] if members else b"}"
            self._ends[revision.version] = end
        return end

    def server_info(self, revision: Revision) -> orjson.Fragment:
        """Return the server's `Implementation`, encoded."""
        version = revision.version
        info = self._info.get(version)
        if info is None:
            shown = revision.keep("implementation", self.server.implementation())
            info = orjson.Fragment(jsonrpc.write(shown))
            self._info[version] = info
        return info
