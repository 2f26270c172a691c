"""What transactions record, in tests that are one transaction themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from mcp_app.models import Change


def recorded() -> list[tuple[str, str]]:
    return list(Change.objects.order_by("id").values_list("kind", "ref"))


def as_committed() -> None:
    """Forget what was recorded, as if a new transaction began."""
    Change.objects.all().delete()
    connection.run_on_commit.clear()


@contextmanager
def by_hand() -> Iterator[None]:
    """Be a site that switched autocommit off, and ends with a rollback."""
    transaction.set_autocommit(False)
    try:
        yield
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
