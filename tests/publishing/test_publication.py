"""Publishing with a look before, beneath the pages of the admin."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.models import Resource, Stop, Tool
from mcp_app.publishing import publication
from mcp_app.publishing.publication import OutOfDate, PublicationRefused
from mcp_app.publishing.stop_targets import MOST_COUNTED, count_changing, similar_names
from tests.drill.models import Order
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

REGISTRY = Registry()
CONTENT = '{"content": [{"type": "text", "text": "Nine to five."}]}'


def tool(name: str = "hours") -> Tool:
    return Tool.objects.create(
        name=name, description="Opening hours.", read_only=True, config=CONTENT
    )


def publish(row: Tool, number: int = 0) -> None:
    publication.publish_working_copy(
        row, REGISTRY, author=None, looked_at=row.content_hash, number=number
    )


@pytest.mark.parametrize(
    "act", [publish, lambda row: publication.unpublish(row, number=0)]
)
def test_what_was_deleted_meanwhile_is_refused(act: Callable[[Tool], None]) -> None:
    row = tool()
    Tool.objects.get().delete()
    with pytest.raises(PublicationRefused, match="“hours” was deleted while this"):
        act(row)


def test_the_database_refuses_what_a_race_let_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = published(tool())
    other.name = "renamed"
    other.save()
    row = tool()
    monkeypatch.setattr(publication, "_taken_by_others", lambda *_: {})
    with pytest.raises(PublicationRefused, match="something else was published"):
        publish(row)
    assert Tool.objects.get(pk=row.pk).published is None


def test_an_old_version_may_be_published_although_lint_would_not() -> None:
    row = published(Tool(name="a", config=CONTENT))
    old = row.published
    assert old is not None
    row.description, row.read_only = "Says it.", True
    row.save()
    published(row)
    version = publication.roll_back(row, old, REGISTRY, author=None, number=2)
    assert (version.number, version.restored) == (3, 1)


def test_a_name_that_was_given_away_is_not_put_back() -> None:
    row = published(tool("hours"))
    old = row.published
    assert old is not None
    row.name = "opening_hours"
    row.save()
    published(row)
    other = tool("hours")
    with pytest.raises(PublicationRefused, match="Another working copy has this name"):
        publication.roll_back(
            row, old, REGISTRY, author=None, number=2, working_copy=True
        )
    row.refresh_from_db()
    assert (row.name, row.published and row.published.number) == ("opening_hours", 2)
    publication.roll_back(row, old, REGISTRY, author=None, number=2)
    other.delete()
    publication.roll_back(row, old, REGISTRY, author=None, number=3, working_copy=True)
    assert Tool.objects.get().name == "hours"


def test_unpublishing_what_was_published_anew() -> None:
    row = published(tool())
    with pytest.raises(OutOfDate):
        publication.unpublish(row, number=0)
    publication.unpublish(row, number=1)
    assert Tool.objects.get().published is None


# -- stopping --------------------------------------------------------------------------


@pytest.fixture
def registry() -> Registry:
    made = Registry()

    @made.tool(read_only=True)
    def reads() -> str:
        return ""

    @made.tool
    def writes() -> str:
        return ""

    return made


def test_names_that_are_alike() -> None:
    for name in ("add_order", "add_note", "look"):
        Tool.objects.create(name=name)
    Resource.objects.create(name="r", uri="shop://hours")
    assert similar_names("tool", "add_ordr")[0] == "add_order"
    assert similar_names("tool", "NOTE") == ["add_note"]
    assert similar_names("resource", "hours") == ["shop://hours"]
    assert similar_names("tool", "zzz") == []


def test_tools_as_they_are_served(registry: Registry) -> None:
    assert count_changing(registry, ()) == 1
    published(Tool(name="row"))
    published(Tool(name="row_that_reads", read_only=True))
    stopped(published(Tool(name="off")))
    stops = Stop.objects.on()
    Tool.objects.create(name="draft")
    # A row never hides what code declares.
    published(Tool(name="reads"))
    # An overlay says that it only reads; what is saved alone changes nothing.
    overlay = Tool.objects.create(name="writes", source="code", read_only=True)
    Tool.objects.create(name="vanished", source="code")
    assert count_changing(registry, stops) == 2
    published(overlay)
    assert count_changing(registry, stops) == 1
    assert count_changing(registry, ()) == 2
    Tool.objects.bulk_create(Tool(name=f"t{n}") for n in range(MOST_COUNTED))
    assert count_changing(registry, ()) is None


def test_what_only_reads_by_its_kind(registry: Registry) -> None:
    registry.open_model(Order, fields=["number"], rows="all")
    config = json.dumps({"model": "drill.Order", "fields": ["number"]})
    published(Tool(name="lookup", kind="query", config=config))
    assert count_changing(registry, ()) == 1
