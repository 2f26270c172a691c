"""Everything that lint says of a site: of its code, its rows and its servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mcp_app import kinds
from mcp_app.catalog import stored
from mcp_app.catalog.lint import Finding, server_findings
from mcp_app.catalog.registered import Declared
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.stored import StoredDefinition
from mcp_app.interface.definitions import Definition
from mcp_app.interface.server import ServerDefinition


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A finding, and where it is.

    `source` is the name of the function in code, or "tool 12" for a row.
    """

    about: Definition | ServerDefinition
    source: str
    finding: Finding
    in_code: bool = False


def code_findings(registry: Registry) -> Iterator[Surveyed]:
    """Yield what lint says of the definitions that code declares."""
    for each in _declared(registry):
        source = each.function.qualified_name
        for finding in kinds.findings(each.definition, registry=registry):
            yield Surveyed(each.definition, source, finding, in_code=True)


def row_findings(registry: Registry) -> Iterator[Surveyed]:
    """Yield what lint says of servers, and of the rows that they offer; blocks."""
    seen: set[str] = set()
    for server in stored.load_servers().values():
        rows = stored.load(server.slug, registry)
        declared = (each.definition for each in _declared(registry))
        offered = [each for each in declared if server.offers(each.tags)]
        offered.extend(row.definition for row in rows)
        for finding in server_findings(server, offered):
            yield Surveyed(server, f"server {server.slug}", finding)
        # What several servers offer is looked at once.
        new = [row for row in rows if row.row not in seen]
        seen.update(row.row for row in new)
        for row in new:
            yield from _row_findings(row, registry)


def _row_findings(
    row: StoredDefinition[Definition], registry: Registry
) -> Iterator[Surveyed]:
    found = kinds.findings(row.definition, row.kind, row.config, row.uploads, registry)
    for finding in found:
        yield Surveyed(row.definition, row.row, finding)


def _declared(registry: Registry) -> Iterator[Declared[Any]]:
    lists: tuple[Mapping[str, Declared[Any]], ...] = (
        registry.tools,
        registry.resources,
        registry.templates,
        registry.prompts,
    )
    return chain.from_iterable(declared.values() for declared in lists)
