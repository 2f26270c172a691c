"""Rows as definitions: what staff published, ready for a snapshot.

No other module of the catalog reads rows of definitions.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar, cast

from django.db import models

from mcp_app.catalog.stops import Halt, Stops
from mcp_app.interface.definitions import (
    APPROVERS,
    EMPTY_SCHEMA,
    Approval,
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
    annotations_from_json,
    arguments_from_json,
    icons_from_json,
    suggestions_from_json,
)
from mcp_app.interface.rules import AccessRequirements, read_requirements
from mcp_app.interface.server import Key, Selection, ServerDefinition, ToolList
from mcp_app.models import (
    Blob,
    DefinitionRow,
    EventType,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Stop,
    Tool,
)
from mcp_app.models.changes import ANY
from mcp_app.models.definitions import AS_TEXT, Source
from mcp_app.models.fields import DEMANDS, split_lines, split_words
from mcp_app.models.stops import Running, Scope, is_stopped
from mcp_app.protocol.content import Icon
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import FORBIDDEN

logger = logging.getLogger("mcp_app")

Defined_co = TypeVar("Defined_co", bound=Definition, covariant=True)

DEFINITION_ROWS: tuple[type[DefinitionRow], ...]
DEFINITION_ROWS = (Tool, Resource, ResourceTemplate, Prompt, EventType)
MODELS: Mapping[str, type[DefinitionRow]] = {
    str(model._meta.model_name): model for model in DEFINITION_ROWS
}
"""The models of definitions, by the kind's name in changes and versions."""
NO_GROUP = ""
"""A name that no group has."""
ROW_BATCH_SIZE = 500
"""Rows that one statement reads by their keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDefinition(Generic[Defined_co]):
    """A definition with what its kind needs; `key` names the row.

    `uploads` holds the uploaded content that the config names, by digest.
    """

    definition: Defined_co
    kind: str
    config: JsonObject
    key: Key
    uploads: Mapping[str, bytes] = field(default_factory=dict)
    version: int = 0
    """The number of the published version; 0 for a working copy."""
    stated: frozenset[str] = frozenset()
    """The columns that have values in the row: its kind completes only the others."""

    @property
    def row_label(self) -> str:
        """The row as log messages name it."""
        return " ".join(self.key)


@dataclass(frozen=True, slots=True)
class StoredOverlay:
    """What staff published about a definition that code declares.

    `identity` is its name or URI in code.
    """

    key: Key
    identity: str
    content: JsonObject
    version: int = 0


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that cannot be read; `reason` is a sentence for staff."""

    key: Key
    reason: str


StoredRow: TypeAlias = StoredDefinition[Definition] | StoredOverlay
ServedVersion: TypeAlias = int
"""The primary key of a version; 0 for an overlay without one."""


def load_servers(*, stopped: bool = True) -> dict[str, ServerDefinition]:
    """Return the published servers by slug.

    If not `stopped`, servers that people have stopped are left out.
    """
    rows = Server.objects.filter(published__isnull=False).select_related("published")
    if not stopped:
        rows = rows.filter(~is_stopped(Server))
    return {row.slug: server_definition(row, row.published_content()) for row in rows}


def load_stops() -> Stops:
    """Return what is stopped now; takes one statement."""
    scopes: dict[str, list[Halt]] = {}
    rows: dict[Key, list[Halt]] = {}
    names: dict[Key, list[Halt]] = {}
    columns = ("scope", "kind", "ref", "served", "pk", "running")
    stops = Stop.objects.on().values_list(*columns)
    for scope, kind, ref, served, pk, running in stops:
        halt = Halt(pk, running == Running.CANCEL)
        if not kind:
            scopes.setdefault(scope, []).append(halt)
            continue
        rows.setdefault((kind, ref), []).append(halt)
        names.setdefault((kind, served), []).append(halt)
    return Stops(
        everything=tuple(scopes.get(Scope.EVERYTHING, ())),
        changes=tuple(scopes.get(Scope.CHANGES, ())),
        rows={key: tuple(each) for key, each in rows.items()},
        names={name: tuple(each) for name, each in names.items()},
    )


def served_versions(
    kind: str, refs: Iterable[str] = (ANY,)
) -> dict[Key, ServedVersion]:
    """Return the served versions of a kind's rows; `*` in `refs` means all rows.

    Stopped rows are among them.
    """
    # Overlays without a version count, too, because they may be stopped.
    may_be_served = models.Q(source=Source.CODE) | models.Q(published__isnull=False)
    rows = MODELS[kind]._default_manager.order_by().filter(may_be_served)
    versions: list[tuple[int, int | None]] = []
    for keys in _key_batches(None if ANY in refs else refs):
        batch_rows = rows if keys is None else rows.filter(pk__in=keys)
        versions += batch_rows.values_list("pk", "published_id")
    return {(kind, str(pk)): version or 0 for pk, version in versions}


