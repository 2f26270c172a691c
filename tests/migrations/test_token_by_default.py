"""Which servers let access tokens in after 0017, and which stay as they are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import QuerySet

from mcp_app.models import Server

MIGRATION: Any = import_module("mcp_app.migrations.0017_token_by_default")

pytestmark = pytest.mark.django_db


def migrated(**columns: Any) -> str:
    """Return the access of a server that had these columns before."""
    row = Server.objects.create(slug=columns.pop("slug", "default"))
    before = {"access": "", "lock_version": 0, **columns}
    # Without what counts the changes of a row.
    QuerySet(Server).filter(pk=row.pk).update(**before)
    MIGRATION.open_untouched_server(apps, connection.schema_editor())
    row.refresh_from_db()
    return row.access


@pytest.fixture(autouse=True)
def _no_server() -> None:
    Server.objects.all().delete()


def test_the_first_server_as_it_was_made() -> None:
    assert migrated() == "token"


@pytest.mark.parametrize(
    ("columns", "access"),
    [
        ({"lock_version": 1}, ""),
        ({"access": "public"}, "public"),
        ({"access": "partners"}, "partners"),
        ({"slug": "shop"}, ""),
    ],
)
def test_what_somebody_has_set_stays(columns: dict[str, Any], access: str) -> None:
    assert migrated(**columns) == access


def test_a_new_database_and_a_new_server() -> None:
    assert Server().access_names == ("token",)
