"""The history of a row: versions, and what else people did, each told once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.utils import timezone

from mcp_app.admin.publishing import history
from mcp_app.admin.publishing.history import AT_ONCE, context
from mcp_app.models import DefinitionVersion, Prompt, Tool
from tests.published import published

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


@pytest.fixture
def row(ana: User) -> Tool:
    """Published twice; clients see the second."""
    made = published(Tool(name="find", title="First"))
    made.title = "Second"
    made.save()
    made = published(made)
    for number in (1, 2):
        wrote(made, number, author=ana, author_name="ana")
    return made


def wrote(row: Tool, number: int, **columns: Any) -> None:
    """Let a version be as it never was: its own manager changes none."""
    rows = QuerySet[DefinitionVersion](DefinitionVersion)
    rows.filter(pk=version(row, number).pk).update(**columns)


def version(row: Tool, number: int) -> DefinitionVersion:
    return DefinitionVersion.objects.of(row).get(number=number)


def log(row: Any, who: User, what: str, at: datetime | None = None) -> None:
    entry = LogEntry.objects.create(
        user=who,
        content_type=ContentType.objects.get_for_model(type(row)),
        object_id=str(row.pk),
        object_repr=str(row),
        action_flag=CHANGE,
        change_message=what,
    )
    if at is not None:
        LogEntry.objects.filter(pk=entry.pk).update(action_time=at)


def told(row: Tool, *, may_restore: bool = True) -> list[str]:
    return [each.what for each in context(row, may_restore=may_restore)["events"]]


def test_the_newest_comes_first(row: Tool, ana: User) -> None:
    log(row, ana, "Changed title.", timezone.now() + timedelta(hours=1))
    log(row, ana, "Made it.", timezone.now() - timedelta(days=1))
    assert told(row) == [
        "Changed title.",
        "Published version 2",
        "Published version 1",
        "Made it.",
    ]


def test_what_other_rows_did_is_theirs(row: Tool, ana: User) -> None:
    prompt = Prompt.objects.create(pk=row.pk, name="find")
    log(prompt, ana, "Changed the prompt.")
    assert told(row) == ["Published version 2", "Published version 1"]


@pytest.mark.parametrize(
    ("after", "text", "said"),
    [
        (timedelta(0), "Published version 2.", True),
        (AT_ONCE - timedelta(milliseconds=1), "Veröffentlicht: 2.", True),
        (-AT_ONCE + timedelta(milliseconds=1), "2", True),
        (AT_ONCE, "Published version 2.", False),
        (timedelta(0), "Changed title.", False),
    ],
)
def test_what_a_version_says_is_not_said_again(
    row: Tool, ana: User, after: timedelta, text: str, said: bool
) -> None:
    wrote(row, 1, created=timezone.now() - timedelta(days=1))
    log(row, ana, text, version(row, 2).created + after)
    assert (text in told(row)) is not said


def test_what_somebody_else_did_at_that_moment_is_told(row: Tool) -> None:
    ben = User.objects.create_user("ben")
    log(row, ben, "Stopped it at 2.", version(row, 2).created)
    assert "Stopped it at 2." in told(row)


def test_only_what_clients_do_not_see_can_be_restored(row: Tool) -> None:
    events = context(row, may_restore=True)["events"]
    assert [each.served for each in events] == [True, False]
    assert [bool(each.restore_url) for each in events] == [False, True]
    assert [(each.newest, each.older) for each in events] == [
        (True, False),
        (False, True),
    ]
    assert all(each.look_url for each in events)
    events = context(row, may_restore=False)["events"]
    assert not any(each.restore_url for each in events)


def test_a_version_that_came_back_says_so(row: Tool) -> None:
    wrote(row, 2, restored=1, author_name="")
    first, *_ = context(row, may_restore=True)["events"]
    assert first.what == "Published version 1 again as version 2"
    assert first.who == "a command"


@pytest.mark.parametrize(("most", "more"), [(2, True), (3, False)])
def test_a_page_has_an_end(
    row: Tool, most: int, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST", most)
    page = context(row, may_restore=True)
    assert (page["more"], page["can_compare"]) == (more, True)


def test_a_row_without_a_history() -> None:
    page = context(Tool.objects.create(name="new"), may_restore=True)
    assert page == {"events": [], "can_compare": False, "more": False}