def load_rows(keys: Iterable[Key]) -> list[StoredRow | UnreadableRow]:
    """Return these rows as they were published, with two statements for 500 rows.

    A row that cannot be read is logged; the others are returned all the same.
    """
    by_kind: dict[str, list[str]] = {}
    for kind, ref in keys:
        by_kind.setdefault(kind, []).append(ref)
    loaded: list[StoredRow | UnreadableRow] = []
    for kind, refs in by_kind.items():
        rows = MODELS[kind]._default_manager.select_related("published").order_by()
        for batch in _key_batches(refs):
            loaded += _read_rows(rows.filter(pk__in=batch))
    return loaded


def _key_batches(refs: Iterable[str] | None) -> Iterator[list[int] | None]:
    """Yield the primary keys in `refs` in batches; yield None if `refs` is None."""
    if refs is None:
        yield None
        return
    keys = [int(ref) for ref in refs if ref.isascii() and ref.isdigit()]
    for start in range(0, len(keys), ROW_BATCH_SIZE):
        yield keys[start : start + ROW_BATCH_SIZE]


def stored_definition(row: DefinitionRow) -> StoredDefinition[Definition]:
    """Return a working copy as a definition; ValueError if its columns do not fit.

    The kind of the row has not completed it yet.
    """
    content = row.working_content()
    return definition_of(_key_of_row(row), content, uploads_of(content))


def definition_of(
    key: Key, content: JsonObject, uploads: Mapping[str, bytes]
) -> StoredDefinition[Definition]:
    """Return a row's content as a definition; ValueError if it does not fit."""
    config = content.get("config") or {}
    return StoredDefinition(
        definition=_read_definition(key[0], content),
        kind=str(content.get("kind", "text")),
        config=config,
        key=key,
        uploads={n: uploads[n] for n in _upload_digests(config) if n in uploads},
        stated=frozenset(n for n, value in content.items() if value not in (None, {})),
    )


def uploads_of(content: JsonObject) -> Mapping[str, bytes]:
    """Return the uploaded content that a row's content names."""
    return _load_uploads([content])


def _read_rows(rows: Iterable[DefinitionRow]) -> Iterator[StoredRow | UnreadableRow]:
    contents = {row: row.published_content() for row in rows}
    uploads = _load_uploads(contents.values())
    for row, content in contents.items():
        key = _key_of_row(row)
        version = 0 if row.published is None else row.published.number
        if row.from_code:
            yield StoredOverlay(key, row.identity, content, version)
            continue
        try:
            yield replace(definition_of(key, content, uploads), version=version)
        except ValueError as error:
            logger.warning("The %s %r is not served: %s", key[0], row.name, error)
            yield UnreadableRow(key, str(error))


def _key_of_row(row: DefinitionRow) -> Key:
    return row.kind_of_row, str(row.pk)


def _load_uploads(contents: Iterable[JsonObject]) -> Mapping[str, bytes]:
    digests = {name for content in contents for name in digests_of(content)}
    if not digests:
        return {}
    blobs = Blob.objects.in_bulk(list(digests))
    return {name: bytes(blob.content) for name, blob in blobs.items()}


def digests_of(content: JsonObject) -> Iterator[str]:
    """Yield the digests of the uploads that a row's content names."""
    yield from _upload_digests(content.get("config"))


def _upload_digests(config: object) -> Iterator[str]:
    """Yield the values of members called `"upload"`, at any depth."""
    if isinstance(config, dict):
        upload = config.get("upload")
        if isinstance(upload, str):
            yield upload
        config = list(config.values())
    if isinstance(config, list):
        for inner in config:
            yield from _upload_digests(inner)


def tags_of(content: JsonObject) -> frozenset[str]:
    """Return the tags of a definition's content."""
    return frozenset(split_words(content.get("tags", "")))


def demands_of(content: Mapping[str, Any]) -> AccessRequirements:
    """Return what a row demands; the content has the columns by their names."""
    values = {name: content.get(name) or "" for name in DEMANDS}
    groups = split_lines(values["groups"])
    if values["groups"] and not groups:
        # The groups cannot be read: demand a group in which nobody is.
        groups = (NO_GROUP,)
    return read_requirements({**values, "groups": groups})


def _description_columns(content: JsonObject) -> dict[str, Any]:
    return {
        "name": content.get("name", ""),
        "title": content.get("title", ""),
        "description": content.get("description", ""),
        "icons": icons_from_json(content.get("icons") or []),
        "demands": demands_of(content),
        "timeout": content.get("timeout"),
        "tags": tags_of(content),
        "position": content.get("position", 0),
    }


def _readable_columns(content: JsonObject) -> dict[str, Any]:
    annotations = content.get("annotations")
    return {
        **_description_columns(content),
        "mime_type": content.get("mime_type", ""),
        "annotations": annotations_from_json(annotations) if annotations else None,
        "ttl_ms": content.get("ttl_ms", 0),
        "public": content.get("public", False),
    }


def hints_of(content: JsonObject, inherited: ToolHints | None = None) -> ToolHints:
    """Return the hints of a tool's content; those that it lacks are inherited."""
    hints = {name: content[name] for name in _HINTS if name in content}
    return replace(inherited or ToolHints(), **hints)


