"""The kinds of definitions: what runs if a client calls one, such as a query."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from django.utils.translation import gettext as _

from mcp_app.catalog import lint
from mcp_app.catalog.findings import Finding, advice, must_fix, worst_first
from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.row_loader import StoredDefinition
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.schema_lint import HIDDEN
from mcp_app.catalog.suggestions import SUGGESTING, references_in, suggestions_of
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.questions import Completion
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    Effect,
    Incomplete,
    Kind,
    KindError,
    Missing,
    Problem,
    Uploads,
)
from mcp_app.kinds.registry import kind_classes, no_such_kind
from mcp_app.protocol.json_types import JsonObject

__all__ = [
    "Effect",
    "Incomplete",
    "Kind",
    "KindError",
    "Missing",
    "Problem",
    "PromptDefinition",
    "ResourceDefinition",
    "ResourceTemplateDefinition",
    "ToolDefinition",
    "complete_definition",
    "completers_of",
    "findings_with_kind",
    "serving_problems",
    "usable_kinds",
]

logger = logging.getLogger("mcp_app.kinds")


def usable_kinds(registry: Registry) -> Mapping[str, Kind]:
    """Return the kinds that can be used, by their keys, for one registry."""
    kinds: dict[str, Kind] = {}
    for key, kind in kind_classes().items():
        try:
            kinds[key] = kind(registry)
        except Exception:
            # A broken kind stops only its own rows.
            logger.exception(
                "The kind %r cannot be used, because its class raised an exception.",
                key,
            )
    return kinds


COMPLETED: Final = ("input_schema", "output_schema", "arguments")
"""If a row has values in these columns, the kind does not replace them."""


def complete_definition(
    stored: StoredDefinition[Definition], kinds: Mapping[str, Kind]
) -> StoredDefinition[Definition]:
    """Return a row's definition, completed by its kind.

    All code that serves, checks or shows the definition of a row uses this one.  Raises
    `KindError` if the kind cannot read the config.
    """
    kind = kinds.get(stored.kind)
    if kind is None:
        return stored
    definition = kind.complete_safely(stored.definition, stored.config)
    stated = {
        name: getattr(stored.definition, name)
        for name in COMPLETED
        if name in stored.stated and hasattr(definition, name)
    }
    return replace(stored, definition=replace(definition, **stated))


def serving_problems(
    definition: Definition,
    kind: str,
    config: JsonObject,
    uploads: Uploads = NO_UPLOADS,
    registry: Registry = mcp,
) -> list[Problem]:
    """Return why a definition from a row cannot be served; [] if it can."""
    usable_kind = usable_kinds(registry).get(kind)
    if usable_kind is None:
        return [Problem("kind", no_such_kind(kind))]
    problems = []
    field, value, declared = _unique_column(definition, registry)
    if value in declared:
        message = f"“{value}” is declared in code already; choose another one."
        problems.append(Problem(field, message))
    try:
        completers_of(definition, registry)
    except KindError as error:
        problems.append(Problem(SUGGESTING[type(definition)], error.message))
    return problems + usable_kind.config_problems(definition, config, uploads)


def completers_of(
    definition: Definition, registry: Registry
) -> Mapping[str, Runnable[Completion]]:
    """Return completers by name, for names with suggestions from fields.

    Raises `KindError` for a field that no code opens.
    """
    if not references_in(definition):
        return {}
    from mcp_app.kinds.query import suggesting  # noqa: PLC0415 - few rows need it

    return suggesting.completers_of(definition, registry)


def findings_with_kind(
    definition: Definition,
    kind: str = "function",
    config: JsonObject | None = None,
    uploads: Uploads = NO_UPLOADS,
    registry: Registry = mcp,
) -> list[Finding]:
    """Return all that lint says of a definition and its config.

    Without a config, code declares the definition.  Its function fits, and nothing
    waits to be published, so findings are only advice.  Hidden characters must be fixed
    all the same, because clients get them already.
    """
    lint_findings = lint.findings(definition)
    if config is None:
        return worst_first(
            each if each.rule == HIDDEN else each.as_advice() for each in lint_findings
        )
    if any(finding.rule in _UNREADABLE for finding in lint_findings):
        return lint_findings
    blocking = serving_problems(definition, kind, config, uploads, registry)
    usable_kind = usable_kinds(registry).get(kind)
    return worst_first(
        [
            *(must_fix("kind", each.field, each.message) for each in blocking),
            *lint_findings,
            *(_advice_of(usable_kind, definition, config) if usable_kind else ()),
            *_unused_suggestions(definition, registry),
        ]
    )


def _advice_of(kind: Kind, definition: Definition, config: JsonObject) -> list[Finding]:
    try:
        return list(kind.findings(definition, config))
    except Exception:
        logger.exception(
            "The kind %s raised an exception in its advice.", type(kind).__name__
        )
        return []


_UNREADABLE = frozenset({"schema-refused", "uri-not-allowed"})
"""Rules that a definition must keep so that a kind can read it."""


def _unused_suggestions(
    definition: Definition, registry: Registry
) -> Iterator[Finding]:
    _column, reference, _declared = _unique_column(definition, registry)
    for name in suggestions_of(definition):
        if (reference, name) in registry.completers:
            message = _(
                "The suggestions for %(name)s are never used, because code"
                " already completes this name. Remove the suggestions here, or"
                " ask a developer to remove that code."
            )
            field = SUGGESTING[type(definition)]
            yield advice("suggestions-unused", field, message % {"name": name})


def _unique_column(
    definition: Definition, registry: Registry
) -> tuple[str, str, Mapping[str, object]]:
    """Return the unique column, its value, and what code declares by that column."""
    if isinstance(definition, ToolDefinition):
        return "name", definition.name, registry.tools
    if isinstance(definition, ResourceDefinition):
        return "uri", definition.uri, registry.resources
    if isinstance(definition, ResourceTemplateDefinition):
        return "uri_template", definition.uri_template, registry.templates
    if isinstance(definition, PromptDefinition):
        return "name", definition.name, registry.prompts
    if isinstance(definition, EventDefinition):
        return "name", definition.name, registry.events
    raise TypeError(
        f"{type(definition).__name__} is not a definition that can be made in the"
        " admin."
    )
