"""Rows as definitions: what staff made, ready for a snapshot.

No other module of the catalog touches rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast

from mcp_app.catalog.errors import RegistrationError
from mcp_app.interface.decorations import (
    annotations_from_json,
    arguments_from_json,
    icons_from_json,
)
from mcp_app.interface.definitions import (
    EMPTY_SCHEMA,
    Definition,
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.server import Selection, ServerDefinition
from mcp_app.models import (
    Blob,
    DefinitionRow,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.models.definitions import ReadableRow
from mcp_app.models.listings import words
from mcp_app.protocol.content import Annotations, Icon
from mcp_app.protocol.jsonrpc import JsonObject

if TYPE_CHECKING:
    from mcp_app.catalog.registry import RegisteredFunction, Registry

logger = logging.getLogger("mcp_app")

Defined_co = TypeVar("Defined_co", bound=Definition, covariant=True)

DEFINITION_ROWS: tuple[type[DefinitionRow], ...] = (
    Tool,
    Resource,
    ResourceTemplate,
    Prompt,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDefinition(Generic[Defined_co]):
    """A definition with what its kind needs; `row` names the row in messages.

    `uploads` holds the uploaded content that the config names, by digest.
    """

    definition: Defined_co
    kind: str
    config: JsonObject
    row: str
    uploads: Mapping[str, bytes] = field(default_factory=dict)


def load_servers() -> dict[str, ServerDefinition]:
    """Return all servers by slug, those that are switched off included."""
    return {row.slug: server_definition(row) for row in Server.objects.all()}


def load(server_slug: str, registry: Registry) -> list[StoredDefinition[Definition]]:
    """Return what staff have switched on for a server; six statements at most.

    A row that cannot be read is left out and logged: it never takes others along.
    """
    server = Server.objects.filter(slug=server_slug).first()
    if server is None:
        return []
    offered = server_definition(server).offers
    rows = [
        row
        for model in DEFINITION_ROWS
        for row in _enabled(model)
        if offered(row.tag_names)
    ]
    uploads = _uploads(rows)
    return list(_readable(rows, registry, uploads))


def stored_definition(
    row: DefinitionRow, registry: Registry
) -> StoredDefinition[Definition]:
    """Return one row as a definition; ValueError where its columns do not fit."""
    return _stored(row, registry, _uploads([row]))


def _enabled(model: type[DefinitionRow]) -> Iterable[DefinitionRow]:
    rows = model._default_manager.filter(enabled=True)
    return rows.order_by("position", "name")


def _readable(
    rows: Iterable[DefinitionRow], registry: Registry, uploads: Mapping[str, bytes]
) -> Iterator[StoredDefinition[Definition]]:
    for row in rows:
        try:
            yield _stored(row, registry, uploads)
        except (ValueError, RegistrationError) as error:
            logger.warning(
                "The %s %r is left out: %s", row._meta.model_name, row.name, error
            )


def _stored(
    row: DefinitionRow, registry: Registry, uploads: Mapping[str, bytes]
) -> StoredDefinition[Definition]:
    config = row.json("config") or {}
    function = None
    if row.kind == "function":
        function = registry.functions.get(str(config.get("function")))
    return StoredDefinition(
        definition=_READERS[type(row)](row, function),
        kind=row.kind,
        config=config,
        row=f"{row._meta.model_name} {row.pk}",
        uploads={name: uploads[name] for name in _digests(config) if name in uploads},
    )


def _uploads(rows: Iterable[DefinitionRow]) -> Mapping[str, bytes]:
    digests = {name for row in rows for name in _digests(row.json("config"))}
    if not digests:
        return {}
    blobs = Blob.objects.in_bulk(list(digests))
    return {name: bytes(blob.content) for name, blob in blobs.items()}


def _digests(config: object) -> Iterator[str]:
    """Yield what `"upload"` members name, at any depth."""
    if isinstance(config, dict):
        upload = config.get("upload")
        if isinstance(upload, str):
            yield upload
        config = list(config.values())
    if isinstance(config, list):
        for inner in config:
            yield from _digests(inner)


class _Described(TypedDict):
    name: str
    title: str
    description: str
    icons: tuple[Icon, ...]
    permission: str
    timeout: float | None
    tags: frozenset[str]
    position: int


class _Readable(_Described):
    mime_type: str
    annotations: Annotations | None
    ttl_ms: int
    public: bool


def _described(row: DefinitionRow) -> _Described:
    return {
        "name": row.name,
        "title": row.title,
        "description": row.description,
        "icons": icons_from_json(row.json("icons") or []),
        "permission": row.permission,
        "timeout": row.timeout,
        "tags": row.tag_names,
        "position": row.position,
    }


def _readable_columns(row: ReadableRow) -> _Readable:
    annotations = row.json("annotations")
    return {
        **_described(row),
        "mime_type": row.mime_type,
        "annotations": annotations_from_json(annotations) if annotations else None,
        "ttl_ms": row.ttl_ms,
        "public": row.public,
    }


def _tool(row: Tool, function: RegisteredFunction | None) -> ToolDefinition:
    input_schema, output_schema = row.json("input_schema"), row.json("output_schema")
    if function is not None:
        input_schema = input_schema or function.signature.input_schema
        output_schema = output_schema or function.signature.output_schema
    return ToolDefinition(
        **_described(row),
        input_schema=input_schema or EMPTY_SCHEMA,
        output_schema=output_schema,
        hints=ToolHints(
            read_only=row.read_only,
            destructive=row.destructive,
            idempotent=row.idempotent,
            open_world=row.open_world,
        ),
    )


def _resource(row: Resource, function: RegisteredFunction | None) -> ResourceDefinition:
    return ResourceDefinition(**_readable_columns(row), uri=row.uri, size=row.size)


def _template(
    row: ResourceTemplate, function: RegisteredFunction | None
) -> ResourceTemplateDefinition:
    return ResourceTemplateDefinition(
        **_readable_columns(row), uri_template=row.uri_template
    )


def _prompt(row: Prompt, function: RegisteredFunction | None) -> PromptDefinition:
    given = row.json("arguments")
    if given is None and function is not None:
        arguments = _signature_arguments(function.signature.input_schema)
    else:
        arguments = arguments_from_json(given or [])
    return PromptDefinition(**_described(row), arguments=arguments)


def _signature_arguments(schema: Mapping[str, Any]) -> tuple[PromptArgument, ...]:
    required = schema.get("required", ())
    return tuple(
        PromptArgument(
            name=name,
            title=str(about.get("title", "")),
            description=str(about.get("description", "")),
            required=name in required,
        )
        for name, about in schema.get("properties", {}).items()
    )


_READERS: Mapping[type[DefinitionRow], Callable[..., Definition]] = {
    Tool: _tool,
    Resource: _resource,
    ResourceTemplate: _template,
    Prompt: _prompt,
}


def server_definition(row: Server) -> ServerDefinition:
    """Return one server's row as a definition."""
    return ServerDefinition(
        slug=row.slug,
        title=row.title,
        description=row.description,
        instructions=row.instructions,
        version=row.version,
        website_url=row.website_url,
        icons=_server_icons(row),
        access=row.access_names,
        page_size=row.page_size,
        enabled=row.enabled,
        selection=cast("Selection", row.selection),
        tags=frozenset(words(row.tags)),
    )


def _server_icons(row: Server) -> tuple[Icon, ...]:
    try:
        return icons_from_json(row.json("icons") or [])
    except ValueError as error:
        logger.warning("The server %r has no icons: %s", row.slug, error)
        return ()
