"""Overlays: rows with what staff change of a definition that code declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor
from django.db.models.signals import post_migrate

from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.row_loader import MODELS, apply_overlay, definition_of
from mcp_app.interface.definitions import Definition
from mcp_app.kinds import KindError, complete_definition, usable_kinds
from mcp_app.kinds.survey import Declared, declarations
from mcp_app.models import DefinitionRow, DefinitionVersion
from mcp_app.models.definitions import Source
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.row_findings import store_all_findings, store_findings


def connect_overlays(app: AppConfig) -> None:
    """Let migrations make rows for definitions in code, and rows know their titles."""
    DefinitionRow.title_in_code = staticmethod(_title_in_code)
    post_migrate.connect(_handle_migration, sender=app, dispatch_uid="mcp_app overlays")


def _title_in_code(row: DefinitionRow) -> str:
    definition = declared_definition(row, mcp) if row.from_code else None
    return "" if definition is None else definition.title


def _handle_migration(using: str, **details: object) -> None:
    # `flush` sends the signal without a plan, and must leave no rows.  Other databases
    # have no such tables; between two migrations these differ from the models.
    if "plan" not in details or using != router.db_for_write(DefinitionVersion):
        return
    if is_up_to_date(using):
        make_overlays(mcp)
        store_all_findings(mcp, only_code=True)


def is_up_to_date(using: str) -> bool:
    """Whether all migrations of this app are applied, or it has none.

    In a tenant's schema they may be recorded as applied, although no table exists.
    """
    executor, table = MigrationExecutor(connections[using]), DefinitionVersion._meta
    newest = executor.loader.graph.leaf_nodes(table.app_label)
    tables = connections[using].introspection.table_names()
    return table.db_table in tables and not executor.migration_plan(newest)


def make_overlays(registry: Registry) -> int:
    """Make an empty row for each definition of code that has none; return how many.

    Such a row does not change what is served, so no change is recorded.  If staff made
    a definition of that name, it keeps its row, and is reported.
    """
    count = 0
    for kind, declared in declarations(registry).items():
        model = MODELS[kind]
        identities = set(model.rows().values_list(model.IDENTITY, flat=True))
        missing = [
            model(
                source=Source.CODE,
                kind="function",
                **{"name": each.definition.name, model.IDENTITY: identity},
            )
            for identity, each in declared.items()
            if identity not in identities
        ]
        # Several processes start at once: the database keeps the first of each.
        model.rows().bulk_create(missing, ignore_conflicts=True)
        count += len(missing)
    return count


def declaration_of(row: DefinitionRow, registry: Registry) -> Declared | None:
    """Return what code declares under a row's name; None if it is not in code now."""
    return declarations(registry)[row.kind_of_row].get(row.identity)


def whole_definition(
    row: DefinitionRow, content: JsonObject, registry: Registry
) -> Definition | None:
    """Return a row with this content as clients would get it.

    Returns None if its code has vanished, or if its kind cannot describe it.
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
