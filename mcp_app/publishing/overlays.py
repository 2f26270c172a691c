"""Rows for what code declares, and the findings of all rows, stored anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig
from django.db import connections, models, router
from django.db.migrations.executor import MigrationExecutor
from django.db.models.signals import post_migrate
from django.utils.translation import gettext as _

from mcp_app.catalog.definition_texts import tokens
from mcp_app.catalog.findings import Finding, Level, must_fix, worst_first
from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.row_loader import (
    MODELS,
    apply_overlay,
    definition_of,
    server_definition,
    uploads_of,
)
from mcp_app.catalog.server_lint import server_findings
from mcp_app.interface.definitions import Definition
from mcp_app.kinds import (
    KindError,
    complete_definition,
    findings_with_kind,
    usable_kinds,
)
from mcp_app.kinds.survey import Declared, declarations
from mcp_app.models import DefinitionRow, DefinitionVersion, PublishedRow, Server
from mcp_app.models.definitions import Source
from mcp_app.protocol.json_types import JsonObject

# -- findings --------------------------------------------------------------------------
# What lint says of a row's content, and what of that is stored with the row.

UNSERVABLE = frozenset(
    {"kind", "taken", "schema-refused", "uri-not-allowed", "hidden-character"}
)
"""Rules without which a version cannot be served, whenever it was published."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What lint says of a content, and what it costs a model; 0 where unknown."""

    findings: Sequence[Finding]
    tokens: int = 0

    @property
    def to_fix(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.MUST_FIX]

    @property
    def advices(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.ADVICE]


def judge_row_content(
    row: PublishedRow, content: JsonObject, registry: Registry
) -> Findings:
    """Return what lint says of a row with this content."""
    if not isinstance(row, DefinitionRow) or row.from_code:
        return judge_content(row, content, registry, {})
    judged = judge_content(row, content, registry, uploads_of(content))
    identity = str(content.get(row.IDENTITY, ""))
    others = row.rows().exclude(pk=row.pk)
    other = others.filter(published_identity=row.identity_hash(identity)).first()
    conflicts = [] if other is None else [conflict_finding(other, identity)]
    return Findings([*conflicts, *judged.findings], judged.tokens)


def judge_content(
    row: PublishedRow,
    content: JsonObject,
    registry: Registry,
    uploads: Mapping[str, bytes],
) -> Findings:
    """Do so without the database; `uploads` is the uploaded content by digest.

    What other rows are called is not looked at.
    """
    if isinstance(row, Server):
        return Findings(server_findings(server_definition(row, content), []))
    assert isinstance(row, DefinitionRow)  # noqa: S101 - there are no others
    if row.from_code:
        return _judged_overlay(row, content, registry)
    key = row.kind_of_row, str(row.pk)
    try:
        stored = definition_of(key, content, uploads)
        stored = complete_definition(stored, usable_kinds(registry))
    except (ValueError, KindError) as error:
        return Findings([must_fix("kind", "", str(error))])
    lint_findings = findings_with_kind(
        stored.definition, stored.kind, stored.config, stored.uploads, registry
    )
    return Findings(lint_findings, tokens(stored.definition))


def _judged_overlay(
    row: DefinitionRow, content: JsonObject, registry: Registry
) -> Findings:
    declared = declarations(registry)[row.kind_of_row].get(row.identity)
    if declared is None:
        message = _(
            "%(name)s is no longer in the code. Clients do not see it. Bring the code"
            " back, or delete this definition."
        )
        return Findings([must_fix("kind", "", message % {"name": row.identity})])
    definition: Definition = apply_overlay(declared.definition, content)
    lint_findings = findings_with_kind(definition, registry=registry)
    # What code says alone is nothing that could be fixed here.
    adjusted = (
        each if each.field in content else each.as_advice() for each in lint_findings
    )
    return Findings(worst_first(adjusted), tokens(definition))


def conflict_finding(other: DefinitionRow, identity: str) -> Finding:
    """Return what is said where another row is published under a name or URI."""
    return must_fix(
        "taken",
        other.IDENTITY,
        _("“%(name)s” is published as %(identity)s already; choose another one.")
        % {"name": other, "identity": identity},
    )


def store_findings(
    row: DefinitionRow, registry: Registry, judged: Findings | None = None
) -> Findings:
    """Store what lint says of the working copy, and why what is served is broken.

    `judged` is what lint says, if the caller knows it.
    """
    if judged is None:
        judged = judge_row_content(row, row.working_content(), registry)
    row.to_fix, row.advices = len(judged.to_fix), len(judged.advices)
    row.tokens = judged.tokens
    row.broken = broken_reason(row, registry, judged)
    columns = ("to_fix", "advices", "tokens", "broken")
    rows = row.rows().filter(pk=row.pk)
    rows.update(**{name: getattr(row, name) for name in columns})
    return judged


