"""Which rights an import needs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import override_settings

from mcp_app.models import Server, Tool
from mcp_app.publishing import bundle
from tests.published import published
from tests.publishing.bundle.content import (
    REGISTRY,
    as_bytes,
    clear,
    entry,
    exported,
    overlay,
    tool,
)

pytestmark = pytest.mark.django_db


def needed(file: dict[str, Any], *, publish: bool = False) -> dict[str, list[str]]:
    comparison = bundle.compare(bundle.read(as_bytes(file)), REGISTRY)
    return {
        right: [each.entry.key for each in entries]
        for right, entries in bundle.needed_rights(comparison, publish=publish).items()
    }


def a_function() -> Tool:
    return tool(kind="function", config='{"function": "shop.find"}')


def test_texts_need_nothing_more() -> None:
    tool("a")
    tool("b")
    overlay("c", title="Better")
    file = exported()
    clear()
    assert needed(file) == {}


def test_a_function_that_something_is_made_to_run() -> None:
    row = a_function()
    file = exported()
    assert needed(file) == {}
    row.title = "Other"
    row.save()
    assert needed(file) == {}
    row.config = '{"function": "shop.other"}'
    row.save()
    assert needed(file) == {"behind": ["hours"]}
    row.kind = "text"
    row.config = "{}"
    row.save()
    assert needed(file) == {"behind": ["hours"]}
    clear()
    assert needed(file) == {"behind": ["hours"]}


@pytest.mark.parametrize(("kind", "rights"), [("station", ["behind"]), ("open", [])])
def test_the_config_of_a_kind_that_a_site_brings(kind: str, rights: list[str]) -> None:
    path = "tests.kinds.stations"
    kinds = {"station": f"{path}.Station", "open": f"{path}.Open"}
    with override_settings(MCP={"KINDS": kinds}):
        row = tool(kind=kind, config='{"station": "hill"}')
        file = exported()
        row.config = '{"station": "harbour"}'
        row.save()
        assert [*needed(file)] == rights


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("query", {"model": "drill.Order"}, {"model": "drill.Customer"}),
        ("http", {"site": "peer", "path": "/a"}, {"site": "peer", "path": "/b"}),
    ],
)
def test_what_is_looked_up_and_called(kind: str, before: Any, after: Any) -> None:
    row = tool(kind=kind, config=json.dumps(before))
    file = exported()
    assert needed(file) == {}
    row.config = json.dumps(after)
    row.save()
    assert needed(file) == {"behind": ["hours"]}
    clear()
    assert needed(file) == {"behind": ["hours"]}


def test_a_function_that_is_taken_away() -> None:
    tool()
    file = exported()
    Tool.objects.all().delete()
    a_function()
    assert needed(file) == {"behind": ["hours"]}


def test_permissions_and_access() -> None:
    tool("a", permission="shop.view_order")
    overlay("b", permission="shop.view_order")
    tool("c")
    Server.objects.update(access="public")
    file = exported()
    assert needed(file) == {}
    clear()
    assert needed(file) == {"grant": ["default", "a", "b"]}
    tool("a", title="Other", permission="shop.view_order")
    tool("c", permission="shop.view_order")
    assert needed(file) == {"grant": ["default", "b", "c"]}


@pytest.mark.parametrize(
    ("access", "right"), [("", {}), ("token", {}), ("public", {"grant": ["default"]})]
)
def test_a_new_server_starts_with_tokens_or_closed(
    access: str, right: dict[str, list[str]]
) -> None:
    Server.objects.update(access=access)
    file = exported()
    clear()
    assert needed(file) == right


def test_publishing() -> None:
    published(a_function())
    file = exported()
    Tool.objects.unpublish([Tool.objects.get()])
    # Somebody with the right has put the function there.
    assert needed(file, publish=True) == {"publish": ["hours"]}
    clear()
    assert needed(file, publish=True) == {"behind": ["hours"], "publish": ["hours"]}


def test_what_only_the_version_says_needs_rights_as_well() -> None:
    row = published(tool(permission="shop.view_order"))
    row.permission = ""
    row.save()
    file = exported()
    assert entry(file, "tools", "hours")["working"]
    clear()
    assert "grant" not in needed(file)
    assert needed(file, publish=True)["grant"] == ["hours"]