def hidden_values_of(content: JsonObject) -> Collection[str] | None:
    """Return the parameters whose values are not kept; None if no values are kept."""
    if not content.get("keeps_values"):
        return None
    return split_lines(content.get("hidden_values", ""))


def approval_of(
    content: JsonObject, declared: Approval | None = None
) -> Approval | None:
    """Return who must agree: the choice of code, or that of staff if it is stricter.

    If staff are stricter, every call waits: the code's `when` does not count.
    """
    levels: tuple[Any, ...] = ("", *APPROVERS)
    by = content.get("approval", "")
    # A value that only another release knows counts as the strictest.
    by = by if by in levels else levels[-1]
    # Staff may only choose a stricter level than the code.
    if by in levels[: levels.index(declared.by if declared else "") + 1]:
        return declared
    return replace(declared or Approval(by=by), by=by, when=None)


def app_of(content: JsonObject, declared: str) -> str:
    """Return the page that shows a tool's answers: the content's, else the code's."""
    app: str = content.get("app", declared)
    return "" if app == AS_TEXT else app


_HINTS = ("read_only", "destructive", "idempotent", "open_world")


def _read_definition(kind: str, content: JsonObject) -> Definition:
    if kind == "tool":
        return ToolDefinition(
            **_description_columns(content),
            input_schema=content.get("input_schema") or EMPTY_SCHEMA,
            output_schema=content.get("output_schema"),
            hints=hints_of(content),
            calls_per_minute=content.get("calls_per_minute"),
            hidden_values=hidden_values_of(content),
            task=content.get("task") or FORBIDDEN,
            app=app_of(content, ""),
            approval=approval_of(content),
        )
    if kind == "prompt":
        arguments = arguments_from_json(content.get("arguments") or [])
        return PromptDefinition(**_description_columns(content), arguments=arguments)
    if kind == "eventtype":
        return EventDefinition(**_description_columns(content))
    columns = _readable_columns(content)
    if kind == "resource":
        uri, size = content.get("uri", ""), content.get("size")
        return ResourceDefinition(**columns, uri=uri, size=size)
    template = content.get("uri_template", "")
    texts = suggestions_from_json(content.get("suggestions") or {})
    return ResourceTemplateDefinition(
        **columns, uri_template=template, suggestions=texts
    )


def server_definition(
    row: Server, content: JsonObject | None = None
) -> ServerDefinition:
    """Return a server with this content; without one, with the working copy's."""
    if content is None:
        content = row.working_content()
    return ServerDefinition(
        slug=row.slug,
        title=content.get("title", ""),
        description=content.get("description", ""),
        instructions=content.get("instructions", ""),
        version=content.get("version", ""),
        website_url=content.get("website_url", ""),
        icons=_server_icons(row.slug, content),
        access=row.access_names,
        listed=row.listed,
        demands=demands_of({name: getattr(row, name) for name in DEMANDS}),
        page_size=row.page_size,
        selection=cast("Selection", content.get("selection", "all")),
        tags=tags_of(content),
        chosen=frozenset(
            (LISTS[name], str(pk))
            for name, keys in content.get("chosen", {}).items()
            if name in LISTS
            for pk in keys
        ),
        listing=cast("ToolList", content.get("listing", "all")),
        listed_tags=frozenset(split_words(content.get("listed_tags", ""))),
        key=(row.kind_of_row, str(row.pk)),
    )


LISTS: Mapping[str, str] = {
    "tools": "tool",
    "resources": "resource",
    "templates": "resourcetemplate",
    "prompts": "prompt",
    "events": "eventtype",
}
"""The lists of a server, and the kind of the rows in each."""


def _server_icons(slug: str, content: JsonObject) -> tuple[Icon, ...]:
    try:
        return icons_from_json(content.get("icons") or [])
    except ValueError as error:
        logger.warning("The server %r is served without icons: %s", slug, error)
        return ()


# -- overlays --------------------------------------------------------------------------
# Definitions that code declares, with the changes that staff made to them.

AnyDefinition = TypeVar("AnyDefinition", bound=Definition)

_REPLACED = ("title", "description", "timeout", "position")


def apply_overlay(definition: AnyDefinition, content: JsonObject) -> AnyDefinition:
    """Return a definition from code with the published content of its overlay.

    Members that the content lacks stay as in code.  Demands are added to the code's.
    """
    changes: dict[str, Any] = {
        name: content[name] for name in _REPLACED if name in content
    }
    if "tags" in content:
        changes["tags"] = tags_of(content)
    demands = definition.demands.combined_with(demands_of(content))
    if demands != definition.demands:
        changes["demands"] = demands
    if isinstance(definition, ToolDefinition):
        changes["hints"] = hints_of(content, definition.hints)
        limit = definition.calls_per_minute
        changes["calls_per_minute"] = content.get("calls_per_minute", limit)
        changes["hidden_values"] = hidden_values_of(content)
        changes["task"] = content.get("task", definition.task)
        changes["app"] = app_of(content, definition.app)
        changes["approval"] = approval_of(content, definition.approval)
    return replace(definition, **changes)
