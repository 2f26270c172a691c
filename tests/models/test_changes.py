from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.db import DatabaseError, connection, transaction
from django.db.models import F

from mcp_app.models import (
    Change,
    DefinitionVersion,
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    Session,
    Tool,
)
from mcp_app.models import changes as module
from mcp_app.models.sessions import Subscription
from tests.models.recording import as_committed, by_hand
from tests.models.recording import recorded as changes
from tests.published import published

pytestmark = pytest.mark.django_db


@pytest.fixture
def tool() -> Tool:
    tool = published(Tool(name="a"))
    as_committed()
    return tool


def switched(tool: Tool) -> None:
    version = DefinitionVersion.objects.of(tool).first()
    tool.published = version if tool.published is None else None
    tool.save()


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (Tool(name="a"), "tool"),
        (Resource(name="a", uri="x:a"), "resource"),
        (ResourceTemplate(name="a", uri_template="x:{a}"), "resourcetemplate"),
        (Prompt(name="a"), "prompt"),
        (Server(slug="a"), "server"),
    ],
)
def test_a_row_of_each_kind_that_is_published(row: PublishedRow, kind: str) -> None:
    row.pk = None
    row.save(force_insert=True)
    row.save()
    assert changes() == []
    published(row)
    assert changes() == [(kind, str(row.pk))]


def test_what_changes_nothing_for_clients_is_no_change(tool: Tool) -> None:
    tool.title = "New"
    tool.save()
    tool.save(update_fields=["title"])
    Tool.objects.update(description="x")
    Tool.objects.bulk_create([Tool(name="b")])
    Tool.objects.filter(name="nobody").update(published=None)
    Tool.objects.filter(name="nobody").delete()
    Tool.objects.bulk_create([])
    assert changes() == []


def test_unpublishing_and_deleting_are_changes(tool: Tool) -> None:
    ref = str(tool.pk)
    switched(tool)
    assert changes() == [("tool", ref)]
    as_committed()
    tool.delete()
    assert changes() == [("tool", ref)]


@pytest.mark.parametrize(
    "values", [{"slug": "b"}, {"access": "public"}, {"page_size": 5}]
)
def test_what_holds_from_the_save_on_is_a_change(values: dict[str, Any]) -> None:
    server = Server.objects.create(slug="a")
    for name, value in values.items():
        setattr(server, name, value)
    server.save()
    assert changes() == [("server", str(server.pk))]
    as_committed()
    Server.objects.update(page_size=6)
    assert changes() == [("server", "*")]


def test_bulk_operations_are_changes(tool: Tool) -> None:
    def switch() -> None:
        tool.published = None
        Tool.objects.bulk_update([tool], ["published"])

    version = DefinitionVersion.objects.of(tool).get()
    for operation in (
        lambda: Tool.objects.bulk_create(
            [Tool(name="b", published=version), Tool(name="c")]
        ),
        lambda: Tool.objects.update(published=version),
        switch,
    ):
        operation()
        assert changes() == [("tool", "*")]
        as_committed()
    Tool.objects.exclude(pk=tool.pk).delete()
    assert len(changes()) == 2


def test_an_old_instance_undoes_nothing(tool: Tool) -> None:
    """Somebody publishes and unpublishes while another edits the working copy."""
    old = Tool.objects.get()
    tool.title = "New"
    tool.save()
    published(tool)
    switched(tool)
    old.description = "Edited."
    old.save()
    now = Tool.objects.get()
    assert now.published is None
    assert now.description == "Edited."


def test_a_row_that_was_deleted_meanwhile_does_not_come_back(tool: Tool) -> None:
    old = Tool.objects.get()
    tool.delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        old.save()
    assert not Tool.objects.exists()


def test_columns_that_were_not_loaded_stay(tool: Tool) -> None:
    partly = Tool.objects.only("title").get()
    partly.title = "New"
    partly.save()
    now = Tool.objects.get()
    assert (now.title, now.published) == ("New", tool.published)
    assert changes() == []


def test_loaded_fixtures_are_changes(tool: Tool) -> None:
    text = serializers.serialize("json", [tool])
    for loaded in serializers.deserialize("json", text):
        loaded.save()
    assert changes() == [("tool", str(tool.pk))]


