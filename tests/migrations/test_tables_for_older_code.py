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
LARGE: Final = {"call", "event", "occurrence"}
"""Writers wait until an index of these tables is made."""
LOADER: Final = MigrationLoader(None)
PUBLIC: Final = [(APP, name) for name, colon, _ in LISTED if not colon]
RELEASED: Final = LOADER.project_state(PUBLIC).models
WIDER: Final = {"Char": "Text", "Integer": "BigInteger", "SmallInteger": "Integer"}
SAME: Final = ("db_column", "db_collation", "null", "unique", "related_model")
NUMBERS: Final = count(1)


def is_allowed(operation: Any, state: ProjectState) -> bool:
    is_large = getattr(operation, "model_name_lower", "") in LARGE
    match operation:
        case op.CreateModel(fields=fields):
            return not any(holds_older_rows(new) for _, new in fields)
        case op.AlterModelOptions(options=options):
            return "managed" not in options
        case op.AddField():
            new: Any = operation.field
            has_default = new.db_default is not NOT_PROVIDED and not new.unique
            is_free = bool(new.many_to_many or new.null or has_default)
            has_index = new.db_index or new.unique
            return is_free and not (holds_older_rows(new) or (is_large and has_index))
        case op.AddIndex():
            return not is_large
        case op.AlterField(field=new):
            fields = state.models[APP, operation.model_name_lower].fields
            return is_as_wide(fields[operation.name], new, is_large)
    return isinstance(operation, op.RunPython) and bool(operation.elidable)


def holds_older_rows(new: Any) -> bool:
    """Whether the database keeps older code from deleting what the field refers to."""
    if new.many_to_many:
        return bool(new.remote_field.db_constraint)
    app, _, name = str(getattr(new, "related_model", "")).lower().partition(".")
    is_new = app == APP and (app, name) not in RELEASED
    return bool(new.remote_field and new.db_constraint and not is_new)


def is_as_wide(old: Any, new: Any, is_large: bool) -> bool:
    types = [each.get_internal_type().removesuffix("Field") for each in (old, new)]
    return (
        all(getattr(old, each, None) == getattr(new, each, None) for each in SAME)
        and types[1] in (types[0], None if is_large else WIDER.get(types[0]))
        and (old.db_index == new.db_index or not is_large)
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
BLOB: Final = "mcp_app.Blob"
TIED: Final[Any] = {"on_delete": models.PROTECT, "null": True}
LOOSE: Final[Any] = {**TIED, "db_constraint": False}
BREAKING: Final = [
    op.AddField("tool", "x", models.IntegerField(default=0)),
    op.AddField("tool", "x", models.IntegerField(db_default=0, unique=True)),
    op.AlterField(*TITLE, models.CharField(max_length=254)),
    op.AlterField(*TITLE, models.CharField(max_length=255, unique=True)),
    op.AlterField(*TITLE, models.CharField(max_length=255, db_column="x")),
    op.AlterField(*TITLE, models.IntegerField()),
    op.AlterField("tool", "timeout", models.FloatField(default=1.0)),
    op.AlterField("tool", "app", models.CharField(max_length=255)),
    op.AlterField(*TITLE, models.CharField(max_length=255, null=True)),
    op.AlterField(*TITLE, models.CharField(max_length=255, db_collation="C")),
    op.AlterField("tool", "updated_by", models.ForeignKey(BLOB, **LOOSE)),
    op.AlterField("call", "size", models.BigIntegerField(db_index=True)),
    op.AddField("call", "x", models.ForeignKey(BLOB, **LOOSE)),
    op.AddField("tool", "x", models.ForeignKey(BLOB, **TIED)),
    op.AddField("tool", "x", models.ManyToManyField(BLOB)),
    op.CreateModel("X", [("tool", models.ForeignKey("mcp_app.Tool", **TIED))]),
    op.AlterModelOptions("tool", {"managed": False}),
    op.RemoveField(*TITLE),
    op.RenameField(*TITLE, "heading"),
    op.RenameModel("Tool", "Instrument"),
    op.DeleteModel("Blob"),
    op.AlterModelTable("tool", "x"),
    op.AddIndex("Occurrence", models.Index(fields=["cause"], name="x")),
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
    op.AddField("tool", "x", models.ForeignKey(BLOB, **LOOSE)),
    op.AddField("tool", "x", models.ForeignKey("mcp_app.NewModel", **TIED)),
    op.AddField("tool", "x", models.ManyToManyField(BLOB, db_constraint=False)),
    op.AddIndex("tool", models.Index(fields=["title"], name="x")),
    op.AlterField(*TITLE, models.CharField(max_length=256)),
    op.AlterField(*TITLE, models.TextField()),
    op.AlterField("tool", "position", models.BigIntegerField(default=0)),
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
