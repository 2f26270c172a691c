"""The right to see calls is renamed where the site's users are, and only there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.contrib.auth.models import Permission
from django.db import connection

pytestmark = pytest.mark.django_db

MIGRATION: Any = import_module("mcp_app.migrations.0021_call_rights")


class Schema:
    """All that the migration asks of a schema editor."""

    connection = connection


class NoTables:
    """The tables of users are in another database."""

    def allow_migrate(self, db: str, app_label: str, **_: object) -> bool:
        return app_label != "auth"


class WrittenElsewhere:
    """This database has such tables, too, and the site writes those of another."""

    def db_for_write(self, model: Any, **_: object) -> str | None:
        return "users" if model._meta.app_label == "auth" else None


def name() -> str:
    rows = Permission.objects.using(connection.alias)
    return rows.get(content_type__app_label="mcp_app", codename="view_call").name


def test_there_and_back() -> None:
    MIGRATION.rename_back(apps, Schema())
    assert name() == "Can view call"
    MIGRATION.rename(apps, Schema())
    assert name() == "Can see calls"


@pytest.mark.parametrize("router", [NoTables, WrittenElsewhere])
def test_where_users_are_elsewhere_nothing_is_done(
    settings: LazySettings, router: type
) -> None:
    settings.DATABASE_ROUTERS = [f"{__name__}.{router.__qualname__}"]
    MIGRATION.rename_back(apps, Schema())
    settings.DATABASE_ROUTERS = []
    assert name() == "Can see calls"
