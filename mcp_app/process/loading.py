"""Building catalogs: what code declares and what rows store, made runnable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from mcp_app.catalog import snapshot, stored
from mcp_app.catalog.registered import RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import Catalog, Entry
from mcp_app.catalog.stored import StoredDefinition
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.results import Completion
from mcp_app.interface.server import ServerDefinition
from mcp_app.kinds import Kind, KindError, kinds_of

logger = logging.getLogger("mcp_app.catalog")

Make = Callable[[Any, Runnable[Any]], Entry[Any, Any]]

_LISTS: Mapping[type[Definition], tuple[str, Make]] = {
    ToolDefinition: ("tools", snapshot.tool_entry),
    ResourceDefinition: ("resources", snapshot.resource_entry),
    ResourceTemplateDefinition: ("templates", snapshot.template_entry),
    PromptDefinition: ("prompts", snapshot.prompt_entry),
}


def load_catalogs(registry: Registry) -> dict[str, Catalog]:
    """Return the catalog of each server that is switched on; blocks."""
    return {
        slug: _catalog(server, registry)
        for slug, server in stored.load_servers().items()
        if server.enabled
    }


def _catalog(server: ServerDefinition, registry: Registry) -> Catalog:
    lists: dict[str, dict[str, Entry[Any, Any]]] = {
        name: {} for name, _ in _LISTS.values()
    }
    for each in stored.load(server.slug, registry):
        _add(lists, each.definition, _stored_runnable(each, registry))
    # What code declares comes last: a row of the same name never hides it.
    for definition, run in _declared(server, registry):
        _add(lists, definition, run)
    return Catalog(
        server,
        tools=lists["tools"].values(),  # type: ignore[arg-type]
        resources=lists["resources"].values(),
        templates=lists["templates"].values(),
        prompts=lists["prompts"].values(),
        completers=_completers(registry),
    )


def _add(
    lists: dict[str, dict[str, Entry[Any, Any]]],
    definition: Definition,
    run: Runnable[Any] | None,
) -> None:
    if run is not None:
        name, make = _LISTS[type(definition)]
        entry = make(definition, run)
        lists[name][entry.identity] = entry


def _stored_runnable(
    each: StoredDefinition[Definition], registry: Registry
) -> Runnable[Any] | None:
    """Return what runs behind a row; None where it cannot be served here."""
    kind = kinds_of(registry).get(each.kind)
    if kind is None:
        logger.warning("%s is left out: there is no kind %r.", each.row, each.kind)
        return None
    try:
        return _makers(kind)[type(each.definition)](
            each.definition, each.config, each.uploads
        )
    except KindError as error:
        logger.warning("%s is left out: %s", each.row, error.message)
        return None


def _makers(kind: Kind) -> Mapping[type[Definition], Callable[..., Runnable[Any]]]:
    return {
        ToolDefinition: kind.tool,
        ResourceDefinition: kind.resource,
        ResourceTemplateDefinition: kind.template,
        PromptDefinition: kind.prompt,
    }


def _declared(
    server: ServerDefinition, registry: Registry
) -> list[tuple[Definition, Runnable[Any]]]:
    makers: list[tuple[Mapping[str, Any], Callable[[RegisteredFunction], Any]]] = [
        (registry.tools, RegisteredFunction.tool_runnable),
        (registry.resources, RegisteredFunction.resource_runnable),
        (registry.templates, RegisteredFunction.resource_runnable),
        (registry.prompts, RegisteredFunction.prompt_runnable),
    ]
    return [
        (declared.definition, make(declared.function))
        for declarations, make in makers
        for declared in declarations.values()
        if server.offers(declared.definition.tags)
    ]


def _completers(registry: Registry) -> dict[tuple[str, str], Runnable[Completion]]:
    return {
        reference: function.completion_runnable()
        for reference, function in registry.completers.items()
    }
