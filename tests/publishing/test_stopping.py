"""What is to be stopped is found by what people call it."""

from __future__ import annotations

import json

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.models import Resource, Stop, Tool
from mcp_app.publishing.publication import count_changing, find_definition, near
from tests.drill.models import Order
from tests.published import published, stopped

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
    assert find_definition("tool", "old", registry) == row
    assert find_definition("tool", "new", registry) == row
    row.delete()
    assert find_definition("tool", "old", registry) == other
    assert find_definition("tool", "Old", registry) is None


def test_what_code_declares_has_a_row_from_then_on(registry: Registry) -> None:
    row = find_definition("tool", "writes", registry)
    assert row is not None
    assert row.from_code
    assert find_definition("tool", "nothing", registry) is None


def test_names_that_are_alike() -> None:
    for name in ("add_order", "add_note", "look"):
        Tool.objects.create(name=name)
    Resource.objects.create(name="r", uri="shop://hours")
    assert near("tool", "add_ordr")[0] == "add_order"
    assert near("tool", "NOTE") == ["add_note"]
    assert near("resource", "hours") == ["shop://hours"]
    assert near("tool", "zzz") == []


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


def test_what_only_reads_by_its_kind(registry: Registry) -> None:
    registry.open_model(Order, fields=["number"], rows="all")
    config = json.dumps({"model": "drill.Order", "fields": ["number"]})
    published(Tool(name="lookup", kind="query", config=config))
    assert count_changing(registry, ()) == 1