@pytest.mark.parametrize(
    "write",
    [
        switched,
        lambda tool: Tool.objects.update(published=None),
        lambda tool: Tool.objects.bulk_create([Tool(name="z", published_id=1)]),
    ],
)
def test_a_change_that_cannot_be_written_takes_its_row_along(
    tool: Tool, write: Callable[[Tool], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no room for changes")

    monkeypatch.setattr("mcp_app.models.changes.ChangeQuerySet.record", fail)
    with pytest.raises(RuntimeError, match="no room"), transaction.atomic():
        write(tool)
    assert [row.published is not None for row in Tool.objects.all()] == [True]


def test_the_lock_version_counts_edits_of_the_working_copy(tool: Tool) -> None:
    Tool.objects.update(published=None)
    tool.save(update_fields=["published"])
    published(tool)
    tool.save()
    tool.save(update_fields=["title"])
    Tool.objects.update(position=F("position") + 5)
    tool.refresh_from_db()
    assert (tool.position, tool.lock_version) == (5, 3)


def test_update_does_not_leave_a_stale_digest() -> None:
    Resource.objects.create(name="a", uri="x:a")
    with pytest.raises(ValueError, match="digest would not change"):
        Resource.objects.update(uri="x:b")


# -- once for a transaction ---------------------------------------------------------


def test_a_transaction_says_it_once(tool: Tool) -> None:
    for _ in range(2):
        for _ in range(3):
            switched(tool)
        with transaction.atomic():
            switched(tool)
        assert changes() == [("tool", str(tool.pk))]
        # What was taken away is said again.
        as_committed()
    # What stands for all says it for each.
    Tool.objects.update(published=None)
    switched(tool)
    assert changes() == [("tool", "*")]


def test_a_savepoint_that_is_rolled_back_has_said_nothing(tool: Tool) -> None:
    with transaction.atomic():
        with suppress(RuntimeError), transaction.atomic():
            switched(tool)
            raise RuntimeError
        assert changes() == []
        switched(tool)
    assert changes() == [("tool", str(tool.pk))]


@pytest.mark.usefixtures("tool")
def test_many_are_said_together() -> None:
    with transaction.atomic():
        Change.objects.record("x", "1")
        Change.objects.record_all("x", ["1", "2", "2", "3"])
        with suppress(DatabaseError), transaction.atomic():
            Change.objects.record_all("x", ["4"])
            raise DatabaseError
        Change.objects.record_all("x", ["3", "4"])
        assert changes() == [("x", each) for each in "1234"]
        Change.objects.record("x")
        Change.objects.record_all("x", ["5"])
        assert changes() == [("x", each) for each in "1234*"]


def test_beyond_many_rows_one_change_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REFS", 3)
    for number in range(6):
        published(Tool(name=f"t{number}"))
    assert [ref == "*" for _, ref in changes()] == [False] * 3 + [True]
    as_committed()
    Change.objects.record_all("x", ["1", "2"])
    Change.objects.record_all("x", ["2", "3"])
    Change.objects.record_all("x", ["4"])
    assert changes() == [("x", "1"), ("x", "2"), ("x", "3"), ("x", "*")]


def test_a_savepoint_of_the_sites_own_that_is_rolled_back(tool: Tool) -> None:
    savepoint = connection.savepoint() or ""
    switched(tool)
    connection.savepoint_rollback(savepoint)
    assert changes() == []
    switched(tool)
    assert changes() == [("tool", str(tool.pk))]


def test_many_savepoints_cost_no_more_than_they_are(
    django_assert_max_num_queries: Callable[[int], Any],
) -> None:
    count = 60
    with django_assert_max_num_queries(5 * count), transaction.atomic():
        for number in range(count):
            with transaction.atomic():
                Change.objects.record("uri", str(number))
    assert len(changes()) == count


def test_a_key_that_comes_again_says_what_it_says_now() -> None:
    """SQLite gives the keys of a savepoint that was rolled back to others."""
    Change.objects.record("uri", "first")
    savepoint = connection.savepoint() or ""
    Change.objects.record("uri", "a")
    connection.savepoint_rollback(savepoint)
    Change.objects.record("uri", "b")
    Change.objects.record("uri", "a")
    Change.objects.record("uri", "b")
    # Case matters.
    Change.objects.record("uri", "A")
    assert [ref for _, ref in changes()] == ["first", "b", "a", "A"]


@pytest.mark.django_db(transaction=True)
def test_a_site_that_commits_by_hand() -> None:
    with by_hand():
        tool = published(Tool(name="a"))
        Change.objects.create(id=7_000, kind="tool", ref="1")
        transaction.commit()
    assert set(changes()) == {("tool", str(tool.pk)), ("tool", "1")}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("block", [nullcontext, transaction.atomic])
def test_each_commit_by_hand_is_said(
    block: Callable[[], AbstractContextManager[object]],
) -> None:
    """Nobody has folded yet what was committed before, although all have seen it."""
    with by_hand():
        tool = published(Tool(name="a"))
        transaction.commit()
        written = set(Change.objects.values_list("pk", flat=True))
        for _ in range(2):
            with block():
                switched(tool)
            transaction.commit()
            now = set(Change.objects.values_list("pk", flat=True))
            assert now - written
            written = now


@pytest.mark.django_db(transaction=True)
def test_where_a_site_commits_by_hand_nothing_waits_for_django() -> None:
    with by_hand():
        with transaction.atomic():
            switched(published(Tool(name="a")))
        assert connection.run_on_commit == []


# -- sessions -----------------------------------------------------------------------


@pytest.fixture
def session() -> Session:
    made: Session = Session.objects.create(
        digest="d", principal_key="k", created_ms=1, seen_ms=1
    )
    return made


def test_what_nobody_else_can_know_is_no_change(session: Session) -> None:
    session.save(update_fields=["seen_ms"])
    Session.objects.update(seen_ms=2, initialized=True)
    assert changes() == []


@pytest.mark.parametrize(
    ("change", "ref"),
    [
        (lambda session: session.save(update_fields=["log_level"]), "one"),
        (lambda session: session.save(), "one"),
        (lambda session: Session.objects.update(log_level=3), "*"),
        (lambda session: session.delete(), "one"),
        (lambda session: Session.objects.all().delete(), "one"),
        (lambda session: session.subscriptions.create(uri="x:a"), "one"),
        (
            lambda session: Subscription.objects.bulk_create(
                [Subscription(session=session, uri="x:a", uri_digest="d")]
            ),
            "*",
        ),
    ],
)
def test_sessions_tell_of_their_changes(
    session: Session, change: Callable[[Session], object], ref: str
) -> None:
    expected = str(session.pk) if ref == "one" else ref
    change(session)
    assert changes() == [("session", expected)]


def test_the_end_of_a_subscription_is_a_change(session: Session) -> None:
    session.subscriptions.create(uri="x:a")
    as_committed()
    session.subscriptions.all().delete()
    assert changes() == [("session", str(session.pk))]


# -- users --------------------------------------------------------------------------


def test_deleting_a_user_keeps_the_rows(tool: Tool) -> None:
    tool.updated_by = User.objects.create_user("ana")
    tool.save()
    tool.updated_by.delete()
    tool.refresh_from_db()
    assert tool.updated_by is None
