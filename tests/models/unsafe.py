"""Connections that are set up as they should not be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from mcp_app.models.durability import Kind, doubts


@pytest.fixture(autouse=True)
def fresh(django_db_blocker: Any) -> Iterator[None]:
    """A connection of the test's own: what is set for it is gone with it."""
    with django_db_blocker.unblock():
        connection.close()
        yield
        connection.close()


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def kinds() -> list[Kind]:
    return [each.kind for each in doubts("default")]
