"""What is to be stopped is found by what people call it."""

from __future__ import annotations

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.models import Resource, Tool
from mcp_app.publishing.stopping import Tools, definition_named, near, tools_of
from tests.published import published

pytestmark = pytest.mark.django_db


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


def test_what_clients_see_comes_before_a_working_copy(registry: Registry) -> None:
    row = published(Tool(name="old"))
    Tool.objects.filter(pk=row.pk).update(name="new")
    other = Tool.objects.create(name="old")
    assert definition_named("tool", "old", registry) == row
    assert definition_named("tool", "new", registry) == row
    row.delete()
    assert definition_named("tool", "old", registry) == other
    assert definition_named("tool", "Old", registry) is None


def test_what_code_declares_has_a_row_from_then_on(registry: Registry) -> None:
    row = definition_named("tool", "writes", registry)
    assert row is not None
    assert row.from_code
    assert definition_named("tool", "nothing", registry) is None


def test_names_that_are_alike() -> None:
    for name in ("add_order", "add_note", "look"):
        Tool.objects.create(name=name)
    Resource.objects.create(name="r", uri="shop://hours")
    assert near("tool", "add_ordr")[0] == "add_order"
    assert near("tool", "NOTE") == ["add_note"]
    assert near("resource", "hours") == ["shop://hours"]
    assert near("tool", "zzz") == []


def test_tools_as_they_are_served(registry: Registry) -> None:
    assert tools_of(registry) == Tools(changing=1, off=0)
    published(Tool(name="row"))
    published(Tool(name="row_that_reads", read_only=True))
    published(Tool(name="off", enabled=False))
    Tool.objects.create(name="draft")
    # A row never hides what code declares.
    published(Tool(name="reads"))
    # An overlay says that it only reads; what is saved alone changes nothing.
    overlay = Tool.objects.create(name="writes", source="code", read_only=True)
    Tool.objects.create(name="vanished", source="code")
    assert tools_of(registry) == Tools(changing=2, off=1)
    published(overlay)
    assert tools_of(registry) == Tools(changing=1, off=1)