def broken_reason(row: DefinitionRow, registry: Registry, working: Findings) -> str:
    """Return why a row cannot be served as it was published, "" where it can."""
    judged = working
    if not row.from_code:
        if row.published is None:
            return ""
        if row.published.hash != row.content_hash:
            judged = judge_row_content(row, row.published.read(), registry)
    return " ".join(each.message for each in judged.to_fix if each.rule in UNSERVABLE)


# -- overlays --------------------------------------------------------------------------


def connect_overlays(app: AppConfig) -> None:
    """Let a migration make the rows of what code declares, and rows know its titles."""
    DefinitionRow.title_in_code = staticmethod(_title_in_code)
    post_migrate.connect(_handle_migration, sender=app, dispatch_uid="mcp_app overlays")


def _title_in_code(row: DefinitionRow) -> str:
    definition = declared_definition(row, mcp) if row.from_code else None
    return "" if definition is None else definition.title


def _handle_migration(using: str, **details: object) -> None:
    # `flush` sends the signal, too, and is to leave nothing.  Other databases have no
    # such tables, and states between two migrations others than these models.
    if "plan" not in details or using != router.db_for_write(DefinitionVersion):
        return
    if _is_up_to_date(using):
        make_overlays(mcp)
        store_all_findings(mcp, only_code=True)


def _is_up_to_date(using: str) -> bool:
    """Whether all migrations of this app are applied, or it has none.

    In a schema of a tenant they may be recorded as applied, with no table made.
    """
    executor, table = MigrationExecutor(connections[using]), DefinitionVersion._meta
    newest = executor.loader.graph.leaf_nodes(table.app_label)
    there = connections[using].introspection.table_names()
    return table.db_table in there and not executor.migration_plan(newest)


def make_overlays(registry: Registry) -> int:
    """Make an empty row for each definition of code that has none; return how many.

    Such a row changes nothing of what is served, so nobody is told.  Where staff made
    a definition of that name, it keeps its row, and is reported.
    """
    count = 0
    for kind, declared in declarations(registry).items():
        model = MODELS[kind]
        known = set(model.rows().values_list(model.IDENTITY, flat=True))
        missing = [
            model(
                source=Source.CODE,
                kind="function",
                **{"name": each.definition.name, model.IDENTITY: identity},
            )
            for identity, each in declared.items()
            if identity not in known
        ]
        # Several processes start at once: the database keeps the first of each.
        model.rows().bulk_create(missing, ignore_conflicts=True)
        count += len(missing)
    return count


def declaration_of(row: DefinitionRow, registry: Registry) -> Declared | None:
    """Return what code declares under a row's name; None where it does no more."""
    return declarations(registry)[row.kind_of_row].get(row.identity)


def whole_definition(
    row: DefinitionRow, content: JsonObject, registry: Registry
) -> Definition | None:
    """Return a row with this content as clients would get it.

    None if the code behind it has vanished, or if its kind cannot describe it.
    """
    if row.from_code:
        declared = declared_definition(row, registry)
        return None if declared is None else apply_overlay(declared, content)
    try:
        stored = definition_of((row.kind_of_row, str(row.pk)), content, {})
        return complete_definition(stored, usable_kinds(registry)).definition
    except (ValueError, KindError):
        return None


def declared_definition(row: DefinitionRow, registry: Registry) -> Definition | None:
    """Return the definition that code declares under a row's name, if it does."""
    declaration = declaration_of(row, registry)
    return None if declaration is None else declaration.definition


def reset_columns(
    row: DefinitionRow, names: Iterable[str], registry: Registry, *, author: Any
) -> None:
    """Set columns of an overlay back to what the code says, and store its findings."""
    for name in names:
        column = row._meta.get_field(name)
        setattr(row, name, column.get_default())  # type: ignore[union-attr]
    row.updated_by = author
    row.save()
    store_findings(row, registry)


def store_all_findings(registry: Registry, *, only_code: bool = False) -> int:
    """Store the findings of every row; return how many are broken.  It takes a while.

    `only_code` leaves out what does not depend on code.
    """
    count = 0
    for model in MODELS.values():
        rows: models.QuerySet[Any] = model.rows().select_related("published")
        if only_code:
            rows = rows.filter(models.Q(source=Source.CODE) | ~models.Q(kind="text"))
        for row in rows.order_by("pk").iterator(chunk_size=500):
            store_findings(row, registry)
            count += bool(row.broken)
    return count
