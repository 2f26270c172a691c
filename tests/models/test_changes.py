from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.db import transaction
from django.db.models import F

from mcp_app.models import Change, Prompt, Resource, ResourceTemplate, Server, Tool

pytestmark = pytest.mark.django_db


def changes() -> list[tuple[str, str]]:
    return list(Change.objects.order_by("id").values_list("kind", "ref"))


@pytest.fixture
def tool() -> Tool:
    tool = Tool.objects.create(name="a")
    Change.objects.all().delete()
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
    tool.delete()
    assert changes() == [("tool", ref), ("tool", ref)]


def test_bulk_operations_are_changes(tool: Tool) -> None:
    Tool.objects.bulk_create([Tool(name="b"), Tool(name="c")])
    assert changes() == [("tool", "*")]
    Tool.objects.update(title="x")
    assert changes() == [("tool", "*")] * 2
    tool.title = "y"
    Tool.objects.bulk_update([tool], ["title"])
    assert changes() == [("tool", "*")] * 3
    Tool.objects.exclude(pk=tool.pk).delete()
    assert len(changes()) == 5


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
    with pytest.raises(RuntimeError, match="no room"):
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


def test_the_marker_differs_after_each_change(tool: Tool) -> None:
    markers = {Change.objects.marker()}
    for _ in range(3):
        tool.save()
        markers.add(Change.objects.marker())
    assert len(markers) == 4


def test_the_marker_is_one_statement(
    tool: Tool, django_assert_num_queries: Callable[[int], object]
) -> None:
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        assert Change.objects.marker() == (0, 0)


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
