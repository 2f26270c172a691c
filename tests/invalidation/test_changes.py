"""Saying that something changed, from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from typing import Final

import pytest
from django.db import DEFAULT_DB_ALIAS, connections, transaction

import mcp_app
from mcp_app.invalidation import changes
from mcp_app.models import Change

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

URI: Final = "shop://orders/1"
DIGEST: Final = sha256(URI.encode()).hexdigest()


def rows() -> list[tuple[str, str]]:
    return list(Change.objects.order_by("id").values_list("kind", "ref"))


@pytest.fixture(autouse=True)
def _no_rows() -> None:
    Change.objects.all().delete()


def test_a_resource() -> None:
    mcp_app.changed(URI)
    assert rows() == [("uri", DIGEST)]


@pytest.mark.parametrize("what", changes.LISTS)
@pytest.mark.parametrize(("server", "ref"), [(None, "*"), ("staff", "staff")])
def test_a_list(what: str, server: str | None, ref: str) -> None:
    mcp_app.notify(what, server)
    assert rows() == [("list", f"{what}:{ref}")]


def test_what_is_no_list() -> None:
    with pytest.raises(
        ValueError,
        match=r"'tool' is not the name of a list\. Use one of tools, prompts",
    ):
        mcp_app.notify("tool")
    assert rows() == []


@pytest.mark.parametrize(
    ("what", "row"), [("tools", ("list", "tools:staff")), (URI, ("uri", DIGEST))]
)
def test_what_a_context_names(what: str, row: tuple[str, str]) -> None:
    changes.record_notification(what, "staff")
    assert rows() == [row]


def test_what_another_database_changes_is_written_once_at_its_commit() -> None:
    written = changes._Elsewhere("default")
    for _ in range(3):
        written.said["rights", "1"] = None
    written.said["rights", "2"] = None
    written()
    assert rows() == [("rights", "1"), ("rights", "2")]


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A database of the site that has none of our tables."""
    alias = "elsewhere"
    connections.databases[alias] = connections.configure_settings(
        {
            DEFAULT_DB_ALIAS: {},
            alias: {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
        }
    )[alias]
    # The test's own database is the only one that pytest-django lets connect by itself.
    connections[alias].connect()
    try:
        yield alias
    finally:
        connections[alias].close()
        del connections[alias], connections.databases[alias]


def test_what_another_database_changes_is_written_at_its_commit(elsewhere: str) -> None:
    with transaction.atomic(using=elsewhere):
        changes.record(elsewhere, "rights", "1")
        changes.record(elsewhere, "rights", "1")
        assert rows() == []
    assert rows() == [("rights", "1")]
    changes.record(elsewhere, "rights", "2")
    assert rows() == [("rights", "1"), ("rights", "2")]


@pytest.mark.parametrize("block", [nullcontext, transaction.atomic])
def test_where_another_database_is_committed_by_hand_it_is_written_at_once(
    elsewhere: str, block: Callable[..., AbstractContextManager[object]]
) -> None:
    transaction.set_autocommit(False, using=elsewhere)
    with block(elsewhere):
        changes.record(elsewhere, "rights", "1")
    assert rows() == [("rights", "1")]
    transaction.commit(using=elsewhere)
    Change.objects.all().delete()
    with block(elsewhere):
        changes.record(elsewhere, "rights", "1")
    assert rows() == [("rights", "1")]


def test_the_row_belongs_to_the_transaction_of_the_caller() -> None:
    with transaction.atomic():
        mcp_app.changed(URI)
        transaction.set_rollback(True)
    assert rows() == []
