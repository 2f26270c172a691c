from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.db import transaction
from django.db.models import F

from mcp_app.models import (
    Change,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Session,
    Tool,
)
from mcp_app.models import changes as module
from mcp_app.models.sessions import Subscription
from tests.models.recording import as_committed
from tests.models.recording import recorded as changes

pytestmark = pytest.mark.django_db


@pytest.fixture
def tool() -> Tool:
    tool = Tool.objects.create(name="a")
    as_committed()
    return tool


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Tool.objects.create(name="a"), "tool"),
        (lambda: Resource.objects.create(name="a", uri="x:a"), "resource"),
        (
            lambda: ResourceTemplate.objects.create(name="a", uri_template="x:{a}"),
            "resourcetemplate",
        ),
        (lambda: Prompt.objects.create(name="a"), "prompt"),
        (lambda: Server.objects.create(slug="a"), "server"),
    ],
)
def test_a_new_row_of_each_kind_is_a_change(
    make: Callable[[], Tool], kind: str
) -> None:
    row = make()
    assert changes() == [(kind, str(row.pk))]


def test_saving_and_deleting_are_changes(tool: Tool) -> None:
    ref = str(tool.pk)
    tool.save()
    as_committed()
    tool.delete()
    assert changes() == [("tool", ref)]


def test_bulk_operations_are_changes(tool: Tool) -> None:
    def edit() -> None:
        tool.title = "y"
        Tool.objects.bulk_update([tool], ["title"])

    for operation in (
        lambda: Tool.objects.bulk_create([Tool(name="b"), Tool(name="c")]),
        lambda: Tool.objects.update(title="x"),
        edit,
    ):
        operation()
        assert changes() == [("tool", "*")]
        as_committed()
    Tool.objects.exclude(pk=tool.pk).delete()
    assert len(changes()) == 2


def test_what_changes_nothing_is_no_change(tool: Tool) -> None:
    Tool.objects.filter(name="nobody").update(title="x")
    Tool.objects.filter(name="nobody").delete()
    Tool.objects.bulk_create([])
    assert changes() == []


def test_get_or_create_is_a_change_once(tool: Tool) -> None:
    for _ in range(2):
        Tool.objects.get_or_create(name="b")
    assert len(changes()) == 1


def test_loaded_fixtures_are_changes(tool: Tool) -> None:
    text = serializers.serialize("json", [tool])
    for loaded in serializers.deserialize("json", text):
        loaded.save()
    assert changes() == [("tool", str(tool.pk))]


def test_a_change_goes_with_its_transaction(tool: Tool) -> None:
    with suppress(RuntimeError), transaction.atomic():
        tool.title = "x"
        tool.save()
        raise RuntimeError
    tool.refresh_from_db()
    assert tool.title == ""
    assert changes() == []


@pytest.mark.parametrize(
    "write",
    [
        lambda tool: tool.save(),
        lambda tool: Tool.objects.update(title="x"),
        lambda tool: Tool.objects.bulk_create([Tool(name="z")]),
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
    assert list(Tool.objects.values_list("name", "title", "lock_version")) == [
        ("a", "", 0)
    ]


def test_the_lock_version_counts(tool: Tool) -> None:
    tool.save()
    tool.save(update_fields=["title"])
    Tool.objects.update(title="x")
    tool.refresh_from_db()
    assert tool.lock_version == 3


def test_a_copy_starts_with_its_own_version(tool: Tool) -> None:
    copy = Tool(name="b")
    copy.save()
    assert copy.lock_version == 0


def test_update_does_not_leave_a_stale_digest() -> None:
    Resource.objects.create(name="a", uri="x:a")
    with pytest.raises(ValueError, match="digest would stay"):
        Resource.objects.update(uri="x:b")


# -- once for a transaction ---------------------------------------------------------


def test_a_transaction_says_it_once(tool: Tool) -> None:
    for title in "bcd":
        tool.title = title
        tool.save()
    with transaction.atomic():
        tool.save()
    assert changes() == [("tool", str(tool.pk))]


def test_what_stands_for_all_says_it_for_each(tool: Tool) -> None:
    Tool.objects.update(title="x")
    tool.save()
    assert changes() == [("tool", "*")]


def test_a_savepoint_that_is_rolled_back_has_said_nothing(tool: Tool) -> None:
    with transaction.atomic():
        with suppress(RuntimeError), transaction.atomic():
            tool.save()
            raise RuntimeError
        assert changes() == []
        tool.save()
    assert changes() == [("tool", str(tool.pk))]


def test_a_savepoint_that_is_released_has_said_it(tool: Tool) -> None:
    with transaction.atomic():
        tool.save()
    with transaction.atomic():
        tool.save()
    assert changes() == [("tool", str(tool.pk))]


def test_beyond_many_rows_one_change_stands_for_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_REFS", 3)
    for number in range(6):
        Tool.objects.create(name=f"t{number}")
    assert [ref == "*" for _, ref in changes()] == [False] * 3 + [True]


def test_a_savepoint_of_the_sites_own_that_is_rolled_back(tool: Tool) -> None:
    """Django's transactions do not know of it."""
    savepoint = transaction.savepoint()
    tool.save()
    transaction.savepoint_rollback(savepoint)
    assert changes() == []
    tool.save()
    assert changes() == [("tool", str(tool.pk))]


def test_what_was_taken_away_is_said_again(tool: Tool) -> None:
    tool.save()
    Change.objects.all().delete()
    tool.save()
    assert changes() == [("tool", str(tool.pk))]


def test_many_savepoints_cost_no_more_than_they_are(
    tool: Tool, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    count = 60
    with django_assert_max_num_queries(5 * count), transaction.atomic():
        for number in range(count):
            with transaction.atomic():
                Change.objects.record("uri", str(number))
    assert len(changes()) == count


@pytest.mark.django_db(transaction=True)
def test_a_site_that_commits_by_hand() -> None:
    transaction.set_autocommit(False)
    try:
        tool = Tool.objects.create(name="a")
        Change.objects.create(id=7_000, kind="tool", ref="1", created_ms=1)
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert set(changes()) == {("tool", str(tool.pk)), ("tool", "1")}


@pytest.mark.django_db(transaction=True)
def test_each_transaction_says_it() -> None:
    tool = Tool.objects.create(name="a")
    for title in "bc":
        tool.title = title
        tool.save()
    assert changes() == [("tool", str(tool.pk))] * 3


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


def test_expressions_work_in_updates(tool: Tool) -> None:
    Tool.objects.update(position=F("position") + 5)
    tool.refresh_from_db()
    assert (tool.position, tool.lock_version) == (5, 1)
