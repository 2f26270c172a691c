"""All findings of lint about a site: about its code, its rows and its servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias

from mcp_app import kinds
from mcp_app.catalog import form_urls, row_loader, skill_folders
from mcp_app.catalog.app_lint import page_findings
from mcp_app.catalog.event_types import DeclaredEvent
from mcp_app.catalog.findings import Finding, must_fix
from mcp_app.catalog.lint import server_findings
from mcp_app.catalog.registered_function import Declaration, ReadyFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import (
    StoredDefinition,
    StoredOverlay,
    StoredRow,
    apply_overlay,
)
from mcp_app.interface.definitions import Definition
from mcp_app.interface.server import Key, ServerDefinition

Declared: TypeAlias = Declaration[Any] | DeclaredEvent
"""What code declares."""

_NOT_OF_TOOLSETS: Final = {
    *("deleting-unsaid", "approval-missing", "parameter-description-missing")
}
"""Rules about texts that toolsets make: no developer has written them."""


@dataclass(frozen=True, slots=True)
class SurveyFinding:
    """A finding, and where it is.

    `source` is the name of the function in code, or "tool 12" for a row.  `in_code`
    says whether a developer wrote the text that the finding is about.
    """

    about: Definition | ServerDefinition
    source: str
    finding: Finding
    in_code: bool = False


def code_findings(registry: Registry) -> Iterator[SurveyFinding]:
    """Yield what lint says of the definitions that code declares."""
    lists = declarations(registry).values()
    for each in chain.from_iterable(declared.values() for declared in lists):
        findings = kinds.findings_with_kind(each.definition, registry=registry)
        if isinstance(each, DeclaredEvent):
            for finding in findings:
                yield SurveyFinding(each.definition, each.qualified_name, finding, True)
            continue
        source = each.function.qualified_name
        in_code = not isinstance(each.function, ReadyFunction)
        findings += [*form_urls.findings_of(each.function), *page_findings(each)]
        for finding in (*findings, *skill_folders.findings_of(each.function)):
            if in_code or finding.rule not in _NOT_OF_TOOLSETS:
                yield SurveyFinding(each.definition, source, finding, in_code)


def row_findings(registry: Registry) -> Iterator[SurveyFinding]:
    """Yield what lint says of servers and published rows; this reads the database."""
    rows: list[StoredDefinition[Definition]] = []
    overlays: dict[tuple[str, str], StoredOverlay] = {}
    for each in _published_rows(registry):
        if isinstance(each, SurveyFinding):
            yield each
        elif isinstance(each, StoredOverlay):
            overlays[each.key[0], each.identity] = each
        else:
            rows.append(each)
    offers = [*_code_offers(registry, overlays)]
    offers.extend((row.definition, row.key) for row in rows)
    for server in row_loader.load_servers().values():
        offered = [d for d, key in offers if server.offers_definition(d.tags, key)]
        for finding in server_findings(server, offered):
            yield SurveyFinding(server, f"server {server.slug}", finding)
    for row in rows:
        findings = kinds.findings_with_kind(
            row.definition, row.kind, row.config, row.uploads, registry
        )
        for finding in findings:
            yield SurveyFinding(row.definition, row.row_label, finding)


def _published_rows(registry: Registry) -> Iterator[StoredRow | SurveyFinding]:
    """Yield published rows; if a kind cannot complete one, yield a finding instead."""
    usable_kinds = kinds.usable_kinds(registry)
    for kind in row_loader.MODELS:
        for each in row_loader.load_rows(row_loader.served_versions(kind)):
            if isinstance(each, StoredOverlay):
                yield each
            elif isinstance(each, StoredDefinition):
                try:
                    yield kinds.complete_definition(each, usable_kinds)
                except kinds.KindError as error:
                    finding = must_fix("kind", error.field, error.message)
                    yield SurveyFinding(each.definition, each.row_label, finding)


def _code_offers(
    registry: Registry, overlays: Mapping[tuple[str, str], StoredOverlay]
) -> Iterator[tuple[Definition, Key | None]]:
    """Yield the definitions of code as staff changed them; a key is an overlay's."""
    for kind, declared in declarations(registry).items():
        for identity, each in declared.items():
            overlay = overlays.get((kind, identity))
            if overlay is None:
                yield each.definition, None
            else:
                yield apply_overlay(each.definition, overlay.content), overlay.key


def declarations(registry: Registry) -> Mapping[str, Mapping[str, Declared]]:
    """Return what code declares, by the kind of its row and its name or URI."""
    return {
        "tool": registry.tools,
        "resource": registry.resources,
        "resourcetemplate": registry.templates,
        "prompt": registry.prompts,
        "eventtype": registry.events,
    }
