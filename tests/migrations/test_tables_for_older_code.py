"""The tables of a release serve the code of the release before, too."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from sys import maxsize
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import models
from django.db.migrations import operations as op
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED
from django.utils import timezone

APP: Final = "mcp_app"
LINES: Final = Path(__file__).with_name("released.txt").read_text().splitlines()
LISTED: Final = [each.partition(":") for each in LINES if not each.startswith("#")]
LARGE: Final = {"call", "event"}
"""Writers wait until an index of these tables is made."""
LOADER: Final = MigrationLoader(None)
NUMBERS: Final = count(1)


def is_allowed(operation: Any, state: ProjectState) -> bool:
    match operation:
        case op.CreateModel() | op.AlterModelOptions():
            return True
        case op.AddField(field=new):
            has_default = new.db_default is not NOT_PROVIDED and not new.unique
            return bool(new.many_to_many or new.null or has_default)
        case op.AddIndex():
            return operation.model_name.lower() not in LARGE
        case op.AlterField(field=new):
            fields = state.models[APP, operation.model_name_lower].fields
            return is_as_wide(fields[operation.name], new)
        case op.RunPython():
            return bool(operation.elidable)
    return False


def is_as_wide(old: Any, new: Any) -> bool:
    kept = (old.get_internal_type(), old.db_column, new.null or old.null, old.unique)
    return (
        kept == (new.get_internal_type(), new.db_column, new.null, new.unique)
        and (new.max_length or maxsize) >= (old.max_length or maxsize)
        and (new.db_default is not NOT_PROVIDED or old.db_default is NOT_PROVIDED)
    )


def test_migrations_after_a_release_leave_its_code_working() -> None:
    names = {name for app, name in LOADER.disk_migrations if app == APP}
    listed = {name for name, _, _ in LISTED}
    assert listed <= names
    assert all(reason.strip() for _, colon, reason in LISTED if colon)
    for name in names - listed:
        state = LOADER.project_state((APP, name), at_end=False)
        for each in LOADER.disk_migrations[APP, name].operations:
            assert is_allowed(each, state), (name, each.describe())
            each.state_forwards(APP, state)


TITLE: Final = ("tool", "title")
BREAKING: Final = [
    op.AddField("tool", "x", models.IntegerField(default=0)),
    op.AddField("tool", "x", models.IntegerField(db_default=0, unique=True)),
    op.AlterField(*TITLE, models.CharField(max_length=254)),
    op.AlterField(*TITLE, models.CharField(max_length=255, unique=True)),
    op.AlterField(*TITLE, models.CharField(max_length=255, db_column="x")),
    op.AlterField(*TITLE, models.IntegerField()),
    op.AlterField("tool", "timeout", models.FloatField(default=1.0)),
    op.AlterField("tool", "app", models.CharField(max_length=255)),
    op.RemoveField(*TITLE),
    op.RenameField(*TITLE, "heading"),
    op.RenameModel("Tool", "Instrument"),
    op.DeleteModel("Blob"),
    op.AlterModelTable("tool", "x"),
    op.AddIndex("Call", models.Index(fields=["size"], name="x")),
    op.RemoveIndex("call", "mcp_call_name"),
    op.AddConstraint("tool", models.UniqueConstraint("title", name="x")),
    op.RunPython(op.RunPython.noop),
    op.RunSQL("SELECT 1", elidable=True),
    op.SeparateDatabaseAndState(),
]
HARMLESS: Final = [
    op.CreateModel("X", [("id", models.BigAutoField(primary_key=True))]),
    op.AddField("tool", "x", models.IntegerField(db_default=0)),
    op.AddField("tool", "x", models.IntegerField(null=True, unique=True)),
    op.AddField("tool", "x", models.ManyToManyField("mcp_app.Blob")),
    op.AddIndex("tool", models.Index(fields=["title"], name="x")),
    op.AlterField(*TITLE, models.CharField(max_length=256, null=True)),
    op.RunPython(op.RunPython.noop, elidable=True),
]


def test_what_breaks_older_code_is_told_apart() -> None:
    state = LOADER.project_state()
    assert [each for each in BREAKING if is_allowed(each, state)] == []
    assert [each for each in HARMLESS if not is_allowed(each, state)] == []


def insert(model: Any) -> Any:
    """Insert a row by the columns of a model, and rows that it refers to."""
    values: dict[str, Any] = {}
    kinds = {"DateTimeField": timezone.now(), "BinaryField": b"x"}
    for field in model._meta.concrete_fields:
        if field.null or field.has_default() or isinstance(field, models.AutoField):
            continue
        related = field.related_model
        value = kinds.get(field.get_internal_type()) or next(NUMBERS)
        values[field.name] = insert(related) if related else value
    return model._base_manager.create(**values)


@pytest.mark.django_db
def test_newer_code_reads_what_older_code_inserts() -> None:
    early = ["0006_openapi", "0008_connections", "0015_tasks"]
    released = max(name for name, colon, _ in LISTED if not colon)
    for release in [*early, "0019_event_subscriptions", released]:
        older = LOADER.project_state((APP, release)).apps
        for name, old in older.all_models[APP].items():
            new: Any = apps.get_model(APP, name)
            before = {each.attname for each in old._meta.concrete_fields}
            added = [e for e in new._meta.concrete_fields if e.attname not in before]
            row = new._base_manager.get(pk=insert(old).pk) if added else None
            for each in added:
                default = None if each.null else each.get_default()
                assert getattr(row, each.attname) == default
